#!/usr/bin/env bash
# progress.sh N MISSING: prints on a terminal's last line that N of MISSING files of a first build
# have been compiled. Without arguments: clears that line, so the next output begins there.
source "$(dirname -- "${BASH_SOURCE[0]}")/../base/say.sh"
clear=$'\r\e[K'
if [ $# = 0 ]; then
    printf '%s' "$clear" >&2
elif (($1 <= $2)); then
    printf '%s%s\r' "$clear" "$(said 'building: %s of %s files' "$1" "$2")" >&2
else
    printf '%s%s\r' "$clear" "$(said 'building: %s files' "$1")" >&2
fi
