#!/usr/bin/env bash
# hold.sh BUILD: lets only one make at a time build in a folder. Waits for another make to finish,
# then prints the id of a process that holds the lock for the calling make. That process ends with
# the calling make, or when make kills it because everything is built (RELEASE in the Makefile).
set -uo pipefail
source "${BASH_SOURCE[0]%/*}/../base/say.sh"
build=$1
[ -w "$build" ] || exit 0
# A make within a make that holds the lock. A holder that has ended has no open files, even if it is
# still in the process table.
if [ -n "${BUILD_HOLDER:-}" ] && [ -e "/proc/$BUILD_HOLDER/fd/9" ]; then
    echo "$BUILD_HOLDER"
    exit
fi
exec 9>> "$build/.lock" || exit 0
flock -E 75 -w 1 9
# Any other failure means a file system without locks, where nothing keeps two makes apart.
if [ $? = 75 ]; then
    tell 'another make is building in %s: waiting for it to finish' "$build" >&2
    flock 9
fi
tail --pid="$PPID" -s 0.2 -f /dev/null < /dev/null > /dev/null 2>&1 &
echo $!
