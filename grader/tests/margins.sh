# shellcheck shell=bash
# bash margins.sh [SEED...]: how far the solutions stay within the tolerance. With each seed, they
# must have full marks, and no error above a third of the tolerance. The default is seeds 1 to 3, and
# one with which the grader once rejected a correct weight. Each case alone gives full marks, too.
set -uo pipefail
ROOT=${ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-build}
cd "$ROOT" || exit 2
unset MAKEFLAGS MAKELEVEL
for part in 1 2; do
    make --silent BUILD="$BUILD" SOLUTION=1 PART=$part runners "$BUILD/grade" > /dev/null || exit 2
done

reports=$BUILD/margins.$$
trap 'rm -f "$reports" "$reports.alone"' EXIT
status=0
for seed in "${@:-1 2 3 709258227707}"; do
    for one in $seed; do
        for part in 1 2; do
            if ! "$BUILD/grade" --part $part --author solution --runners "$BUILD/runners" --seed "$one" --margins > "$reports.one" 2>&1; then
                echo "not ok - the solutions of part $part have full marks with seed $one"
                grep -A4 ✗ "$reports.one" | sed 's/^/    | /'
                status=1
            fi
            cat "$reports.one" >> "$reports"
            rm -f "$reports.one"
        done
    done
done

echo "  lab   largest error of the solution, in units of what is allowed"
awk '/^Lab [0-9]/ { lab = $2 }
     /^  margin / { name = $0; sub(/^  margin /, "", name); sub(/ +[^ ]+$/, "", name); value = $NF
                    if (!((lab, name) in most)) { order[++count] = lab SUBSEP name; most[lab, name] = 0 }
                    if (value > most[lab, name]) most[lab, name] = value }
     END { for (lab = 11; lab <= 14; lab += 3)
               if (!((lab, "gradient") in most) || !((lab, "layout") in most)) { print "  no margins of lab " lab; bad = 1 }
           if (!((15, "reduce-scatter") in most)) { print "  no margins of lab 15"; bad = 1 }
           if (!((21, "step") in most)) { print "  no margins of lab 21"; bad = 1 }
           for (i = 1; i <= count; i++) {
               split(order[i], key, SUBSEP)
               high = !(most[order[i]] <= 1 / 3)
               printf "  %3d   %-16s %.3f%s\n", key[1], key[2], most[order[i]], high ? "  more than a third" : ""
               bad = bad || high
           }
           exit bad || !count }' "$reports" || status=1
[ $status = 0 ] && echo "ok - the solutions have full marks, and stay within a third of what is allowed"

# shellcheck disable=SC2317 # xargs calls it
# alone LAB CASE: prints the verdict on one case of the solution, unless it has full marks.
alone() {
    local verdict
    verdict=$("$BUILD/grade" --lab "$1" --author solution --runners "$BUILD/runners" --seed 1 --case "$2" 2>&1) ||
        printf '    | CASE=%s\n%s\n' "$2" "$(grep -E '^(Lab|  [✗○]|error)' <<< "$verdict" | sed 's/^/    | /')"
}
export -f alone
export BUILD
"$BUILD/grade" --list | python3 -c 'import json, sys
for lab in json.load(sys.stdin):
    for case in range(lab["cases"]):
        print(lab["number"], case)' |
    xargs -P "$(($(nproc) + 1))" -L 1 bash -c 'alone "$@"' alone > "$reports.alone"
if [ -s "$reports.alone" ]; then
    echo "not ok - each case of a solution has full marks when it is graded alone"
    cat "$reports.alone"
    status=1
else
    echo "ok - each case of a solution has full marks when it is graded alone"
fi
exit $status
