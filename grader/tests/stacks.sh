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

# In training, no judge checks how the blocks are divided.
blocks_over() { # blocks_over STAGES EXPRESSION WORDS: training with these blocks ends with WORDS
    copy_solution 12
    sed -i "s|return (Range){.*|return (Range){$2};|" "$(lab_file 12)"
    ! make --silent train STACK=mine UPTO=12 "PP=$1" LAYERS=4 STEPS=1 > out 2>&1 &&
        [ "$(grep -c '^error: ' out)" = 1 ] && says "$3" && says "HINT: stage_blocks of lab 12"
}
check "a block that no stage runs ends the training with one error" blocks_over 2 "mesh->pp_rank == 0 ? 0 : 3, mesh->pp_rank == 0 ? 2 : 4" \
    "stage 1 begins with block 3, but the stages before it end before block 2"
check "a block that two stages run ends the training with one error" blocks_over 3 "mesh->pp_rank, mesh->pp_rank + 2" \
    "stage 1 begins with block 1, but the stages before it end before block 2"
check "a first stage without the first block ends the training with one error" blocks_over 2 "mesh->pp_rank + 1, 2 * mesh->pp_rank + 2" \
    "stage 0 begins with block 1, but the stages before it end before block 0"
check "a last block that no stage runs ends the training with one error" blocks_over 2 "mesh->pp_rank, mesh->pp_rank + 1" "the last stage ends before block 2 of 4"

for lab in 13 14; do copy_solution "$lab"; done
copy_solution 12
sed -i 's/[.]pp_degree = pp/.pp_degree = 1/' "$(lab_file 14)"
wrong_degree() {
    ! make --silent train STACK=mine UPTO=14 NTASKS=2 PP=2 STEPS=1 > out 2>&1 && [ "$(grep -c '^error: ' out)" = 1 ] &&
        says "the grid has tp_degree 1 and pp_degree 1, but TP=1 and PP=2" && says "HINT: mesh_init_3d (lab 14)"
}
check "a grid whose degrees differ from the run's ends the training with one error" wrong_degree

lacks() { # lacks LAB SETTING...: this setting is refused in a stack without that lab
    ! make --silent train STACK=mine UPTO=14 NTASKS=2 STEPS=1 "${@:2}" > out 2>&1 && [ "$(grep -c '^error: ' out)" = 1 ] && says "this stack has no lab $1"
}
copy_solution 14
check "ALLREDUCE=ring needs lab 15" lacks 15 ALLREDUCE=ring TP=1
check "AVERAGE needs lab 16" lacks 16 AVERAGE=2 TP=1
check "ZERO needs lab 17" lacks 17 ZERO=1 TP=1
check "SP needs lab 18" lacks 18 SP=1 TP=2
check "RECOMPUTE needs lab 19" lacks 19 RECOMPUTE=attention TP=2

copy_solution 20
sed -i 's/hidden), shard(1)/hidden), shard(0)/' "$(lab_file 20)"
own_layers() {
    ! make --silent train STACK=mine UPTO=20 MODEL=gpt2 NTASKS=2 TP=2 STEPS=1 > out 2>&1 && [ "$(grep -c '^error: ' out)" = 1 ] &&
        says "the weight holds 3 matrices, which cannot be split into 2 equal parts" && says "HINT: shard(1) splits each of them"
}
check "GPT-2 is made of the student's linear layers, and a wrong one ends the training with one error" own_layers
make --silent reset LAB=20 > out 2>&1

python3 "$ROOT/grader/tests/answer.py" 01-exscan > "$(lab_file 1)"
own_mpi() {
    ! timeout 60 make --silent check STACK=mine UPTO=7 NTASKS=2 TP=2 > out 2>&1 && says "group_comm: make check cannot simulate what a lab does with MPI itself at collectives.c" && says "HINT: make train runs it"
}
check "make check refuses a lab that calls MPI itself" own_mpi
copy_solution 1
sed -i 's/return group_all_reduce(mesh->world, dy);/fprintf(stderr, "begun\\n"); for (int i = 0; i < 60; i++) sleep(1); return dy;/; 1i #include <stdio.h>\n#include <unistd.h>' "$(lab_file 1)"
ends_at_a_signal() { # timeout makes a process group, whose number is its own, and passes the signal on
    timeout 300 make --silent check STACK=mine UPTO=7 NTASKS=2 TP=2 > out 2>&1 &
    local pid=$!
    until says begun || ! kill -0 "$pid"; do sleep 0.1; done
    kill -TERM "$pid"
    wait "$pid"
    for _ in {1..100}; do
        kill -0 -- "-$pid" 2> /dev/null || return 0
        sleep 0.1
    done
    return 1
}
check "make check ends at a signal, whatever a lab does" ends_at_a_signal
make --silent reset LAB=1 > out 2>&1

copy_solution 16
sed -i '/^    scale(weights/i\    double of[64] = {0};\n    of[mesh->dp_rank] = rows;\n    group_sum(mesh->dp, of, mesh->dp_degree);\n    for (int k = 0; k < mesh->dp_degree; k++)\n        if (of[k] == all_rows) {\n            Tensor *x = group_broadcast(mesh->dp, weights, k);\n            if (mesh->dp_rank != k)\n                memcpy(tensor_data(weights), tensor_data(x), sizeof(float) * (size_t)tensor_count(x));\n            return;\n        }
    1i #include <string.h>' "$(lab_file 16)"
check "a replica that alone has trained may broadcast its weights" make --silent check STACK=mine UPTO=16 NTASKS=4 TP=2 AVERAGE=1
make --silent reset LAB=16 > out 2>&1

copy_solution 14
python3 "$ROOT/grader/tests/answer.py" 03-own_range > "$(lab_file 3)"
grade LAB=14 STACK=mine SEED=1
check "a table split by rows may send what it needs in lab 14 too" scores 12/12
make --silent reset LAB=3 > out 2>&1

# In training, no judge compares calls, so a rank that leaves out an exchange takes part in the next
# one instead. tensor_data() may have moved numbers, so the kit does not know that they are still
# partial sums.
for lab in 1 2 3 4 5; do copy_solution "$lab"; done
sed -i 's/return group_all_reduce(mesh->world, dy);/return mesh->tp_rank == 0 ? (tensor_data(dy), dy) : group_all_reduce(mesh->world, dy);/' "$(lab_file 1)"
timeout 300 make --silent train STACK=mine UPTO=5 NTASKS=2 TP=2 STEPS=3 > out 2>&1
status=$?
one_error() {
    [ "$status" = 2 ] && [ "$(grep -c '^\(rank [0-9]: \)\?error: ' out)" = 1 ] && says "has left out a collective" && says "make trace LAB=n"
}
check "a rank that leaves out an exchange in training ends the run with one error" one_error
finish
