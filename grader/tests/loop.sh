#!/usr/bin/env bash
# The student's commands progress, hint, solution, reset and watch, as a student uses them.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree loop
unset STACK SEED LAB
six=$(lab_file 6)

run() { # run COMMAND...: writes its output to the file out, sets $status
    "$@" > out 2>&1
    status=$?
}
line_of() { # line_of LAB WORDS: the row of the lab in make progress
    make --silent progress > out 2>&1 && grep -qE "^ +$1 +.*$2" out
}
one_error() { # one_error WORDS COMMAND...
    run "${@:2}"
    [ "$status" = 2 ] && [ "$(grep -c '^error: ' out)" = 1 ] && [ "$(grep -c 'HINT: ' out)" = 1 ] && says "$1"
}
gives_hint() { # gives_hint NUMBER OF ARGUMENTS...
    run make --silent hint LAB=6 "${@:3}"
    [ "$status" = 0 ] && grep -q "^hint $1 of $2" out && [ "$(grep -c '^hint ' out)" = 1 ] && tr -s ' \n' ' ' < out | grep -qF -- "$(sed -n 3p "labs/06-colrow-pair/hints/$1.md")"
}
hints=$(find labs/06-*/hints -name '*[0-9].md' | wc -l)
every_hint_in_turn() {
    local n
    for ((n = 1; n <= hints; n++)); do
        gives_hint "$n" "$hints" || return
    done
    run make --silent hint LAB=6
    says "all $hints hints of lab 6 have been shown" && [ "$(grep -c '^hint ' out)" = 0 ]
}
all_again() {
    run make --silent hint LAB=6 AGAIN=1
    [ "$(grep -c '^hint ' out)" = "$hints" ]
}

check "at first no lab is started, and the first one is next" line_of 6 '- +not started' && check "the next step is lab 1" says "next: read labs/01-"
check "hints come one at a time, and each once" every_hint_in_turn
check "AGAIN=1 shows the hints that were shown before" all_again
check "progress shows how many hints were shown" line_of 6 "$hints/$hints"
check "an unknown lab is one error" one_error "there is no lab '42'" make --silent hint LAB=42
check "a missing LAB is one error" one_error "LAB is missing" make --silent hint

check "the reference is not shown before the lab is graded" one_error "not been graded yet" make --silent solution LAB=6
copy_solution 6
sed -i 's/gelu(linear(x, layer->up))/linear(x, layer->up)/' "$six"
grade LAB=6
check "the table has the points of a graded lab, and what is wrong" line_of 6 "[1-9]/10 .*✗ forward, "
check "the reference is not shown before full marks" one_error "of 10 points" make --silent solution LAB=6
with_ask() {
    run make --silent solution LAB=6 ASK=1
    [ "$status" = 0 ] && grep -q '^+.*gelu(linear' out && grep -q '^-.*dropout, linear' out && [ "$(grep -c '^[-+] ' out)" = 2 ] && ! grep -q '///' out
}
check "ASK=1 shows where the reference differs, and nothing else" with_ask
copy_solution 6
echo '/* mine */' >> "$six"
check "a file that was changed since it was graded is marked" line_of 6 "changed since"
check "old points do not unlock its reference" one_error "lab 6 has to be graded again: changed since" make --silent solution LAB=6
grade LAB=6
check "full marks are marked" line_of 6 "10/10 .*✓"
grade LAB=6
check "after full marks, make grade names the next lab" says "next: read labs/07-block-classifier/README.md, then edit labs/07-block-classifier/block-classifier.c"
python3 "$ROOT/grader/tests/answer.py" 06-no_g > 06.c && cp "$six" kept.c && cp 06.c "$six"
script -qec "make --silent SEED=1 grade LAB=6" /dev/null < /dev/null > out 2>&1
check "on a terminal, held back is yellow, and a HINT stands out" eval "grep -q \$'\\e\\[33mheld back' out && grep -q \$'\\e\\[1m *HINT: ' out"
ends() { # ends STATUS LINES COMMAND...: make exits with this status, and prints so many lines of its own
    run env "${@:3}"
    [ "$status" = "$1" ] && [ "$(grep -c '^make' out)" = "$2" ]
}
check "if points are missing, make exits with status 1, and prints no error" ends 1 0 --default-signal=QUIT make grade LAB=6
check "so it does with -j2" ends 1 0 --default-signal=QUIT make -j2 grade LAB=6
check "with -k, make goes on, and its status is 2" eval "ends 2 1 --default-signal=QUIT make -k grade progress LAB=6 && says 'points when last graded'"
check "a make that ignores SIGQUIT fails too" ends 2 1 --ignore-signal=QUIT make grade LAB=6
check "if it could not grade, its status is 2" ends 2 1 --default-signal=QUIT make grade LAB=6 CASE=99
a_link_is_named_or_followed() {
    ln -sf "$PWD/kept.c" "$six"
    grade LAB=6
    says "lab 6 is a link to $(realpath kept.c), outside of its folder ($six)" && says "HINT: put the file itself there" || return
    cp kept.c "${six%/*}/mine.c" && ln -sf mine.c "$six"
    grade LAB=6
    scores 10/10 || return
    cp 06.c "${six%/*}/mine.c"
    grade LAB=6
    says "held back" && rm "${six%/*}/mine.c" "$six"
}
check "a lab that is a link is followed within its folder only, and compiled again when its target changes" a_link_is_named_or_followed
cp kept.c "$six"
grade LAB=6
after_full_marks() {
    run make --silent solution LAB=6
    [ "$status" = 0 ] && grep -q '^-/\* mine' out
}
check "after full marks the reference is shown" after_full_marks
grade SOLUTION=1 LAB=5
check "grading the solutions does not count as progress" line_of 5 "- +not started"
SEED='' grade LAB=6 CASE=1
check "grading a single case does not count as progress" line_of 6 "10/10 .*✓"
grade
check "grading all labs at once counts too" line_of 1 "0/9 .*not started" && check "and keeps the earlier verdicts" line_of 6 "10/10"

