#!/usr/bin/env bash
# STACK=mine: a lab on the student's own earlier ones, and which lab is blamed.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree stacks

copy_solution 6
grade LAB=6 STACK=mine
check "a line says that the reference stands in for an earlier lab that is not started" says "on the reference for lab 1, which you have not started"
check "on the reference, a right lab has full marks" scores 10/10

copy_solution 1
grade LAB=6 STACK=mine
check "a line says that an earlier lab that is started is the student's" says "on your own lab 1"
check "on the student's own right lab, a right lab has full marks" scores 10/10

sed -i 's/return group_all_reduce(mesh->world, dy);/return dy;/' "$(lab_file 1)"
grade LAB=6 STACK=mine
check "an earlier lab that is wrong is named" fails_saying "fails its own checks, so look there first: lab 1"
grade LAB=6
check "without STACK=mine, a wrong earlier lab does no harm" scores 10/10

echo "nonsense" >> "$(lab_file 1)"
grade LAB=6 STACK=mine
check "an earlier lab that does not compile is named" fails_saying "lab 1 does not compile"

# Training does not compare the ranks' calls: a rank that leaves out an exchange takes part in a
# different one instead.
for lab in 1 2 3 4 5; do copy_solution "$lab"; done
sed -i 's/return group_all_reduce(mesh->world, dy);/return mesh->tp_rank == 0 ? dy : group_all_reduce(mesh->world, dy);/' "$(lab_file 1)"
timeout 300 make --silent train STACK=mine UPTO=5 NTASKS=2 TP=2 STEPS=3 > out 2>&1
status=$?
one_error_of_mpi() {
    [ "$status" = 2 ] && [ "$(grep -c '^\(rank [0-9]: \)\?error: ' out)" = 1 ] && says "an exchange failed in MPI: " && says "make trace LAB=n"
}
check "a rank that leaves out an exchange in training ends the run with one error" one_error_of_mpi
finish
