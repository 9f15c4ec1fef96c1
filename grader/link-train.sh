#!/usr/bin/env bash
# link-train.sh OUT OBJECTS...: links a stack's training program. If a lab does not compile, prints
# why and fails.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "$(dirname "$0")/../common/base/say.sh"
out=$1
shift
for object in "$@"; do
    if [ -e "$object.failed" ]; then
        say 'error: ' >&2
        cat "$object.failed" >&2
        exit 2
    fi
done
# Replaces the program by a rename, because the old one may be running.
# shellcheck disable=SC2086 # flags are words
"$CC" $LDFLAGS "$@" -o "$out.new" $LDLIBS
mv "$out.new" "$out"
