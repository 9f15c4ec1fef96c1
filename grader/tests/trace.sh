#!/usr/bin/env bash
# make trace: which rank makes which call, also in a case that hangs or crashes.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree trace

# trace ARGUMENTS...: runs make trace; writes the output to the file out, sets $status.
trace() {
    make --silent SEED=1 trace "$@" > out 2>&1
    status=$?
}
has() { # a line that matches this
    grep -qE -- "$1" out
}
lacks() {
    ! has "$1"
}
succeeds() {
    [ "$status" = 0 ]
}
is_refused() { # one error, one HINT, status 2 (of make too)
    [ "$status" = 2 ] && has "^error: $1" && [ "$(grep -c HINT: out)" = 1 ]
}

trace LAB=6 SOLUTION=1
check "a case of a right answer is shown" succeeds
check "the first line names the case" has '^Lab 6 .*SEED=1 CASE=[0-9]+:$' && check "the second line has its sizes" has '^  2 ranks, B='
check "ranks are columns" has '^ +call +rank 0 +rank 1$'
check "calls that matched share a row, with the line of each rank" \
    has '^   all_reduce #1 of \{0,1\}, 288 float, sum +line [0-9]+ +line [0-9]+$'
check "if all calls match, no row is marked" lacks '^>>'
check "a line says that they match" has '^every call matched'
check "the ranks hold equal whole values" lacks 'hold different'
check "no pass is reported as one without calls" lacks 'no call'
python3 "$ROOT/grader/tests/answer.py" 06-no_g > "$(lab_file 6)"
trace LAB=6
check "a pass without calls is named, before the next pass with some" \
    [ "$(grep -A3 '^-- forward pass' out | head -4)" = "$(printf '%s\n' '-- forward pass of the first layer, step 1: no call' \
        '-- forward pass of the second layer, step 1: no call' '-- backward pass of the first layer, step 1' \
        "$(grep -m1 '^   all_reduce' out)")" ]
script -qec "make --silent SEED=1 trace LAB=6" /dev/null < /dev/null > out 2>&1
check "on a terminal, its headings stand out" has $'^\x1b\\[1m-- backward pass'
fits() { # fits LANGUAGE: a trace of four ranks, on a terminal of 80 columns
    LANG=$1 script -qec "stty cols 80; make --silent SEED=1 trace LAB=13 SOLUTION=1 CASE=17" /dev/null < /dev/null 2>&1 | sed 's/\x1b\[[0-9;]*m//g; s/\r//' > out
    has '^   receive .*  26$' && ! LC_ALL=C.UTF-8 grep -qE '.{81}' out
}
check "a table that is wider than the terminal has the lines' numbers alone" fits C.UTF-8
check "in French, too" fits fr_FR.UTF-8
LANG=fr_FR.UTF-8 script -qec "stty cols 80; make --silent SEED=1 trace LAB=14 SOLUTION=1 CASE=30" /dev/null < /dev/null 2>&1 | sed 's/\x1b\[[0-9;]*m//g; s/\r//' > out
check "of six ranks, too: long labels have a line of their own" eval "has '^ {50}.* - +[0-9]+$|^ {50}.* [0-9]+$' && ! LC_ALL=C.UTF-8 grep -qE '.{81}' out"
for language in C.UTF-8 fr_FR.UTF-8; do
    LANG=$language trace LAB=21 SOLUTION=1
    check "the longest headings fit into 80 columns (LANG=$language)" eval "has ', mod.* 2, .* 2 ?: ' && ! LC_ALL=C.UTF-8 grep -qE '.{81}' out"
done

for lab in 1 2 3 4 5 7 8 9 10 11; do
    trace LAB=$lab SOLUTION=1
    check "lab $lab: the calls of the solution match, and whole values are equal" \
        eval "has '^every call matched' && lacks 'hold different'"
done

copy_solution 14
sed -i 's/pass == passes - 1/pass == 0/' "$(lab_file 14)"
trace LAB=14 CASE=7
check "an error that ends a rank's case comes before what the others wait for" \
    eval "has '^the case ended with an error:' && has 'bucket_filled started the sum over the replicas in backward pass 1'"
make --silent reset LAB=14 > out 2>&1

trace LAB=9 SOLUTION=1 CASE=2
check "CASE selects the case" eval "has 'CASE=2:$' && has '^  6 ranks'"
check "equal calls of several groups share a row" has 'all_reduce #1 of \{0,1\} \{2,3\} \{4,5\}'

