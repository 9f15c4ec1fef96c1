#!/usr/bin/env bash
# start-lab.sh FILE START: lays the start file of a lab. What is there already is kept as FILE.1, FILE.2, ..., unless it is
# the start file as it was.
set -euo pipefail
file=$1 start=$2
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "$(dirname "$0")/../common/base/say.sh"
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