reset_keeps_the_work() {
    run make --silent reset LAB=6
    [ "$status" = 0 ] && grep -q mine "$six.1" && line_of 6 '- +not started'
}
work_comes_back() { # a restored file may be older than the object built from the start file
    local two
    copy_solution 2
    two=$(lab_file 2)
    cp -p "$two" kept.c
    sleep 1
    make --silent start LAB=2 > out 2>&1 || return
    grade LAB=2
    says "not started" || return
    cp -p kept.c "$two"
    grade LAB=2
    scores 9/9 || return
    mv "$two" away.c
    grade LAB=2
    says "has no file" || return
    mv away.c "$two"
    grade LAB=2
    scores 9/9
}
what_is_included_counts() {
    local two mine
    copy_solution 2
    two=$(lab_file 2) mine=$(dirname "$two")/$1
    echo '#define NOTHING' > "$mine"
    sed -i "1i #include \"$1\"" "$two"
    grade LAB=2
    scores 9/9 || return
    echo '#error changed' > "$mine"
    grade LAB=2
    rm "$mine"
    says "does not build"
}
compiler_has_its_own_files() {
    mkdir -p "ä b"
    touch "$(lab_file 1)" && copy_solution 1
    TMPDIR="$PWD/ä b" grade LAB=1
    scores 9/9
}
check "reset restores the start file, forgets the points and the hints, and keeps the work" reset_keeps_the_work

check "restored work with its old date is graded" work_comes_back
check "a change in a file that the lab includes is graded" what_is_included_counts mine.h
check "whatever the name of that file" what_is_included_counts notes.md
one_case_alone() { # grading a single case of a right lab
    copy_solution 11
    grade LAB=11 CASE=1
    [ "$status" = 0 ] && ! grep -q '✗' out && says "not in this case" && says "(1 case, " && ! grep -qE '[0-9]+/[0-9]+|^Score' out && says "omit CASE"
}
check "checks that a single case does not cover are neither earned nor missing" one_case_alone
check "a lab is graded if TMPDIR has a blank" compiler_has_its_own_files
make --silent start LAB=2 > out 2>&1

resets_one_alone() {
    copy_solution 1
    grade LAB=1
    line_of 1 "9/9" && make --silent reset LAB=3 > out 2>&1 && line_of 1 "9/9"
}
check "reset of one lab keeps the last verdicts of the others" resets_one_alone

stands_on_a_changed_lab() {
    copy_solution 1
    copy_solution 2
    copy_solution 5
    grade LAB=5 STACK=mine
    line_of 5 "8/8 .*✓$" || return
    touch "$(lab_file 2)"
    line_of 5 "lab 2, which it builds on, has changed since"
}
check "points of a lab are marked if a lab on which it builds has changed" stands_on_a_changed_lab
narrow() { # on a terminal of 60 columns, no line of progress or of a report is longer
    sed -i 's/gelu(linear(x, layer->up))/linear(x, layer->up)/' "$six"
    local command
    for command in 'progress' 'grade LAB=6 SEED=1'; do
        script -qec "stty cols 60; make --silent $command" /dev/null < /dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' > out
        grep -q 'ColRowLinearPair' out && ! awk 'length($0) > 60 { found = 1 } END { exit !found }' out || return
    done
}
copy_solution 6
check "the output fits a narrow terminal" narrow
on_one_screen() { # with the prompt, a terminal of 24 lines shows the cause, in both languages
    python3 "$ROOT/grader/tests/answer.py" 02-split_by_inputs > "$(lab_file 2)"
    local language
    for language in en fr; do
        script -qec "stty cols 80; LANG=${language}_FR.UTF-8 make --silent grade LAB=2 SEED=1" /dev/null < /dev/null | tail -23 > out
        grep -qE 'wrong dimension|mauvaise dimension' out || return
    done
}
check "the cause and all that is below it fit on a screen" on_one_screen
cut_short() {
    make --silent progress 2> out | head -1 > /dev/null
    [ ! -s out ]
}
check "output that is not read to its end is not an error" cut_short

