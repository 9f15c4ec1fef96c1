#!/usr/bin/env bash
# What the report says of errors just above the tolerance. Answers in grader/mutants have errors of
# at least ten times the tolerance.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree small_errors

copy_solution 16
sed -i 's|(float)(rows / all_rows)|(float)(rows / all_rows * (1 + 2e-6))|' "$(lab_file 16)"
grade LAB=16
lacks() { ! says "$1"; }
check "weights that are off by two millionths are called nearly right" fails_saying "it is right to about 5 digits only"
check "they are not called misplaced" lacks "in the wrong places"
finish
