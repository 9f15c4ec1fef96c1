#!/usr/bin/env bash
# What make docs makes, and what it says of each thing that can be wrong in headers and texts.
ALL=1 exec "$(dirname "$0")/docs.py"
