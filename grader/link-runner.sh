#!/usr/bin/env bash
# link-runner.sh LAB OUT OBJECTS...: the program that plays a lab's cases. What goes wrong with a lab is written to
# OUT.failed, for the judge to say; OUT then is empty.
set -euo pipefail
lab=$1 out=$2
shift 2

give_up() {
    : > "$out"
    exit 0
}

rm -f "$out.failed"
for object in "$@"; do
    if [ -e "$object.failed" ]; then
        cp "$object.failed" "$out.failed"
        give_up
    fi
done
# shellcheck disable=SC2086 # flags are words
if ! "$CC" $LDFLAGS "$@" -o "$out" $LDLIBS 2> "$out.words"; then
    missing=$(sed -n "s/.*undefined reference to [\`']\([^']*\)'.*/\1/p" "$out.words" | sort -u | head -3 | tr '\n' ' ')
    {
        printf 'lab %s calls what is not there: %s\n' "$lab" "${missing:-see below}"
        printf '  HINT: common/balise.h has every word that a lab is written in\n'
        [ -n "$missing" ] || head -5 "$out.words"
    } > "$out.failed"
    give_up
fi
rm -f "$out.words"
