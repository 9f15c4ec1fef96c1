# shellcheck shell=bash
# mutant.sh FOLDER: builds one wrong answer (grader/mutants) or unusual right one (grader/accepts)
# from answer.py's output as a student's lab, and judges it. Prints one line: ok or not ok, and what
# the report said; then each expected sentence that is missing.
set -uo pipefail
cd "$ROOT" || exit 2
# shellcheck source=/dev/null # made by make
. "$BUILD/generated/grading${BACKEND:+-$BACKEND}.sh"
work=$1
name=${work##*/}
number=${name%%-*}
lab=$((10#$number))

field() { # field NAME: every line of this field, without its name
    sed -n "s,^$1: ,,p" "$work/fields"
}
variable() {
    local name=$1_$lab
    printf '%s' "${!name}"
}

build() {
    mkdir -p "$work/student"
    rm -f "$work"/[01][0-9]-*
    local source
    source=$work/student/$(basename "$(variable FILE)")
    cp "$work/source.c" "$source"
    grader/compile-lab.sh "$lab" "$source" "$work/student/$lab.o" "$(variable EXPORTS)" 2> "$work/warnings" || true
    # shellcheck disable=SC2046 # a list of files
    grader/link-runner.sh "$lab" "$work/$number-mutant" "$work/student/$lab.o" $(variable OBJECTS)
}

# points CHECK: its points in the report, "2/2"
points() {
    sed -nE "s,^  (✓|○|✗) $1 +([0-9]+/[0-9]+)(  held back)?$,\2,p" "$work/report"
}
full() { # full CHECK: it passed, although its points may be held back
    grep -qE "^  (✓|○) $1 +[0-9]+/[0-9]+(  held back)?$" "$work/report"
}
trouble=() # violated expectations
unsaid=()  # expected words that the report lacks
sentences() { # the reasons of failed checks, from the report
    awk '/^  [^ ]|^Lab/ { wrong = /^  ✗|: (does not build|refused) +0/; next }
        /^ +(not reached|again|calls): |the same cause as above/ { next } wrong' "$work/report" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}
each() { # each FIELD FUNCTION: calls it with each item of a list
    local item
    while read -r item; do
        [ -z "$item" ] || "$2" "$item"
    done < <(field "$1" | tr ',' '\n' | sed 's/^ *//')
}
must_fail() {
    if [ -n "$unplayed" ]; then return; fi
    if [ -z "$(points "$1")" ] || full "$1"; then trouble+=("$1 does not fail"); fi
    local ratio
    ratio=$(sed -nE "s,^  margin $1 +,,p" "$work/report")
    awk -v ratio="${ratio:-0}" 'BEGIN { exit !(ratio > 1 && ratio < 10) }' && trouble+=("$1 fails by only $ratio times the tolerance")
}
must_pass() {
    full "$1" || trouble+=("$1 fails")
}
says() {
    tr -s ' \n' ' ' < "$work/report" | grep -qiF -- "$1"
}
judge_mutant() {
    [ "$status" = 1 ] || trouble+=("exit status $status")
    each fails must_fail
    each passes must_pass
    local words layout score
    while read -r words; do says "$words" || unsaid+=("$words"); done < <(field says)
    # If a lab does not build or is refused, only the words show why, so they are required.
    [ -z "$unplayed" ] || trouble+=("${unsaid[@]/#/does not say: }")
    layout=$(field layout)
    [ -z "$layout" ] || says "$layout ranks" || trouble+=("no case on $layout ranks is named")
    score=$(field scores)
    [ -z "$score" ] || grep -qxF "Score: $score" "$work/report" || trouble+=("scores other than $score")
    # The outcome of a race depends on which message arrives first, so the case may pass when it is
    # repeated; the report then rightly says so.
    [ "$(field repeats)" = "not always" ] && return
    grep -q "passes when run alone" "$work/report" && ! field says | grep -q "passes when run alone" && trouble+=("cannot be repeated")
}
judge_accept() {
    local check
    case $(field expects) in
    full) [ "$status" = 0 ] || trouble+=("exit status $status") ;;
    "all but communication")
        full communication && trouble+=("communication does not fail")
        while read -r check; do trouble+=("$check fails"); done < <(sed -nE 's,^  ✗ (.*[a-z]) +[0-9]+/[0-9]+$,\1,p' "$work/report" | grep -v communication)
        [ "$status" = 1 ] || trouble+=("exit status $status")
        ;;
    *) trouble+=("no field expects") ;;
    esac
}

if ! build; then
    echo "not ok - $name: cannot be built"
    exit 1
fi
gpu=()
[ "${BACKEND:-}" != cuda ] || gpu=(--gpu)
timeout 300 "$BUILD/grade" "${gpu[@]}" --lab "$lab" --author mutant --runners "$work" --seed "${SEED:-1}" --expected "$EXPECTED" --margins > "$work/report" 2>&1
status=$?
failed=$(sed -nE 's,^  ✗ (.*[a-z]) +[0-9]+/[0-9]+$,\1,p' "$work/report" | paste -sd, | sed 's/,/, /g')
unplayed=$(sed -nE 's,^Lab .*: (does not build|refused) +0/.*,\1,p' "$work/report")
failed=${unplayed:-$failed}
said=$(grep -A1 -m1 -E "^  ✗|: ${unplayed:-✗}  " "$work/report" | tail -1 | sed 's/^ *//')
case $work in
*/accepts/*) judge_accept ;;
*) judge_mutant ;;
esac
kind=${work%/*} kind=${kind##*/}
line="lab $lab ${kind%s} ${name#*-}"
if [ ${#trouble[@]} -eq 0 ]; then
    [ -n "$unplayed" ] || failed=${failed:+$failed fails}
    echo "ok - $line: ${failed:-all points}${failed:+, \"$said\"}"
    for words in "${unsaid[@]}"; do
        printf 'otherwise - %s: expected "%s"; the report: "%s"\n' "$line" "$words" "$(sentences)"
    done
else
    printf 'not ok - %s: %s\n' "$line" "$(printf '%s; ' "${trouble[@]}")"
    sed 's/^/    | /' "$work/report"
    exit 1
fi
