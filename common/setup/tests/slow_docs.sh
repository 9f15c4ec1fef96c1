#!/usr/bin/env bash
# Tests the site that make docs builds, and its error for each defect in headers and texts.
ALL=1 exec "$(dirname "$0")/docs.py"
