#!/usr/bin/env bash
# What make slides sets, and what it says of each thing that can be wrong.
ALL=1 exec "$(dirname "$0")/slides.py"
