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
# Uses bash builtins, because hundreds of answers are judged, and a process takes ten times as long.
mapfile -t fields < "$work/fields"

field() { # found: every line of this field, without its name
    local line
    found=()
    for line in "${fields[@]}"; do
        [[ $line != "$1: "* ]] || found+=("${line#"$1: "}")
    done
}

build() {
    local file=FILE_$lab exports=EXPORTS_$lab objects=OBJECTS_$lab source
    source=$work/student/${!file##*/}
    mkdir -p "$work/student"
    rm -f "$work"/[0-9][0-9]-*
    cp "$work/source.c" "$source"
    grader/compile-lab.sh "$lab" "$source" "$work/student/$lab.o" "${!exports}" 2> "$work/warnings" || true
    # shellcheck disable=SC2086 # a list of files
    grader/link-runner.sh "$lab" "$work/$number-mutant" "$work/student/$lab.o" ${!objects}
}

# read_report: sets report to what the judge printed, words to the same on one line in lower case,
# failing to the checks with a cross, unplayed to why the lab was not run, said to why the first
# check failed.
read_report() {
    local lines line all
    mapfile -t lines < "$work/report"
    printf -v report '\n%s' "${lines[@]}" ''
    read -r -d '' -a all < "$work/report"
    words=${all[*]}
    words=${words,,}
    failing=() unplayed='' said=''
    for line in "${lines[@]}"; do
        [[ ! $line =~ ^"  ✗ "(.*[a-z])" "+[0-9]+/[0-9]+$ ]] || failing+=("${BASH_REMATCH[1]}")
        [[ ! $line =~ ^"Lab ".*": "("does not build"|refused)" "+0/ ]] || unplayed=${BASH_REMATCH[1]}
    done
    while ((${#lines[@]})) && [[ ! ${lines[0]} =~ ^"  ✗"|": ${unplayed:-✗}  " ]]; do lines=("${lines[@]:1}"); done
    said=${lines[1]:-}
    said=${said#"${said%%[! ]*}"}
}
# matches PATTERN: does a whole line of the report match? BASH_REMATCH[2] and on are its groups.
matches() {
    [[ $report =~ ($'\n')$1$'\n' ]]
}
full() { # full CHECK: did it pass? Its points may still be held back.
    matches "  (✓|○) $1 +[0-9]+/[0-9]+(  held back)?"
}
trouble=() # violated expectations
unsaid=()  # expected words that the report lacks
sentences() { # the reasons of failed checks, from the report
    awk '/^  [^ ]|^Lab/ { wrong = /^  ✗|: (does not build|refused) +0/; others = 0; next }
        /^ +(not reached|again|calls): |also failing for this reason: / { others = /also failing/; next } wrong && !others' "$work/report" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}
each() { # each FIELD FUNCTION: calls the function with each item of the field's lists
    local list items=() item
    field "$1"
    for list in "${found[@]}"; do
        IFS=, read -r -a items <<< "$list"
        for item in "${items[@]}"; do
            item=${item#"${item%%[! ]*}"}
            [ -z "$item" ] || "$2" "$item"
        done
    done
}
must_fail() {
    if [ -n "$unplayed" ]; then return; fi
    if ! matches "  ✗ $1 +[0-9]+/[0-9]+(  held back)?" || full "$1"; then trouble+=("$1 does not fail"); fi
    ! matches "  margin $1 +([1-9](\.[0-9]+)?)" || [ "${BASH_REMATCH[2]}" = 1 ] || trouble+=("$1 fails by only ${BASH_REMATCH[2]} times the tolerance")
}
must_pass() {
    full "$1" || trouble+=("$1 fails")
}
says() {
    [[ $words == *"${1,,}"* ]]
}
look_for_words() {
    local wanted
    field says
    for wanted in "${found[@]}"; do says "$wanted" || unsaid+=("$wanted"); done
}
judge_mutant() {
    [ "$status" = 1 ] || trouble+=("exit status $status")
    each fails must_fail
    each passes must_pass
    look_for_words
    # A lab that does not build or is refused has no failing check, so the message itself must be right.
    [ -z "$unplayed" ] || trouble+=("${unsaid[@]/#/does not say: }")
    [[ $report != *"passes when run alone"* || ${found[*]} == *"passes when run alone"* ]] || alone=yes
    field layout
    [ -z "${found[*]}" ] || says "${found[*]} ranks" || trouble+=("no case on ${found[*]} ranks is named")
    field scores
    [ -z "${found[*]}" ] || matches "Score: ${found[*]}" || trouble+=("scores other than ${found[*]}")
    # The outcome of a race varies, and the report says so if another run of the case passes.
    field repeats
    [ "${found[*]}" = "not always" ] || [ -z "${alone:-}" ] || trouble+=("cannot be repeated")
}
judge_accept() {
    local check
    field expects
    case ${found[*]} in
    full) [ "$status" = 0 ] || trouble+=("exit status $status") ;;
    "all but communication")
        full communication && trouble+=("communication does not fail")
        for check in "${failing[@]}"; do [[ $check == *communication* ]] || trouble+=("$check fails"); done
        [ "$status" = 1 ] || trouble+=("exit status $status")
        ;;
    *) trouble+=("no field expects") ;;
    esac
    look_for_words
}

if ! build; then
    echo "not ok - $name: cannot be built"
    exit 1
fi
gpu=()
[ -z "${BACKEND:-}" ] || gpu=(--gpu)
timeout 300 "$BUILD/grade" "${gpu[@]}" --lab "$lab" --author mutant --runners "$work" --seed "${SEED:-1}" --expected "$BALISE_EXPECTED" --margins > "$work/report" 2>&1
status=$?
read_report
case $work in
*/accepts/*) judge_accept ;;
*) judge_mutant ;;
esac
kind=${work%/*} kind=${kind##*/}
line="lab $lab ${kind%s} ${name#*-}"
if [ ${#trouble[@]} -eq 0 ]; then
    printf -v failed ', %s' "${failing[@]}"
    failed=${failed#, }
    failed=${unplayed:-${failed:+$failed fails}}
    echo "ok - $line: ${failed:-all points}${failed:+, \"$said\"}"
    for wanted in "${unsaid[@]}"; do
        printf 'otherwise - %s: expected "%s"; the report: "%s"\n' "$line" "$wanted" "$(sentences)"
    done
else
    printf 'not ok - %s: %s\n' "$line" "$(printf '%s; ' "${trouble[@]}")"
    sed 's/^/    | /' "$work/report"
    exit 1
fi
