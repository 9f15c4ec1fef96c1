#!/usr/bin/env bash
# STACK=mine: a lab on the student's own earlier ones, and who is to blame.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree stacks

copy_solution 6
grade LAB=6 STACK=mine
check "an earlier lab that was not started is the reference's, in a visible line" says "on the reference for lab 1, which you have not started"
check "on the reference a right lab has full marks" scores 10/10

copy_solution 1
grade LAB=6 STACK=mine
check "an earlier lab that was started is the student's, in a visible line" says "on your own lab 1"
check "on the student's own right lab a right lab has full marks" scores 10/10

sed -i 's/return group_all_reduce(mesh->world, dy);/return dy;/' "$(lab_file 1)"
grade LAB=6 STACK=mine
check "an earlier lab that is wrong is named" fails_saying "does not pass its own checks, so look there first: lab 1"
grade LAB=6
check "without STACK=mine an earlier lab does no harm" scores 10/10

echo "nonsense" >> "$(lab_file 1)"
grade LAB=6 STACK=mine
check "an earlier lab that does not compile is named" fails_saying "lab 1 does not compile"
finish
