#!/usr/bin/env bash
# hold.sh BUILD: lets one make at a time build in a folder. It waits for another that does, and prints the process that holds the lock
# for the make that has called: that process ends with this make, or when make kills it because all is built (RELEASE in the Makefile).
set -uo pipefail
source "${BASH_SOURCE[0]%/*}/../base/say.sh"
build=$1
[ -w "$build" ] || exit 0
# A make within a make that holds it. One that has ended holds no file, though it may be in the table of processes.
if [ -n "${BUILD_HOLDER:-}" ] && [ -e "/proc/$BUILD_HOLDER/fd/9" ]; then
    echo "$BUILD_HOLDER"
    exit
fi
exec 9>> "$build/.lock" || exit 0
flock -E 75 -w 1 9
# Another status: a file system without locks, where two makes are as they were without this one.
if [ $? = 75 ]; then
    tell 'another make is building in %s: waiting for it to finish' "$build" >&2
    flock 9
fi
tail --pid="$PPID" -s 0.2 -f /dev/null < /dev/null > /dev/null 2>&1 &
echo $!
