#!/usr/bin/python3
"""One model at every layout, as in layouts.py, with the other optimisers."""
from layouts_apart import at_every_layout

for name in ("SGD, dropout 0", "AdamW, dropout 0"):
    at_every_layout(name)
