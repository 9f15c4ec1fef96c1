#!/usr/bin/env bash
# The labs as handed out are not started, and the solutions complete them.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree skeletons

same_as_start() {
    cmp "grader/start/${1#labs/}" "$1" > out 2>&1
}
read -ra labs < <(sed -n 's/^..call add_lab,\([0-9]*\),.*/\1/p' grader/labs.mk | paste -sd ' ')
for lab in "${labs[@]}"; do
    [ "$lab" = 9 ] || check "lab $lab is handed out as its start file in grader/start" same_as_start "$(lab_file "$lab")"
done

# Without comments, includes, and lines that hold a brace only.
in_25_lines() {
    [ "$(grep -cvE '^$|^ *[{}]$|^#include|^/\*|^ \*' "$1")" -le 25 ]
}
for file in solutions/*/*.c; do
    check "$file has at most 25 lines" in_25_lines "$file"
done

not_started() {
    grep -q "^Lab $1 .*not started  0/" out
}
grade PART=2
for lab in "${labs[@]:11}"; do
    check "untouched, lab $lab is not started" not_started "$lab"
done
check "part 2 has points of its own" scores 0/100
grade
for lab in "${labs[@]:0:11}"; do
    check "untouched, lab $lab is not started" not_started "$lab"
done
check "part 1 is graded without part 2" eval '! not_started 12'
check "the report on an untouched lab 9 says how to begin it" says "make start LAB=9"
check "untouched labs give no points" scores 0/100
check "untouched labs end make with an error" [ "$status" != 0 ]

for lab in 5 7 8 10 11 12; do
    printf '\n/* a remark */\n' >> "$(lab_file $lab)"
    grade LAB=$lab
    check "a comment added to a start file that works does not start lab $lab" not_started $lab
done

# Lab 1 while it is being written, one TODO after the other.
write_next() { # LINE: replaces the first remaining TODO
    sed -i "0,/^    TODO(1);.*/s//    $1/" "$(lab_file 1)"
    grade LAB=1
}
write_next "return x;"
check "a half-written lab counts as started" eval '! not_started 1'
check "a half-written lab shows which TODO is next" says "next: TODO(1) in duplication_backward, collectives.c:13"
check "a half-written lab without errors is called right so far" says "everything before it is right so far"
check "checks after a TODO are to do, and earn nothing" eval 'says "0/4 to do" && scores 0/9'
write_next "return dy;"
check "an error before the next TODO is reported with its cause" eval \
    'says "those of the other ranks are missing" && says "everything before it has been judged" && ! says "right so far"'
make --silent start LAB=1 > out 2>&1
copy_solution 1
own_lab_1() {
    make --silent start LAB=9 > out 2>&1 && cmp -s labs/09-*/*.c "$(lab_file 1)"
}
check "make start LAB=9 copies the student's own lab 1" own_lab_1
grade LAB=9
check "lab 9 is not started while it is an unchanged lab 1" not_started 9
check "the report on such a lab 9 says what to do" says "replace the world with the tp group"
sed -i 's/mesh->world/mesh->tp/' "$(lab_file 9)"
grade LAB=9
check "the solution of lab 1, with the world replaced by the tp group, is right for lab 9" scores 8/8
copy_solution 8
grade LAB=8
check "the solution of lab 8 in the student's place has full marks" scores 7/7

# In a start file that works, unchanged functions are "to do", not wrong.
sed -i 's|    /\* TODO(11): 3 lines \*/|    group_sum(mesh->dp, \&metrics->loss_sum, 3);|' "$(lab_file 11)"
grade LAB=11
to_do() {
    grep -qE "^  · $1 +0/[0-9]+  to do" out
}
check "the metrics of lab 11 are right before the rest is written" says "metrics 2/2"
for name in rows gradient layout; do
    check "untouched functions of lab 11 are to do: $name" to_do "$name"
done
check "lab 11 says which function is next" says "next: TODO(11) in sampler_set_epoch"
sed -i 's|    /\* TODO(11): 4 lines \*/|    (void)count;|' "$(lab_file 11)"
grade LAB=11
check "a function of lab 11 is judged once it is started" eval 'says "✗ gradient" && to_do rows'

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
