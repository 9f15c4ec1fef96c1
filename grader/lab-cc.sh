#!/usr/bin/env bash
# lab-cc.sh ARGUMENTS...: the compiler LAB_CC for what students hand in. It runs within the limits that its caller has set, and
# two minutes at most, whatever it waits for; where one of these has ended it, its last words are a sentence that says so.
set -uo pipefail
case ${1:-} in --version | -print-*) exec "$LAB_CC" "$@" ;; esac
words=$(mktemp)
trap 'rm -f "$words"' EXIT
timeout -k 5 "${LAB_CC_SECONDS:-120}" "$LAB_CC" "$@" 2> "$words" < /dev/null
status=$?
head -c 1000000 "$words" >&2
[ "$(stat -c %s "$words")" -le 1000000 ] || echo >&2
if [ "$status" = 0 ]; then
    exit 0
elif [ "$status" = 124 ] || [ "$status" = 137 ] || grep -qE '(Killed|CPU time limit exceeded) signal terminated program' "$words"; then
    echo "the compiler was stopped: it worked or waited for more than a minute, where a lab takes a moment" >&2
elif grep -qE 'out of memory|memory exhausted|cannot allocate memory' "$words"; then
    echo "the compiler was stopped: it asked for more than 1.5 GB of memory" >&2
elif grep -qE 'File size limit exceeded|File too large' "$words"; then
    echo "the compiler was stopped: the lab's object is larger than 400 MB" >&2
fi
exit "$status"
