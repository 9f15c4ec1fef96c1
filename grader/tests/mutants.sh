# shellcheck shell=bash
# bash mutants.sh [PATTERN...]: the grader's own test. Every file of grader/mutants is a wrong answer that must be rejected, every
# file of grader/accepts an unusual right one that must not; PATTERN chooses among them by name.
#
# A file is a patch of the lab's solution, below lines "# field: value":
#     # mutant 2.1 no_f            its number in the catalogue, if any, and its name
#     # fails: a, b                checks that must fail
#     # passes: c                  checks that must pass
#     # says: words                must be in the report (several lines: each of them)
#     # layout: 2                  the report must speak of a case on this many ranks
#     # repeats: not always        which message comes first decides what is wrong
#     # expects: full              of an accept: "full" or "all but communication"
# SEED chooses the cases (default 1), BACKEND what the labs stand on (see common/backend/backend.mk).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export ROOT=${ROOT:-$(cd "$here/../.." && pwd)}
BUILD=${BUILD:-build}
export BUILD=${BUILD#"$ROOT"/}
cd "$ROOT" || exit 2
unset MAKEFLAGS MAKELEVEL
make --silent BUILD="$BUILD" "$BUILD/generated/grading${BACKEND:+-$BACKEND}.sh" "$BUILD/grade" > /dev/null || exit 2

files=()
for file in grader/mutants/*.patch grader/mutants/*.c grader/accepts/*.patch grader/accepts/*.c; do
    [ -e "$file" ] || continue
    for pattern in "${@:-.}"; do
        if [[ $file =~ $pattern ]]; then
            files+=("$file")
            break
        fi
    done
done
[ ${#files[@]} -gt 0 ] || { echo "not ok - there is no mutant and no accept named $*"; exit 1; }

# Ranks sleep while they wait, so that launches fit side by side.
side_by_side=$(nproc)

results=$BUILD/mutants/results.$$
mkdir -p "$BUILD/mutants"
trap 'rm -f "$results"' EXIT
printf '%s\n' "${files[@]}" | xargs -P "$side_by_side" -n 1 bash "$here/mutant.sh" | tee "$results"

printf '\n  lab   mutants caught   accepts accepted\n'
read -ra labs < <(sed -n 's/^$(call lab,\([0-9]*\),.*/\1/p' grader/labs.mk | paste -sd ' ')
for lab in "${labs[@]}"; do
    count() { printf '%s\n' "${files[@]}" | grep -c "/$1/$(printf %02d "$lab")-"; }
    right() { grep -c "^ok - lab $lab $1" "$results"; }
    printf '  %3d   %7d/%-7d  %7d/%d\n' "$lab" "$(right mutant)" "$(count mutants)" "$(right accept)" "$(count accepts)"
done
score=$(grep -c '^ok - lab [0-9]* mutant' "$results")
of=$(printf '%s\n' "${files[@]}" | grep -c '/mutants/')
printf 'mutation score %d/%d\n' "$score" "$of"
# An error between the tolerance and ten times it would be luck.
least=$(for file in "${files[@]}"; do
    [[ $file != */mutants/* ]] || sed -nE 's/^  margin .* ([^ ]+)$/\1/p' "$BUILD/mutants/mutants/$(basename "${file%.*}")/report" 2> /dev/null
done | awk '$1 > 1 && (!least || $1 < least) { least = $1 } END { print least + 0 }')
printf 'least error of a mutant %s x what is allowed\n' "$least"
while read -r survivor; do printf 'survivor: %s\n' "${survivor#not ok - }"; done < <(grep '^not ok' "$results")
[ "$(grep -c '^ok' "$results")" = ${#files[@]} ]
