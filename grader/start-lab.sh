#!/usr/bin/env bash
# start-lab.sh FILE START: lays the start file of lab LAB (of LABS). What is there already is kept as FILE.1, FILE.2, ..., unless
# it is the start file as it was.
set -euo pipefail
file=$1 start=$2
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "$(dirname "$0")/../common/base/say.sh"
[ -n "$LAB" ] || give_up "$(say 'which lab?')" "$(said 'make start LAB=2; the labs are: %s' "$LABS")"
[[ " $LABS " == *" $LAB "* && $LAB != *[[:space:]]* ]] || give_up "$(said "there is no lab '%s'" "$LAB")" "$(said 'the labs are: %s' "$LABS")"
[ "$LAB" != 9 ] || grader/stack.py started 1 ||
    give_up "$(say 'lab 9 begins from your own lab 1, which is not started')" 'make grade LAB=1'
if [ -e "$file" ]; then
    if cmp -s "$file" "$start"; then
        tell '%s is a fresh start file already.' "$file"
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
