#!/usr/bin/env bash
# The labs as they are handed out: not started, and what the solutions make of them.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree skeletons

same_as_start() {
    awk -f grader/start.awk "solutions/${1#labs/}" | cmp -s - "$1"
}
for lab in 1 2 3 4 5 6 7; do
    check "the start file of lab $lab is what its solution's markers make" same_as_start "$(lab_file $lab)"
done

grade
not_started() {
    grep -q "^Lab $1 .*not started  0/" out
}
for lab in 1 2 3 4 5 6 7; do
    check "untouched, lab $lab is not started" not_started $lab
done
check "untouched labs give no points" scores 0/63
check "untouched labs are no success" [ "$status" != 0 ]

printf '\n/* a remark */\n' >> "$(lab_file 5)"
grade LAB=5
check "a remark in a file that works from the start does not start the lab" not_started 5

kept_work() {
    make --silent start LAB=2 > out && grep -q "kept as .*colwise-linear.c.$1" out &&
        cmp -s "$(echo labs/02-*/colwise-linear.c)" "$ROOT"/labs/02-*/colwise-linear.c
}
file=$(lab_file 2)
echo "int mine;" >> "$file"
check "make start keeps a copy of the work" kept_work 1
echo "int other;" >> "$file"
check "make start keeps each copy" kept_work 2
check "a kept copy is the work" grep -q "int other" "$file.2"
refused() {
    ! make --silent start LAB="$1" > out 2>&1 && [ "$(grep -c '^error: ' out)" = 1 ] && grep -q '^  HINT: ' out
}
for lab in 99 abc "1 2" "" 0; do
    check "make start refuses lab '$lab' in one error with a hint" refused "$lab"
done
refused_by_grade() {
    grade LAB="$1"
    [ "$status" != 0 ] && [ "$(grep -c '^error: ' out)" = 1 ] && grep -q '^  HINT: ' out
}
for lab in 99 abc -1 0; do
    check "make grade refuses lab '$lab' in one error with a hint" refused_by_grade "$lab"
done
finish
