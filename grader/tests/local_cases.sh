#!/usr/bin/env bash
# An instructor's cases, layouts and points (grader/cases.local): they take effect, and an invalid
# line is one error with its number. Shapes draw new inputs for each seed.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree local_cases
copy_solution 2
make --silent build/runners/02-student > out 2>&1

judge() { # ARGUMENTS...: grades lab 2 with the cases of the file local
    build/grade --author student --lab 2 --seed 1 --cases local "$@" > out 2>&1
    status=$?
}
runs() { # runs CASES RANKS: this many cases are run, on up to RANKS ranks
    [ "$status" = 0 ] && says "($1 cases on up to $2 ranks"
}
runs_one() {
    [ "$status" = 0 ] && says "(1 case, "
}
build/grade --author student --lab 2 --seed 1 > out 2>&1
usual=$(sed -nE 's/.*\(([0-9]+) cases on up to 4 ranks.*/\1/p' out)
: > local
judge
check "an empty file changes nothing" runs "$usual" 4
printf '# nothing\n\n  \t\nseed 5 6 # two\n' > local
judge
check "the cases of two more seeds are run" runs $((3 * usual)) 4
printf 'shape 2 B=3 S=7 H=40 OUT=24\r\nshape 2 H=12 AT=3' > local
judge
check "a shape is run at each layout, or at the one that it names" runs $((usual + 5)) 4
judge --case $((usual + 4))
check "the last case is an instructor's, and can be repeated alone" runs_one
judge --case $((usual + 5))
check "a case beyond the last is refused" fails_saying "lab 2 has cases 0 to $((usual + 4))"
printf 'layout 2 6\npoints 2 sharding=5 forward=7\n' > local
judge
check "a layout is added" runs $((usual + 3)) 6
check "points are the instructor's" scores 18/18

# A wrong answer that fails only with an instructor's shape.
sed -i 's/^    Tensor \*y = linear.*/&\n    if (tensor_size(x, 2) == 41)\n        scale(y, 2);/' "$(lab_file 2)"
make --silent build/runners/02-student > out 2>&1
: > local
judge
check "a wrong answer for a width that is never drawn passes" [ "$status" = 0 ]
echo 'shape 2 H=41' > local
judge
check "an instructor's shape finds it, and says which" fails_saying "in=41"
check "the command repeats the instructor's case" says "CASE=$usual"

