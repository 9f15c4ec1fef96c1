#!/usr/bin/env bash
# The training runs in the texts of part 2, which take longer: pipelines, micro-batches, the grid, language models.
RUNS="12 13 14 15 16 20 21" exec bash "$(dirname "$0")/course.sh"
