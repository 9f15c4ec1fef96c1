#!/usr/bin/env bash
# disk.sh FOLDER: called after a step of the build has failed; says so if the disk of this folder is
# full, once until the next make (setup/check.sh). Always fails. Sourced, it defines disk_is_full.
# shellcheck source-path=SCRIPTDIR source=say.sh
source "${BASH_SOURCE[0]%/*}/say.sh"

# disk_is_full FOLDER MEGABYTES: can this much not be written? Writes it, because df ignores quotas.
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