# ---- watch ----

waits_for() { # waits_for WORDS: waits until the file watched has them, at most five minutes
    local i
    for ((i = 0; i < 3000; i++)); do
        grep -qF -- "$1" watched && return
        sleep 0.1
    done
    cp watched out
    return 1
}
copy_solution 2
two=$(lab_file 2)
sed -i 's/shard(0)/shard(1)/' "$two"
setsid env --default-signal=INT make --silent watch LAB=2 > watched 2>&1 & # lets SIGINT through
watcher=$!
graded_first() {
    waits_for "waiting for $(basename "$two")" && grep -q '✗ sharding' watched
}
check "watch grades the lab at once" graded_first
scaled() { # scaled FACTOR: the solution, whose output is FACTOR times too large
    : > watched
    sed -E "s/^    (Tensor \*y = linear\(.*)/    \1\n    scale(y, $1);/" "$ROOT/solutions/${two#labs/}" > "$two.new" && mv "$two.new" "$two"
    waits_for "waiting for $(basename "$two")"
}
reason_changes() {
    scaled 0.5f && scaled -1 && grep -qF "forward: the reason has changed" watched && ! grep -q "verdict has not changed" watched &&
        scaled -1 && grep -q "verdict has not changed" watched
}
check "if a check fails for another reason, watch says so" reason_changes
place_changes() {
    local change
    for change in '/duplication/d' 's|.*duplication.*|\n|'; do
        : > watched
        sed "$change" "$ROOT/solutions/${two#labs/}" > "$two.new" && mv "$two.new" "$two"
        waits_for "waiting for $(basename "$two")" || return
    done
    grep -qE "input gradient: the same reason, now at colwise-linear.c:[0-9]+" watched
}
check "if a check fails for the same reason at another line, watch names the line" place_changes
graded_again() {
    : > watched
    cp "$ROOT/solutions/${two#labs/}" "$two.new" && mv "$two.new" "$two"
    waits_for "waiting for $(basename "$two")" && grep -qF "input gradient: wrong → passed" watched && grep -qE '^ +[0-9] → 9 points' watched
}
check "when the file is saved, watch grades it again and prints what has changed" graded_again
stops_building() {
    : > watched
    echo nonsense > "$two.new" && mv "$two.new" "$two"
    waits_for "waiting for $(basename "$two")" && grep -qF "all checks: passed → does not build" watched && [ "$(grep -c '→' watched)" = 2 ]
}
check "if all checks change alike, watch says so in one line" stops_building
says_why_not() {
    : > watched
    ln -s someone@somewhere.1 "${two%/*}/.#${two##*/}" # as Emacs does while a change is not saved
    mkfifo "$two.pipe" && mv "$two.pipe" "$two"
    waits_for "waiting for $(basename "$two")" && grep -qF "lab 2 cannot be read from $two: it is not a file" watched &&
        ! grep -qE 'verdict has not changed|points|make: \*\*\*' watched
}
check "if the file cannot be graded, watch says why, and goes on" says_why_not
kill -INT -- -"$watcher" 2> /dev/null
wait "$watcher"
rm "${two%/*}/.#${two##*/}"
check "Ctrl-C ends watch, and make prints no error" eval "[ ! -e /proc/$watcher ] && ! grep -qF 'make: ***' watched"
mv "$two" "$two.away"
check "watching a missing file is one error" one_error "there is no $two" make --silent watch LAB=2
# A build that a limit ends, as on a laptop that sleeps: the next grade tries again.
copy_solution 1
echo "/* later */" >> "$(lab_file 1)"
mkdir stuck && printf '#!/bin/sh\nsleep 30\n' > stuck/readelf && chmod +x stuck/readelf
COMPILE_SECONDS=1 PATH=$PWD/stuck:$PATH run make --silent grade LAB=1
check "a time limit is said to be the reason" says "cannot be examined, or not in time"
run make --silent grade LAB=1
check "after a time limit, the next grade compiles the lab again" says "Score: 9/9"
mv stuck/readelf stuck/objcopy && rm build/runners/01-student
COMPILE_SECONDS=1 PATH=$PWD/stuck:$PATH run make --silent grade LAB=1
check "a time limit is said to be the reason why a lab does not link" says "the linker was stopped"
rm -r stuck
run make --silent grade LAB=1
check "after a time limit, the next grade links the lab again" says "Score: 9/9"
finish
