#!/usr/bin/env bash
# hold.sh BUILD: lets one make at a time build in a folder. Waits while another one builds, then
# prints the id of the process that holds the lock for the calling make. That process ends with this
# make, or when make kills it because everything is built (RELEASE in the Makefile). If the other
# make has been stopped for half a minute, stops this one with an error.
set -uo pipefail
source "${BASH_SOURCE[0]%/*}/../base/say.sh"
build=$1
[ -w "$build" ] || exit 0
# If an outer make already holds the lock, this make needs no holder of its own. A holder that has
# ended has no open files, even if it is still in the process table.
if [ -n "${BUILD_HOLDER:-}" ] && [ -e "/proc/$BUILD_HOLDER/fd/9" ]; then
    echo "$BUILD_HOLDER"
    exit
fi
exec 9>> "$build/.lock" || exit 0

# take_lock SECONDS: fails if another make still holds the lock. Succeeds on a file system without
# locks, where nothing keeps two makes apart.
take_lock() {
    flock -E 75 -w "$1" 9
    [ $? != 75 ]
}

# is_stopped: is the make that holds the lock on this machine, and stopped? Sets $other to its id.
is_stopped() {
    local host
    read -r other host < "$build/.lock" && [ "$host" = "$HOSTNAME" ] && grep -q '^State:.T' "/proc/$other/status" 2> /dev/null
}

wait_for_other() {
    local seconds=0
    tell 'another make is building in %s: waiting for it to finish' "$build"
    until take_lock 1; do
        if ! is_stopped; then
            seconds=0
            continue
        fi
        [ "$seconds" != 0 ] || tell 'the other make, process %s, is stopped: fg or kill -CONT %s resumes it' "$other" "$other"
        if [ $((++seconds)) -gt "${STOPPED_SECONDS:-30}" ]; then
            return 1
        fi
    done
} >&2

if ! take_lock 1 && ! wait_for_other; then
    stop_make "$(said 'another make is building in %s: it is process %s, which is stopped' "$build" "$other")" \
        "$(said 'kill -CONT %s resumes it; kill -KILL %s ends it' "$other" "$other")"
fi
# If that was make clean, another lock file is in its place, or none.
if ! [ "$build/.lock" -ef /dev/fd/9 ]; then
    mkdir -p "$build"
    exec "$BASH" "$0" "$build"
fi
# If make was killed before this script started, the parent is process 1, which never ends.
grep -q make "/proc/$PPID/comm" || exit
echo "$PPID $HOSTNAME" > "$build/.lock" 2> /dev/null
tail --pid="$PPID" -s 0.2 -f /dev/null < /dev/null > /dev/null 2>&1 &
echo $!
