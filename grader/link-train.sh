#!/usr/bin/env bash
# link-train.sh OUT OBJECTS...: links a stack's training program, or a program of the user's. If a lab
# does not compile, or the linker fails or exceeds a limit, prints why and fails.
set -euo pipefail
here=${0%/*}
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "$here/../common/base/say.sh"
# shellcheck source-path=SCRIPTDIR source=limits.sh
source "$here/limits.sh"
out=$1
shift
for object in "$@"; do
    if [ -e "$object.failed" ]; then
        say 'error: ' >&2
        cat "$object.failed" >&2
        exit 2
    fi
done
trap 'rm -f "$out.new" "$out.messages"' EXIT
# shellcheck disable=SC2086 # flags are words
bounded "$CC" $LDFLAGS -Wl,--wrap=attention_forward "$@" -o "$out.new" $LDLIBS 2> "$out.messages" && status=0 || status=$?
! over_limit "$status" "$out.messages" ||
    give_up "$(say 'the training program does not link: the linker was stopped, because it needed more time, memory or disk than a lab may use')" \
        "$(say 'a lab has a few functions and small tables')"
cat "$out.messages" >&2
[ "$status" = 0 ] || give_up "$(said 'the program does not link: %s' "${out##*/}")" \
    "$(say 'common/balise.h and common/balise_program.h declare every function that it may call')"
# Replaces the program by a rename, because the old one may be running.
mv "$out.new" "$out"
