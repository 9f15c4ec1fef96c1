# shellcheck shell=bash
# bash margins.sh [SEED...]: how far the solutions stay within the tolerance, over seeds (default 1
# to 3, and one that once rejected a single weight): full marks at each, and no error above a
# quarter of the tolerance. Needs the solutions' runners.
set -uo pipefail
ROOT=${ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-build}
cd "$ROOT" || exit 2
unset MAKEFLAGS MAKELEVEL
make --silent BUILD="$BUILD" SOLUTION=1 runners "$BUILD/grade" > /dev/null || exit 2

reports=$BUILD/margins.$$
trap 'rm -f "$reports"' EXIT
status=0
for seed in "${@:-1 2 3 709258227707}"; do
    for one in $seed; do
        if ! "$BUILD/grade" --author solution --runners "$BUILD/runners" --seed "$one" --margins > "$reports.one" 2>&1; then
            echo "not ok - the solutions have full marks with seed $one"
            grep -A4 ✗ "$reports.one" | sed 's/^/    | /'
            status=1
        fi
        cat "$reports.one" >> "$reports"
        rm -f "$reports.one"
    done
done

echo "  lab   largest error of the solution, in units of what is allowed"
awk '/^Lab [0-9]/ { lab = $2 }
     /^  margin / { name = $0; sub(/^  margin /, "", name); sub(/ +[^ ]+$/, "", name); value = $NF
                    if (!((lab, name) in most)) { order[++count] = lab SUBSEP name; most[lab, name] = 0 }
                    if (value > most[lab, name]) most[lab, name] = value }
     END { for (i = 1; i <= count; i++) {
               split(order[i], key, SUBSEP)
               high = !(most[order[i]] <= 0.25)
               printf "  %3d   %-16s %.3f%s\n", key[1], key[2], most[order[i]], high ? "  more than a quarter" : ""
               bad = bad || high
           }
           exit bad || !count }' "$reports" || status=1
[ $status = 0 ] && echo "ok - the solutions have full marks, and stay within a quarter of what is allowed"
exit $status