refused() { # SENTENCE, WORDS, LINE NUMBER, FILE
    printf '%b' "$4" > local
    judge
    [ "$status" = 2 ] && [ "$(grep -c '^error: ' out)" = 1 ] && grep -q '^  HINT: ' out && says "$2" && says "at local:$3 " &&
        ! grep -q '^Lab ' out
    check "$1" [ $? = 0 ]
}
refused "a layout that a lab's sizes do not allow is refused" "lab 12 cannot be graded at 3x3: tp must divide A" 1 'layout 12 3x3'
refused "more layouts than a lab can have cases are refused" "lab 14 has more than 64 cases now" 1 'layout 14 2x2 3x1 3x3 6x6'
refused "a shape whose record has no room is refused" "a rank's record is larger than" 1 'shape 18 BLOCKS=8'
refused "an unknown keyword is refused" "a line cannot begin with 'sed'" 2 'seed 1\nsed 2\n'
refused "an invalid seed is refused" "'-1' is not a seed" 1 'seed -1'
refused "a seed beyond 64 bits is refused" "is not a seed" 1 'seed 99999999999999999999'
refused "a missing seed is refused" "a seed is missing" 1 'seed # 5'
refused "a ninth seed is refused" "more than 8 seeds" 1 'seed 1 2 3 4 5 6 7 8 9'
rm -f local && mkfifo local
judge
check "a FIFO is refused, not waited for" eval "[ $status = 2 ] && says 'the local cases cannot be read'"
rm -f local
refused "a lab that does not exist is refused" "there is no lab '42'" 1 'shape 42 B=2'
refused "a missing lab is refused" "the lab number is missing" 3 '\n\npoints'
refused "a size that the lab lacks is refused" "lab 2 has no size 'A=4'" 1 'shape 2 A=4'
refused "a size of zero is refused" "is not a size" 1 'shape 2 B=0'
refused "a size that is too large is refused with the allowed range" "H is a whole number from 1 to 512" 1 'shape 2 H=513'
refused "a tensor length that is too large is refused with the allowed range" "N is a whole number from 1 to 100000" 1 'shape 15 N=100001'
refused "too much work is refused" "B times S times H" 1 'shape 2 B=16 S=64 H=512'
refused "a size not divisible by tp is refused" "tp must divide OUT" 2 '\nshape 2 OUT=50'
refused "heads not divisible by tp of a layout on a later line are refused" "with tp = 8: tp must divide A" 1 'shape 7 A=12 H=48\nlayout 7 8'
refused "a layout that the lab is not graded at is refused" "lab 2 is not graded at '6'" 1 'shape 2 AT=6'
refused "a world larger than tp is refused before lab 8" "lab 2 has no layout '4x2'" 1 'layout 2 4x2'
refused "a layout whose world is not divisible by tp is refused" "lab 8 has no layout '6x4'" 1 'layout 8 6x4'
refused "too many ranks are refused" "lab 8 has no layout '16x2'" 1 'layout 8 16x2'
refused "a layout twice is refused" "lab 8 is already graded at 4x2" 1 'layout 8 4x2'
refused "a check that the lab lacks is refused" "lab 2 has no check 'rows=3'" 1 'points 2 rows=3'
refused "zero points are refused" "'0' is not a number of points" 1 'points 2 forward=0'
refused "half a point is refused" "'1.5' is not a number of points" 1 'points 2 forward=1.5'
refused "sizes for a lab without any are refused" "lab 8 has no sizes" 1 'shape 8 B=2'
refused "too many cases are refused" "more than 64 cases" 1 "$(printf 'shape 2 B=2\\n%.0s' {1..14})"
refused "a line that is too long is refused" "the line is too long" 1 "$(printf 'seed 1 %.0s' {1..300})"
sed -n '/^    # Cases of this term/,/^$/s/^    //p' "$ROOT/grader/README.md" > local
judge
check "the example of grader/README.md is read" [ "$(wc -l < local)" = 7 -a "$status" = 0 ]
documented() { # "LAB SIZE" for each size that grader/README.md lists
    tr '\n' ' ' < "$ROOT/grader/README.md" | sed -E 's/.*Sizes by lab: ([^.]*)\..*/\1/; s/\([^)]*\)//g; s/;/\n/g; s/labs|and|,//g' |
        awk '{ for (n = 0; $(n + 1) != "in"; n++) size[n] = $(n + 1)
               for (i = n + 2; i <= NF; i++) { first = last = $i; if ($(i + 1) == "to") { last = $(i + 2); i += 2 }
                   for (lab = first; lab <= last; lab++) for (k = 0; k < n; k++) print lab, size[k] } }' | sort
}
accepted() { # "LAB SIZE" for each size that the grader accepts
    for lab in $(build/grade --list | sed -nE 's/.*"number": ?([0-9]+).*/\1/p'); do
        echo "shape $lab X=1" > local
        judge
        sed -nE 's/.*the sizes are: (.*); AT=.*/\1/p' out | tr ' ' '\n' | sed "s/^/$lab /"
    done | sort
}
check "the sizes of each lab are those that grader/README.md lists" [ -n "$(documented)" -a "$(documented)" = "$(accepted)" ]
rm local
judge
check "a missing file is refused" fails_saying "No such file"

# make grade reads grader/cases.local.
rm grader && cp -rp "$ROOT/grader" grader # keeps the times, so that nothing is built again
echo 'points 8 groups=3' > grader/cases.local
grade LAB=8 SOLUTION=1
check "make grade reads grader/cases.local" scores 3/3
check "make grade says that it does" says "grader/cases.local"

# Some cases have shapes drawn from the seed: ten seeds give at least four different ones.
sed -i 's/^    Tensor \*y = linear.*/&\n    scale(y, 2);/' "$(lab_file 2)"
make --silent build/runners/02-student > out 2>&1
for seed in {1..10}; do
    build/grade --author student --lab 2 --seed "$seed" --case 4 | grep -o 'in=[0-9]* out=[0-9]*' | head -1
done | sort | uniq > shapes
check "different seeds give different shapes" [ "$(wc -l < shapes)" -ge 4 ]
finish
