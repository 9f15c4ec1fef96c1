#!/usr/bin/env bash
# A lab can write to its records. Nonsense there must fail a check, and have no other effect.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree records
make --silent build/grade > out 2>&1
mkdir -p runners
# shellcheck disable=SC2046 # flags are words
gcc -std=gnu17 -D_GNU_SOURCE -I"$ROOT" -I"$ROOT/common" "$ROOT/grader/tests/hostile_runner.c" \
    "build/double/grader/labs/stamp.o" -o hostile 2> out
for lab in 1 6; do
    for kind in 0 1 2 3; do cp hostile "runners/0$lab-hostile$kind"; done
done

# fails LAB KIND: the lab gets no points, and the judge ends normally.
fails() {
    timeout 300 build/grade --lab "$1" --author "hostile$2" --runners runners --seed 1 > out 2>&1
    local ended=$?
    [ "$ended" = 1 ] && grep -q '^Score: 0/' out
}
# shows_clean LAB: what shows a record has no control characters of its names.
shows_clean() {
    local view
    for view in --trace --tape "--report picture"; do
        # shellcheck disable=SC2086 # an option and its value
        timeout 300 build/grade --lab "$1" --author hostile2 --runners runners --seed 1 --case 5 $view || return
    done > out 2>&1
    cat picture >> out
    [ "$(wc -l < out)" -gt 40 ] && ! LC_ALL=C grep -q $'[\001-\010\013-\037\177]' out
}
for lab in 1 6; do
    check "lab $lab: a record cannot command the terminal" shows_clean $lab
    check "lab $lab: a record that claims to be endless is a failure" fails $lab 0
    check "lab $lab: entries that claim to be endless are a failure" fails $lab 1
    check "lab $lab: shapes and ranges that make no sense are a failure" fails $lab 2
    check "lab $lab: a rank that leaves after writing nonsense is a failure" fails $lab 3
done

# A runner built with another protocol.
make --silent build/runners/01-solution > out 2>&1
stamp=$(grep -ao 'balise protocol [0-9a-f]*' build/runners/01-solution)
sed "s/$stamp/balise protocol 0123456789abcdef/" build/runners/01-solution > runners/01-stale
sed "s/$stamp/balise                          /" build/runners/01-solution > runners/01-older
chmod +x runners/*
is_refused() { # AUTHOR WORDS
    timeout 300 build/grade --lab 1 --author "$1" --runners runners --seed 1 > out 2>&1
    [ $? = 2 ] && [ "$(grep -c '^error: ' out)" = 1 ] && grep -q '^  HINT: make ' out && says "$2"
}
check "a runner of another protocol is refused before it runs" is_refused stale "were built with different protocols"
check "a runner without a stamp is refused before it runs" is_refused older "were built with different protocols"
check "a missing runner is one error" is_refused none "there is no runner: No such file"
finish
