#!/usr/bin/env bash
# The page of a class with trainings; board.sh makes one without.
exec bash "$(dirname "$0")/board.sh" trained