trace LAB=11 SOLUTION=1
buckets_before_waits() { # in the first step
    awk '/^-- step 1/ { inside = 1 } /^-- step 2/ { exit } inside && /start of all_reduce/ { starts++; if (waits) late++ } inside && /^   wait / { waits++ }
        END { exit !(starts > 2 && waits == starts && !late) }' out
}
check "lab 11 shows replicas that train: buckets start one after another, and the waits are at the end" buckets_before_waits
# named_case LAB COMMENT LAYOUT: the case that a lab's text names with this comment has this layout.
named_case() {
    trace LAB="$1" SOLUTION=1 CASE="$(sed -nE "s/^    make trace LAB=$1 CASE=([0-9]+) +# $2.*/\\1/p" labs/"$1"-*/README.md)"
    grep -qE "^  $3(,|$)" out
}
check "the case that the text of lab 12 names has three stages" named_case 12 "three stages" "3 ranks, tp=1, pp=3"
check "the cases that the text of lab 14 names are the grids that it says" eval 'named_case 14 "eight ranks" "8 ranks, tp=2, pp=2" &&
    named_case 14 "the same grid" "8 ranks, tp=2, pp=2" && named_case 14 "four ranks" "4 ranks, tp=1, pp=2, B=.*"'
trace LAB=13 SOLUTION=1 CASE=5
drawn() { # the figure of 1F1B for two stages and four micro-batches
    diff <(grep '^  stage' out | sed 's/ *$//') - << 'END'
  stage 0 F0 F1 .  B0 F2 B1 F3 B2 .  B3
  stage 1 .  F0 B0 F1 B1 F2 B2 F3 B3 .
END
}
check "below the calls of lab 13 is the schedule that they make" drawn
check "and its length" says "10 slots; the first stage is idle in 2 of them"
each_heading_once() {
    [ "$(grep -c '^-- step' out)" = 3 ] && [ -z "$(grep '^-- ' out | sort | uniq -d)" ]
}
trace LAB=13 SOLUTION=1
check "each step has one heading, although some ranks end it before others" each_heading_once

below() { # the lines from one that matches this on
    sed -n "/$1/,\$p" out
}
# fits_80 HEADING LINES: below the heading, each of four stages has this many lines, and no line has
# more than 80 columns.
fits_80() {
    [ "$(below "$1" | grep -c '^  stage [0-3] ')" = $((4 * $2)) ] && [ "$(below "$1" | wc -L)" -le 80 ]
}
for case in 12 17; do # GPipe, 1F1B
    trace LAB=13 SOLUTION=1 CASE=$case
    check "four stages and eight micro-batches (CASE=$case) fit into 80 columns" fits_80 "a pass in each slot" 1
    check "eight micro-batches on four stages (CASE=$case) take 22 slots" says "22 slots; the first stage is idle in 6 of them"
    trace LAB=13 SOLUTION=1 CASE=$case CLUSTER=dgx-h200
    check "on a cluster, the stages (CASE=$case) fit into 80 columns, in boxes as long as each pass takes" fits_80 "on dgx-h200, 12 layers" 3
    check "the schedule on a cluster has the length of the step, and the idle share of each stage" \
        eval "has '^  the step takes [0-9.]+ us; it would take [0-9.]+ us if' && has 'idle for [0-9]+ %, [0-9]+ %, [0-9]+ %, [0-9]+ % of the step'"
