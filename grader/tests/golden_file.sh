#!/usr/bin/env bash
# What golden.py and unsaid.py list, for three made-up reports.
set -uo pipefail
cd -- "${ROOT:?}" || exit 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/mutants"/01-{one,two,three}

# report NAME CHECK REASON: as the judge prints it.
report() {
    printf 'Lab 1  Duplication and AllReduce  (18 cases, 0.%s s)\n  ✓ other                 1/1\n  ✗ %-22s0/2\n      %s\n      also failing for this reason: x\n' \
        "$RANDOM" "$2" "$3" > "$folder/mutants/$1/report"
}
check() { # check SENTENCE PATTERN...: each pattern is in the list
    local sentence=$1 pattern
    for pattern in "${@:2}"; do
        if [[ $list != *"$pattern"* ]]; then
            printf 'not ok - %s\n' "$sentence"
            printf '%s\n' "$list" | sed 's/^/    | /'
            exit 1
        fi
    done
    echo "ok - $sentence"
}
golden() {
    list=$(python3 -B grader/tests/golden.py "$folder/golden" "$folder"/mutants/*)
}

report 01-one forward 'the sum is missing'
report 01-two forward 'the sum is missing'
report 01-three forward 'twice'
golden
check "the first run writes the file, and lists nothing" "$([ -z "$list" ] && [ "$(wc -l < "$folder/golden")" = 3 ] || echo 'a list, or no file')"
golden
check "reports that say the same are not listed" "answers of which other checks fail: 0" "answers of which the reason has changed: 0"
report 01-one forward 'a sum is missing'
report 01-two forward 'a sum is missing'
report 01-three 'input gradient' 'twice'
golden
check "a changed reason is listed once, with its answers" "the reason has changed: 2" "mutant 01-one mutant 01-two" "- the sum is missing" "+ a sum is missing"
check "an answer of which another check fails is listed first" "other checks fail: 1" "mutant 01-three" "- forward" "+ input gradient"

# A sentence with formats: each piece of it is in some report, or the sentence is listed.
sentence="the result is right on rank 0, but not on rank %d"
list=$(python3 -B grader/tests/unsaid.py "$folder"/mutants/*)
check "a sentence of the judge that no report has is listed with its line" "between_ranks.c:" ": $sentence"
report 01-one forward 'the result is right on rank 0, but not on rank 1'
list=$(python3 -B grader/tests/unsaid.py "$folder"/mutants/*)
check "a sentence that a report has is not listed" "$([[ $list == *"$sentence"* ]] && echo 'it is')"
