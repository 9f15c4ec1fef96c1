#!/usr/bin/env bash
# What make docs says of each thing that can be wrong in headers and texts.
BREAKS=all exec "$(dirname "$0")/docs.py"
