#!/usr/bin/env bash
# Records are written where a lab could write: nonsense there is a failed check, and never more.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree records
make --silent build/grade > out 2>&1
mkdir -p runners
# shellcheck disable=SC2046 # flags are words
gcc -std=gnu17 -D_GNU_SOURCE -I"$ROOT" -I"$ROOT/common" "$ROOT/grader/tests/hostile_runner.c" -o hostile 2> out
for lab in 1 6; do
    for kind in 0 1 2 3; do cp hostile "runners/0$lab-hostile$kind"; done
done

# fails LAB KIND: no points, and no other end than that of a failure.
fails() {
    timeout 120 build/grade --lab "$1" --author "hostile$2" --runners runners --seed 1 > out 2>&1
    local ended=$?
    [ "$ended" = 1 ] && grep -q '^Score: 0/' out
}
for lab in 1 6; do
    check "lab $lab: a record that claims to be endless is a failure" fails $lab 0
    check "lab $lab: entries that claim to be endless are a failure" fails $lab 1
    check "lab $lab: shapes and ranges that make no sense are a failure" fails $lab 2
    check "lab $lab: a rank that leaves after writing nonsense is a failure" fails $lab 3
done
finish