done
takes() { # takes N: the N-th time of the step on a cluster
    below ' on ' | grep -oE '[0-9.]+ (us|ms|s)\b' | awk -v n="$1" '{ unit["us"] = 1; unit["ms"] = 1e3; unit["s"] = 1e6 } NR == n { print $1 * unit[$2] }'
}
in_order() {
    awk -v "numbers=$*" 'BEGIN { n = split(numbers, x); for (i = 2; i <= n; i++) if (!(x[i - 1] < x[i])) exit 1; exit n < 2 }'
}
trace LAB=11 SOLUTION=1 CLUSTER=dgx-2h
check "a trace on a cluster says what the overlap of lab 11 is worth" in_order "$(takes 2)" "$(takes 1)" "$(takes 3)"
draws_overlap() { # the sums lengthen the step by what they exceed the busiest rank's work
    [ "$(below 'on dgx-2h' | grep -cE '^  rank [01]   [#.]+$')" = 2 ] && has '^  sums     [.0-9-]+$' && [ "$(below 'on dgx-2h' | wc -L)" -le 80 ] &&
        sed -nE 's/.*take ([0-9.]+) ms: ([0-9.]+) ms while rank . works, ([0-9.]+) us exposed/\1 \2 \3/p; s/.*step takes ([0-9.]+) ms; it would take ([0-9.]+) ms.*/\1 \2/p' out |
        awk 'function near(a, b) { return a - b < .011 && b - a < .011 }
            NR == 1 { exposed = $1 - $2 } NR == 2 { good = near($1, $2 + $3 / 1e3) && near(exposed, $3 / 1e3) } END { exit !good }'
}
check "in 80 columns it draws what overlaps, and says how much is exposed" draws_overlap
python3 - "$ROOT/common/bench/clusters/dgx-2h.json" > slow.json << 'END'
import json, sys
cluster = json.load(open(sys.argv[1], encoding="utf-8"))
cluster["near"]["bandwidth"] /= 100
print(json.dumps(cluster))
END
fast=$(takes 1) work=$(takes 2)
slower() {
    in_order "$fast" "$(takes 1)" && [ "$work" = "$(takes 2)" ]
}
trace LAB=11 SOLUTION=1 CLUSTER=slow.json
check "CLUSTER may be a file: with slower links, only messages take longer" slower
copy_solution 11
sed -i 's/bucket->pending = group_all_reduce_start(\(.*\));/group_all_reduce(\1);\n    bucket->pending = NULL;/; s/^ *pending_wait.*//' "$(lab_file 11)"
trace LAB=11 CLUSTER=dgx-2h
check "in a lab that waits for each sum, the overlap is worth nothing" [ "$(takes 1)" = "$(takes 3)" ]
trace LAB=6 SOLUTION=1 CLUSTER=dgx-2h
check "a case without a step says that it has none" says "no whole step"
trace LAB=13 SOLUTION=1 CLUSTER=nowhere
check "a cluster that does not exist is refused" is_refused "there is no cluster 'nowhere'"

trace LAB=11 SOLUTION=1 CASE=1
ready=$(sed -n 's/^-- bucket_ready, bucket \([0-9]*\), round 1$/\1/p' out | xargs)
check "buckets are ready in the order of their numbers, as in the lab's text" [ "$ready" = "0 1 2" ]

copy_solution 1
sed -i 's/^    return group_all_reduce(mesh->world, x);/    if (mesh->tp_rank == 1)\n        return x;\n&/' "$(lab_file 1)"
trace LAB=1
check "a case that hangs is shown" succeeds
check "the first difference is marked" \
    has '^>> all_reduce #4 of \{0,1\}.*line [0-9]+, waits +line [0-9]+: all_gather #4.*waits$'
check "one line per rank says where it waits" has '^rank 1 waits in all_gather #4'
check "a line says where the ranks diverged" has '^first difference: rank 0 is in all_reduce #4'
grade LAB=1 CASE=5
check "the report of a hang names the command that prints the table" says "calls: make trace LAB=1 SEED=1 CASE=5"

copy_solution 1
sed -i 's/^    return group_all_reduce(mesh->world, x);/    if (group_size(mesh->world) == 3)\n        return x;\n&/' "$(lab_file 1)"
grade LAB=1
make --silent trace LAB=1 > out 2>&1
check "without SEED and CASE, the case that failed last is shown" eval "has '^Lab 1 .*SEED=1 CASE=' && has '^  3 ranks'"
make --silent trace LAB=1 SOLUTION=1 > out 2>&1
check "the case that failed last is not shown for the reference" has '^  2 ranks'

copy_solution 1
sed -i 's/^    return group_all_reduce(mesh->world, x);/    if (mesh->tp_rank == 1)\n        *(volatile int *)8 = 1;\n&/' "$(lab_file 1)"
trace LAB=1
check "a case that crashes is shown" eval "succeeds && has 'rank 1 was killed by signal 11'"
check "the calls before the crash are shown" has '^   all_reduce #3 of \{0,1\}'

copy_solution 1
echo nonsense >> "$(lab_file 1)"
trace LAB=1
check "a lab that does not build is reported as such" eval "[ $status != 0 ] && has 'does not compile'"

