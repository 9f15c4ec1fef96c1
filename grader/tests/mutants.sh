# shellcheck shell=bash
# bash mutants.sh [PATTERN...]: the grader's own test. Every answer in grader/mutants is wrong and
# must be rejected; every answer in grader/accepts is unusual but right and must be accepted.
# PATTERN selects among them by name; --few takes those that `answer.py --few` takes.
# grader/mutants/README.md describes the format.
#
# Fails if a wrong answer is not caught by its checks or a right one is rejected. Lists reports that
# lack expected words at the end; three are allowed, four are a failure. SEED selects the cases
# (default 1), BACKEND the kernels (see common/backend/backend.mk). GOLDEN=FILE keeps in FILE what
# each report says, or shows what has changed since (golden.py). A run of all answers also lists the
# judge's sentences that none of them draws (unsaid.py).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export ROOT=${ROOT:-$(cd "$here/../.." && pwd)}
BUILD=${BUILD:-build}
export BUILD=${BUILD#"$ROOT"/}
cd "$ROOT" || exit 2
unset MAKEFLAGS MAKELEVEL
make --silent BUILD="$BUILD" "$BUILD/generated/grading${BACKEND:+-$BACKEND}.sh" "$BUILD/grade" > /dev/null || exit 2

mkdir -p "$BUILD/mutants"
results=$BUILD/mutants/results.$$ names=$BUILD/mutants/names.$$
trap 'rm -rf "$results" "$names" "$BUILD/mutants/expected.$$"' EXIT
export BALISE_EXPECTED=${BALISE_EXPECTED:-$BUILD/mutants/expected.$$} # shared by all answers to a lab
mkdir -p "$BALISE_EXPECTED"
if [ "${1:-}" = --few ]; then which=$1; shift; else which=--all; fi
python3 grader/tests/answer.py "$which" "$BUILD/mutants" "$@" > "$names" || { echo "not ok - every answer can be made"; exit 1; }
mapfile -t folders < "$names"

# Ranks sleep while they wait, so one launch more than there are cores can run at a time.
xargs -P "$(($(nproc) + 1))" -n 1 bash "$here/mutant.sh" < "$names" | tee "$results"

printf '\n  lab   mutants caught   accepts accepted\n'
read -ra labs < <(sed -n 's/^..call add_lab,\([0-9]*\),.*/\1/p' grader/labs.mk | paste -sd ' ')
for lab in "${labs[@]}"; do
    count() { grep -c "/$1/$(printf %02d "$lab")-" "$names"; }
    right() { grep -c "^ok - lab $lab $1" "$results"; }
    printf '  %3d   %7d/%-7d  %7d/%d\n' "$lab" "$(right mutant)" "$(count mutants)" "$(right accept)" "$(count accepts)"
done
printf 'mutation score %d/%d\n' "$(grep -c '^ok - lab [0-9]* mutant' "$results")" "$(grep -c '/mutants/[0-9]' "$names")"
# A wrong answer with an error below ten times the tolerance would be caught only by luck.
least=$(for folder in "${folders[@]}"; do
    [[ $folder != */mutants/[0-9]* ]] || sed -nE 's/^  margin .* ([^ ]+)$/\1/p' "$folder/report" 2> /dev/null
done | awk '$1 > 1 && (!least || $1 < least) { least = $1 } END { print least + 0 }')
printf 'least error of a mutant %s x what is allowed\n' "$least"
[ -z "${GOLDEN:-}" ] || python3 "$here/golden.py" "$GOLDEN" "${folders[@]}"
[ "$which$#" != --all0 ] || python3 "$here/unsaid.py" "${folders[@]}"
sed -n 's/^not ok - /survivor: /p; s/^otherwise - /said otherwise: /p' "$results"
[ "$(grep -c '^ok' "$results")" = ${#folders[@]} ] && [ "$(grep -c '^otherwise' "$results")" -le 3 ]
