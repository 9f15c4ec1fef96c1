#!/usr/bin/env bash
# What make slides makes, and its message for each defect.
ALL=1 exec "$(dirname "$0")/slides.py"
