#!/usr/bin/env bash
# start-lab.sh FILE: installs the start file of lab LAB (from LABS). Keeps an existing file as
# FILE.1, FILE.2, ..., unless it is the unchanged start file.
set -euo pipefail
file=$1
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "${0%/*}/../common/base/say.sh"
[ -n "$LAB" ] || give_up "$(say 'LAB is missing')" "$(said 'for example, make start LAB=2; the labs are: %s' "$LABS")"
[[ " $LABS " == *" $LAB "* && $LAB != *[[:space:]]* ]] || give_up "$(said "there is no lab '%s'" "$LAB")" "$(said 'the labs are: %s' "$LABS")"
start=$(grader/stack.py start "$LAB")
case $start in
labs/*)
    first=${start#labs/} && first=${first#0} && first=${first%%-*}
    grader/stack.py started "$first" ||
        give_up "$(said 'lab %s begins from your own lab %s, which is not started' "$LAB" "$first")" "make grade LAB=$first"
    ;;
esac
if [ -e "$file" ]; then
    if cmp -s "$file" "$start"; then
        tell '%s is already a fresh start file.' "$file"
        exit 0
    fi
    number=1
    while [ -e "$file.$number" ]; do
        number=$((number + 1))
    done
    cp -p "$file" "$file.$number"
    tell 'Your work is kept as %s.' "$file.$number"
fi
mkdir -p "$(dirname "$file")"
cp "$start" "$file.new"
mv "$file.new" "$file"
tell '%s is a fresh start file.' "$file"
tell 'Next: read %s/README.md, then make grade LAB=%s.' "$(dirname "$file")" "$(basename "$(dirname "$file")" | sed 's/^0*//; s/-.*//')"
