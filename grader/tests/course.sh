#!/usr/bin/env bash
# The course as a student takes it: the training runs in each lab's text, with the labs up to that one
# solved and the others not started. All runs of one size train the same model, so they end with the
# same loss. slow_course.sh sets RUNS to labs of part 2 whose texts train, and continues where this
# file returns.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree course
BUILT=$BUILD
LABS=$(sed -n 's/^..call add_lab,\([0-9]*\),.*/\1/p' grader/labs.mk | paste -sd ' ')

# runs_of LAB: the options of the short runs in its text, one line per run.
runs_of() {
    sed -n 's/^    make train \(.*STEPS=20\)$/\1/p' labs/"$(printf %02d "$1")"-*/README.md
}
last_loss() {
    grep '^step 20/20 ' out | tail -1 | sed 's/.* loss \([0-9.]*\) .*/\1/'
}
# train OPTIONS...: runs make train; sets $status, and writes its output to the file out.
train() {
    make --silent train "$@" > out 2>&1
    status=$?
}
# Losses are printed with six digits; rounding may change the last one.
same_loss() {
    [ "$status" = 0 ] && awk -v a="$1" -v b="$(last_loss)" 'BEGIN { exit !(b > 0 && (a - b) ^ 2 < 1e-10) }'
}
column() { # column NUMBER RANK
    awk -v rank="$2" -v n="$1" '/^rank +peak/ { table = 1; next } table && $1 == rank { print $n }' out
}

copy_solution 8
train STACK=mine NTASKS=1 TP=1 STEPS=1 BATCH_SIZE=2
check "a lab solved too early is named, with the labs that are missing before it" \
    grep -q "^not used  your labs: 8; needed first, not started: 1 2 3 4 5$" out

# The losses of the first and the last step equal those in lab 21's text.
losses_of_the_text() {
    local step
    for step in 1 20; do
        grep -qF "$(sed -n "s|^step $step/20 .* loss \\([0-9.]*\\) .*|\\1|p" out | xargs printf %.4f)" labs/21-*/README.md || return
    done
}
told_in_the_text() {
    local text
    for text in labs/"$(printf %02d "$1")"-*/README{,.fr}.md; do
        ! grep -q '0\.698575' "$text" || grep -qE "^\|.* 0\.698575 .* $(column 2 0) M[Bo] " "$text" || return
    done
}

declare -A reference peak
solved=0
seen() {
    peak[$1]=$(column 2 0)
}

for lab in ${RUNS:-1 5 7 9 11}; do
    for n in $LABS; do
        ((n > solved && n <= lab)) || continue
        [ "$n" != 9 ] || make --silent start LAB=9 > out 2>&1
        copy_solution "$n"
    done
    solved=$lab
    while read -r -a options; do
        train "${options[@]}"
        batch=$(tr ' ' '\n' <<< "${options[*]}" | sed -n 's/BATCH_SIZE=//p')
        # Runs of one size train the same model, whatever their layout.
        size=$(tr ' ' '\n' <<< "${options[*]}" | grep -E '^(MODEL|BATCH_SIZE|LAYERS|CLIP)=' | paste -sd ' ')
        : "${reference[$size]:=$(last_loss)}"
        check "lab $lab: ${options[*]} ends with the loss of the first run of this size" same_loss "${reference[$size]}"
        [ "$lab" != 5 ] || [[ ${options[*]} != *STACK=mine* ]] || check "lab 5: the labs in it are the student's own" \
            grep -q "^stack     your labs: 1 2 3 4 5; the reference: none" out
        [ "$lab" != 7 ] || [[ ${options[*]} == *UPTO* ]] || check "lab 7: the labs in it are the student's own" \
            grep -q "^stack     your labs: 1 3 4 6 7; the reference: none" out
        [ "$lab" != 11 ] || [[ ${options[*]} != *STACK=mine* ]] || check "lab 11: the labs in it are the student's own" \
            grep -q "^stack     your labs: 3 4 6 7 8 9 10 11; the reference: none" out
        [ "$lab" != 21 ] || check "lab 21: ${options[*]::3} has the losses that the text says" losses_of_the_text
        seen "$lab ${options[*]::3}"
        # The table of last losses in the text shows this peak, in both languages; runs of other
        # sizes are in no table.
        [ "$batch" != 8 ] || check "lab $lab: ${options[*]::4} needs the memory that the text says" told_in_the_text "$lab"
    done < <(runs_of "$lab")
done
[ -z "${RUNS:-}" ] || return # to slow_course.sh
falls() { # with tp
    awk -v a="${peak[11 NTASKS=1 TP=1 STACK=serial]}" -v b="${peak[11 NTASKS=2 TP=2 STACK=mine]}" \
        -v c="${peak[11 NTASKS=4 TP=4 STACK=mine]}" 'BEGIN { exit !(0 < c && c < 0.75 * b && b < 0.75 * a) }'
}
check "the memory of a rank falls with tp" falls
same() {
    [ "$(column 2 0)" != "" ] && [ "${peak[9 NTASKS=2 TP=2 STACK=mine]}" = "${peak[9 NTASKS=4 TP=2 STACK=mine]}" ]
}
check "two replicas that share no work yet need as much memory per rank as one" same
# The first screen of a text has the task, the command, and a full mark with the lab's points.
begins_with_the_task() { # begins_with_the_task LAB TEXT
    head -48 "$2" > screen
    python3 - "$1" "$BUILT/generated/labs.json" << 'PYTHON'
import json, re, sys
lab = next(lab for lab in json.load(open(sys.argv[2])) if lab["number"] == int(sys.argv[1]))
screen, points = open("screen").read(), list(lab["points"].values())
assert f"`make grade LAB={sys.argv[1]}`" in screen and f"/{lab['file']}`" in screen, "the task"
assert f"    Score: {sum(points)}/{sum(points)}\n" in screen, "the score"
cases, ranks = re.search(r"^    (?:Lab|Balise) \d+  .*  \((\d+) .* (\d+) \w+\)$", screen, re.M).groups()
assert (int(cases), int(ranks)) == (lab["cases"], lab["ranks"]), f"{lab['cases']} cases, {lab['ranks']} ranks"
assert sorted(re.findall(r"✓ .* (\d+)/\1$", screen, re.M)) == sorted(map(str, points)), "the points"
PYTHON
}
for lab in $LABS; do
    for text in labs/"$(printf %02d "$lab")"-*/README{,.fr}.md; do
        check "$text begins with the task and a full mark" begins_with_the_task "$lab" "$text"
    done
done

readme_shows_what_is_said() { # except the seconds
    python3 "$ROOT/grader/tests/answer.py" 06-no_f > "$(lab_file 6)"
    make --silent grade LAB=6 SEED="$(sed -n 's/.* LAB=6 SEED=\([0-9]*\) CASE.*/\1/p' "$ROOT/README.md")" 2> errors | sed '/^seed /,$d; s/, [0-9.]* s)/)/' > verdict
    sed -n '/^    Lab 6 /,/^## /s/^    //p' "$ROOT/README.md" | sed 's/, [0-9.]* s)/)/' | diff - verdict > out
}
check "the README shows the report on lab 6 without its f" readme_shows_what_is_said

finish
