#!/usr/bin/env bash
# The page of a class with training runs; board.sh makes a page without them.
exec bash "$(dirname "$0")/board.sh" trained