copy_solution 1
sed -i 's/^#include "balise.h"/#include "balise_mpi.h"/; s/^    return group_all_reduce(mesh->world, x);/    MPI_Win window;\n    MPI_Win_create(tensor_data(x), 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, \&window);\n&/' "$(lab_file 1)"
trace LAB=1
check "a refused lab is reported as refused, not as one that does not build" eval "[ $status != 0 ] && has '^Lab 1 .*: refused' && lacks 'not build'"
check "the file and line of the call are named" has "MPI_Win_create \($(lab_file 1):$(grep -n MPI_Win_create labs/01-*/*.c | cut -d: -f1)\)"

copy_solution 4
sed -i '/layer->output = /s/shard(1)/shard(0)/' "$(lab_file 4)"
trace LAB=4
check "a case that ended with an error shows the error with its HINT, and no completion" \
    eval "has '^the case ended with an error:' && has '^linear: .* does not fit' && has '^HINT: ' && lacks 'ran to completion'"

tape() { # as trace, for make tape
    make --silent SEED=1 tape "$@" > out 2>&1
    status=$?
}
tape LAB=6 SOLUTION=1
down='[0-9]+ +[0-9]+  linear of 3 +\[2,3,48\]  partial sum'
check "make tape lists what each operation returns, with its line, shape and placement" eval "succeeds && has '$down'"
check "make tape lists what each operation takes" has '^ +down.weight +\[48,18\] +shard\(1\)$'
check "make tape lists what an operation is called with" has '^ +name first.dropout, probability 0\.[0-9]+$'
check "the gradient of a copy is a partial sum, and goes to x" has '^ +1 +[0-9]+  duplication +\[2,3,24\] +partial sum +→ x$'
check "the backward pass is in its own order" [ "$(sed -n '/^-- backward/,$p' out | grep -oE '^ +[0-9]+' | xargs)" = "5 4 3 2 1" ]
check "GELU is listed once, with the dropout that it is computed with" [ "$(sed '/^-- backward/,$d' out | grep -c gelu)" = 1 ]
LANG=fr_FR.UTF-8 tape LAB=6 SOLUTION=1
check "in French, make tape names placements in French" has '^ +4 +[0-9]+ +linear de 3 +\[2,3,48\] +somme partielle$'
tape LAB=6 SOLUTION=1 RANK=1
check "RANK selects the rank" says "this is rank 1; RANK=0 shows another"
tape LAB=4 SOLUTION=1
check "make tape shows attention's heads and factor, and that it takes the mask" eval "has '^ +heads [0-9]+, factor 0\.[0-9]+$' && has '^ +mask +\[[0-9]+,[0-9]+\]'"
tape LAB=12 SOLUTION=1 RANK=2
check "lab 12: a stage has a tape, too, in 80 columns" eval "has 'all_reduce of [0-9]+' && has '^-- .*gradient of each' && [ \"\$(LC_ALL=C.UTF-8 wc -L < out)\" -le 80 ]"
tape LAB=12 SOLUTION=1 RANK=7
check "a rank that the case lacks is refused" is_refused "this case has ranks 0 to"
copy_solution 6
sed -i 's/^    return all_reduce(linear(h, layer->down), mesh);/    return all_reduce(linear(tensor_copy(h), layer->down), mesh);/' "$(lab_file 6)"
tape LAB=6
check "make tape names the operations that no gradient reaches" has '^no gradient reaches the result of 1, 2, 3$'
cp grader/start/06-*/*.c "$(lab_file 6)"
tape LAB=6
check "make tape says where a lab that is not started stops" has '^the case stops at TODO\(6\) in '
script -qec "stty cols 80; make --silent SEED=1 trace LAB=6" /dev/null < /dev/null 2>&1 | sed 's/\x1b\[[0-9;]*m//g; s/\r//' > out
check "make trace says so in 80 columns" eval "has '^the case stops at TODO\(6\) in ' && [ \"\$(LC_ALL=C.UTF-8 wc -L < out)\" -le 80 ]"

trace
check "a missing LAB is refused" is_refused "LAB is missing"
trace LAB=77
check "an unknown lab is refused" is_refused "there is no lab 77"
trace LAB=6 SOLUTION=1 CASE=99
check "an unknown case is refused" is_refused "lab 6 has cases 0 to"
finish
