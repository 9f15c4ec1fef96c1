#!/usr/bin/env bash
# disk.sh FOLDER: make runs it after a build step has failed. If the disk of this folder is full, it
# reports that, once until the next make (setup/check.sh removes FOLDER/.full). It always fails.
# Scripts that source it get disk_is_full.
# shellcheck source-path=SCRIPTDIR source=say.sh
source "${BASH_SOURCE[0]%/*}/say.sh"

# disk_is_full FOLDER MEGABYTES: succeeds if the folder's disk has no room for this much. Tries to
# write that much, because df ignores quotas.
disk_is_full() {
    local full=
    head -c "$2M" /dev/zero > "$1/.room.$$" 2> /dev/null || full=yes
    rm -f "$1/.room.$$"
    [ -n "$full" ]
}

if [ "$0" = "${BASH_SOURCE[0]}" ]; then
    if disk_is_full "$1" 8 && [ ! -e "$1/.full" ]; then
        : > "$1/.full"
        complain "$(said 'the disk of the folder %s is full' "$1")" "$(said 'free some space; df %s shows how much there is' "$1")"
    fi
    exit 1
fi
