#!/usr/bin/env bash
# What make slides builds, and its error for each defect.
ALL=1 exec "$(dirname "$0")/slides.py"
