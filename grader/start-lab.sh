#!/usr/bin/env bash
# start-lab.sh FILE START: lays the start file of a lab. What is there already is kept as FILE.1, FILE.2, ..., unless it is
# the start file as it was.
set -euo pipefail
file=$1 start=$2
if [ -e "$file" ]; then
    if cmp -s "$file" "$start"; then
        echo "$file is a fresh start file already."
        exit 0
    fi
    number=1
    while [ -e "$file.$number" ]; do
        number=$((number + 1))
    done
    cp -p "$file" "$file.$number"
    echo "Your work is kept as $file.$number."
fi
mkdir -p "$(dirname "$file")"
cp "$start" "$file.new"
mv "$file.new" "$file"
echo "$file is a fresh start file. Next: read $(dirname "$file")/README.md, then make grade LAB=$(basename "$(dirname "$file")" | sed 's/^0*//; s/-.*//')."
