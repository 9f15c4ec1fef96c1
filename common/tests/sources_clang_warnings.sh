#!/usr/bin/env bash
# clang also compiles every C file, in every precision in which it is built, without a warning. It
# makes no objects, so it reads all files each time.
set -euo pipefail
cd -- "${ROOT:?}"
sentence="clang compiles everything without a warning"
if ! type -P clang >/dev/null; then
    echo "skip - $sentence: clang is not installed"
    exit
fi
if words=$(make WERROR=1 CC=clang BUILD="${BUILD:?}/clang" OPTIMISE=-fsyntax-only -k -j2 objects 2>&1); then
    echo "ok - $sentence"
else
    echo "not ok - $sentence"
    grep -E 'error:|warning:|\*\*\*' <<<"$words" | head -n 20 | sed 's/^/    /'
    exit 1
fi
