#!/usr/bin/env bash
# make report: one case of a lab as a page; for right labs, wrong ones and one that hangs; and what
# it rejects.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree report
unset STACK SEED LAB OUT CASE
export ROOT PYTHONDONTWRITEBYTECODE=1

report() { # report ARGUMENTS...: make report; writes the output to the file out, sets $status
    make --silent report "$@" > out 2>&1
    status=$?
}
page() { # page WHAT NUMBER WORDS...: checks the page of lab NUMBER
    python3 "$ROOT/grader/tests/report_pages.py" "$1" "build/report/lab$2.html" "${@:3}" > out 2>&1
}
page_command() { # the command on a page that makes it again
    python3 -c 'import html, re, sys; print(html.unescape(re.search("<code>(make report .*?)</code>", open(sys.argv[1]).read())[1]))' "$1"
}
right() {
    report LAB="$1" SOLUTION=1 SEED=5 "${@:2}"
    [ "$status" = 0 ] && says "page build/report/lab$1.html" && page is_one_file "$1" && page is_right "$1"
}
wrong_answer() { # wrong_answer MUTANT: makes it the student's lab
    local lab=$((10#${1%%-*})) file
    file=$(lab_file $lab)
    python3 "$ROOT/grader/tests/answer.py" "$1" > "$file"
}
is_refused() { # one error, one HINT, status 2
    [ "$status" = 2 ] && says "$1" && [ "$(grep -c '^error: ' out)" = 1 ] && [ "$(grep -c HINT: out)" = 1 ]
}

for lab in 1 2 3 4 5 6 7 8 9 10; do
    check "lab $lab: the solution has no wrong element, and its blocks cover each matrix once" right $lab
done
check "lab 11 on a cluster: the solution has no wrong element, and its blocks cover each matrix once" right 11 CASE=35 CLUSTER=dgx-2h
check "lab 11: the page draws each replica's work above the sums, and says how much of the sums is exposed" page overlaps 11
check "lab 11, split as well: the solution has no wrong element, and its blocks cover each matrix once" right 11
check "lab 11: the model is split over two ranks, in two replicas" page says 11 "4 ranks in 2 groups of 2" "ranks 0, 2: rows" "ranks 1, 3: rows"
check "lab 6: one matrix is split by rows, the other by columns" page is_cut 6
check "lab 11: the names of matrices are complete" page says 11 "gradient of blocks.0.feed_forward.down.weight, step 1"
check "if everything is right, the first section is open" page opens_what_is_wrong 6
check "the calls of a rank do not overlap" page has_calls 6
check "each check is named with its result" page says 6 "forward ✓ passed" "sharding ✓ passed" "communication ✓ passed"
check "the tape of a rank is a table: what each operation takes and returns, and where its gradient goes" \
    page says 6 "duplication x [2,3,24] whole [2,3,24] copied" "linear of 1 up.weight [18,24] shard(0) [2,3,18] shard(2)" "linear [2,3,48] whole 3, down.weight"
check "who sends to whom is a table" page says 6 "from, to rank to 0 to 1"

check "lab 13: the solution has no wrong element, and its blocks cover each matrix once" right 13 CASE=17
check "what a stage does not hold is not called missing" page lacks_nothing 13
check "lab 13: the page says how many stages there are" page says 13 "one case on 4 ranks in 4 stages"
check "lab 13: above the calls is the schedule: a row per stage, a box per pass, the bubble grey" page has_schedule 13 22 6
check "a lab without stages has no schedule" page has_no_schedule 6
check "with a cluster, the page of a pipeline is right too" right 13 CASE=17 CLUSTER=dgx-h200
check "a pipeline's schedule on a cluster has a row per stage, and ends with the step" page has_stages_in_time 13 4
check "the command on the page names the same cluster" page says 13 "CASE=17 SOLUTION=1 CLUSTER=dgx-h200"
cp "$ROOT/common/bench/clusters/dgx-h200.json" "a cluster.json"
report LAB=13 SOLUTION=1 SEED=7 CASE=17 CLUSTER="a cluster.json" LAYERS=48 HIDDEN_DIM=1600 HEADS=25 SEQ=512 BATCH_SIZE=16
cp build/report/lab13.html first.html
check "the command on the page has every size that was given" page says 13 "LAYERS=48 HIDDEN_DIM=1600 HEADS=25 SEQ=512 BATCH_SIZE=16"
eval "$(page_command first.html)" > out 2>&1
check "the command on the page makes a page with the same case and the same times" page equals_on_cluster 13 first.html
report LAB=13 SOLUTION=1 SEED=7 CASE=17 CLUSTER="a cluster.json" MODEL=large
cp build/report/lab13.html first.html
eval "$(page_command first.html)" > out 2>&1
check "the command on the page of a named model makes the same page, too" page equals_on_cluster 13 first.html
check "with a cluster, the page of a case without a step is right too" right 6 CLUSTER=dgx-2h
check "the page of a case without a step says that it has none" page says 6 "no whole step to replay on a cluster"

wrong_answer 06-no_g
check "a wrong lab is drawn" eval "report LAB=6 SEED=1; [ \$status = 0 ]"
check "the sections with errors are open, and no others" page opens_what_is_wrong 6
check "without the sum, both ranks have wrong elements" page is_wrong_on 6 0 1
check "these elements are terms of a sum" page says 6 "ranks 0, 1: a partial sum: one term of the sum"
check "beside them are the missing sum and what is expected" page says 6 "missing: the sum over ranks 0, 1" "expected ranks 0, 1: all of it"
check "the terms of the first elements add up to the expected numbers" page adds_up 6
check "the element that the reason names is listed below" page lists_what_is_named 6
check "what failed stands first: the matrices" page stands_before 6 "Which rank holds which part of each matrix" "MPI calls"
check "a page with errors begins with the judge's reason and its HINT" page begins_with 6 "forward wrong" "partial sum; it should be whole" "HINT: all_reduce (g) adds the partial sums"
check "points that are held back are shown as such, with the reason" page says 6 "communication held back in at least one direction" "communication ○ held back"
check "one matrix with errors is shown, the other eleven and those without are folded" page folds 6 "11 more with errors" "24 without errors"
wrong_answer 13-one_less_ahead # GPipe's cases show that stages overlap
make --silent grade LAB=13 SEED=1 > whole 2>&1
case=$(sed -nE 's/.*again: make grade .*CASE=([0-9]+).*/\1/p' whole | head -1)
make --silent grade LAB=13 SEED=1 CASE="$case" > out 2>&1
check "a case has results, not points" eval 'says "✓ forward passed" && ! grep -qE "[0-9]+/[0-9]+$|^Score|held back" out'
check "they are those of the lab" diff <(sed -nE 's/^  (. [a-z ]*[a-z]) +[0-9]+\/[0-9]+$/\1/p' whole) <(sed -nE 's/^  (. [a-z ]*[a-z]) +(passed|wrong)$/\1/p' out)
for mutant in 06-no_g 06-no_f 04-no_f 02-row_split 13-one_after_the_other; do
    lab=$((10#${mutant%%-*}))
    wrong_answer $mutant && make --silent grade LAB=$lab SEED=1 > out 2>&1
    case=$(sed -nE 's/.*again: make grade .*CASE=([0-9]+).*/\1/p' out | head -1)
    make --silent grade LAB=$lab SEED=1 CASE="$case" FORMAT=json OUT=verdict.json > out 2>&1
    report LAB=$lab SEED=1 CASE="$case"
    check "$mutant: each check has the status and the reason of make grade CASE=" page equals_verdict $lab verdict.json
done
check "the time begins with the first pass, and groups are made before it" page begins_with_a_pass 13
check "what failed stands first: the schedule, above the calls" eval "page stands_before 13 'Schedule of the pipeline' 'MPI calls' && page stands_before 13 'MPI calls' 'Which rank holds which part of each matrix'"
wrong_answer 06-no_f
report LAB=6 SEED=1
check "the missing sum of an input gradient is drawn, too" \
    page says 6 "ranks 0, 1: a partial sum: one term of the sum" "missing: the sum over ranks 0, 1"
check "with what reaches it past the layer, the terms add up to the expected numbers" page adds_up 6
copy_solution 6
file=$(lab_file 6)
sed -i -E 's/^(    return )(all_reduce\(.*)\);$/    Tensor *y = \2);\n    if (mesh->tp_rank == 1)\n        tensor_data(y)[3] += 1;\n\1y;/' "$file"
make --silent grade LAB=6 SEED=77 > out 2>&1
failed=$(sed -nE 's/.*again: make grade .*CASE=([0-9]+).*/\1/p' out | head -1)
report LAB=6
check "without SEED and CASE, the page shows the case that failed last" says "SEED=77 CASE=${failed:-of no failure}:"
report LAB=6 SEED=1
check "if one element of one rank is wrong, only that rank is marked" page is_wrong_on 6 1
check "the element is shown with the expected number" page says 6 "1 wrong element on rank 1" "rank 1 [0, 0, 3]: is"

wrong_answer 02-output_scaled
report LAB=2 SEED=1
check "a wholly wrong matrix is shaded by the size of its errors" page is_shaded 2
wrong_answer 02-row_split
report LAB=2 SEED=1
check "a wrong split is reported beside right numbers" page says 2 "sharding wrong" "rank 0: columns 0 to" "expected rank 0: rows 0 to"

copy_solution 2
sed -i -e 's/shard(0)/whole()/; /x = duplication/d; s/all_gather(y, LAST, mesh)/y/' "$(lab_file 2)"
report LAB=2 SEED=1
check "points that are held back for one reason are told once" \
    page begins_with 2 "○ forward, input gradient, weight gradient, step, initial values, communication held back the work is not split yet"

copy_solution 2
sed -i 's/^    Tensor \*y = .*linear(.*/    if (mesh->tp_rank == 1)\n        tensor_data(layer->weight)[0] += 1;\n&/' "$(lab_file 2)"
report LAB=2 SEED=1
check "a wrong element of a shard is in the block of its rank" page is_wrong_by_rows_on 2 1

copy_solution 1
sed -i 's/^    return group_all_reduce(mesh->world, x);/    if (mesh->tp_rank == 1)\n        return x;\n&/' "$(lab_file 1)"
report LAB=1 SEED=1
check "a case that hangs is drawn, with the calls that wait" page says 1 "The ranks wait for something that never comes" "rank 1 waits in all_gather"
check "calls that did not return have a kind of their own, and are visible on each rank" page waits_are_seen 1
check "matrices that were not reached are not called right" eval 'page folds 1 "2 more with errors" "3 without errors" && page says 1 "no rank reached: " " and 9 more"'
check "matrices that were not reached are reported, and not as wrong" page says 1 "Not reached on some rank: " "Matrices with errors: " ", with wrong elements on rank 1."

copy_solution 4
sed -i '/layer->output = /s/shard(1)/shard(0)/' "$(lab_file 4)"
report LAB=4 SEED=1
check "a case that ended with an error shows the error" page says 4 "The case ended with an error." "does not fit the weight"

if python3 "$ROOT/grader/tests/report_pages.py" has_browser build/report/lab1.html > out 2>&1; then
    wrong_answer 06-no_f
    LANG=fr_FR.UTF-8 report LAB=6 SEED=1
    check "in French, too, the missing sum stands between its terms and what is expected" page is_side_by_side 6
    for lab in 1 2 6 11 13; do
        check "a browser draws each block of lab $lab, right or wrong, without an error" page is_drawn $lab
    done
    copy_solution 2
    sed -i 's/shard(0)/whole()/' "$(lab_file 2)"
    report LAB=2 SEED=1
    check "the legend has the ranks of what is expected" page explains_colours 2 "rank 0" "rank 1" "a copy on each rank" "wrong element (stronger: a larger error)"
    check "the legend has one colour for ranks that hold the same" page explains_colours 11 "ranks 0, 2" "ranks 1, 3" "a copy on each rank"
else
    echo "skip - a browser draws the pages: chromium is not installed"
fi

cp "$ROOT/labs/06-colrow-pair/colrow-pair.c" "$file"
report LAB=6 SEED=1
check "the page of a lab that is not started shows the TODO" page says 6 "TODO(6)" "– to do"
check "and does not say that the case ran to completion" [ "$(grep -c 'ran to completion' build/report/lab6.html)" = 0 ]
echo nonsense >> "$file"
report LAB=6
check "for a lab that does not build, there is an error and no page" eval "[ $status != 0 ] && says 'does not compile' && [ ! -e build/report/lab6.html ]"
copy_solution 6
report
check "a missing LAB is refused" is_refused "LAB is missing"
report LAB=6 SOLUTION=1 OUT=none/page.html
check "a page in a missing folder is refused" is_refused "there is no folder none"
echo precious > precious.html
report LAB=6 SOLUTION=1 OUT=precious.html
check "a page does not replace another file" eval "is_refused 'is not a page' && [ \"\$(cat precious.html)\" = precious ]"
report LAB=6 SOLUTION=1 OUT="a page.html"
check "the page is written where OUT says" eval "[ $status = 0 ] && [ -s 'a page.html' ]"
cp "a page.html" first.html
for given in CLUSTER=nowhere CASE=999 SEED=x LAB=99; do
    report LAB=6 SOLUTION=1 OUT="a page.html" "$given"
    check "$given is refused, and an earlier page stays" eval "is_refused '' && cmp -s 'a page.html' first.html"
done
finish
