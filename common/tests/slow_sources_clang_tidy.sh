#!/usr/bin/env bash
# clang-tidy finds nothing in the kit's sources, with the checks of .clang-tidy.
set -euo pipefail
cd -- "${ROOT:?}"
sentence="clang-tidy finds nothing in the sources"
if ! type -P clang-tidy >/dev/null; then
    echo "skip - $sentence: clang-tidy is not installed"
    exit
fi
make BUILD="${BUILD:?}" "$BUILD/generated/labs.h"
read -ra flags <<<"-std=gnu17 -D_GNU_SOURCE -fopenmp -Icommon -I. -I$BUILD/generated $(pkg-config --cflags ompi-c openblas libxml-2.0) -DBALISE_VERSION=\"tidy\" -DONEDNN_FILE=\"tidy\""
# The analyser follows a quarter of the paths that it follows by default, in a quarter of the time.
flags+=(-Xclang -analyzer-config -Xclang max-nodes=50000)
find common grader -name '*.c' ! -path '*/tests/*' ! -path 'grader/mutants/*' ! -path 'grader/judge/*' ! -path 'grader/labs/*/*' -print0 | sort -z >"$BUILD/tests/tidy.files"
# The judge computes only in double precision. The files in grader/labs, without those of its
# folders, compile to the judge's records there, and to the ranks' scenarios in single precision.
find grader/judge grader/labs -name '*.c' -print0 | sort -z >"$BUILD/tests/tidy.judge"
if words=$(xargs -0 -a "$BUILD/tests/tidy.files" -P 2 -I {} clang-tidy --quiet {} -- "${flags[@]}" 2>/dev/null &&
    xargs -0 -a "$BUILD/tests/tidy.judge" -P 2 -I {} clang-tidy --quiet {} -- "${flags[@]}" -DBALISE_DOUBLE 2>/dev/null); then
    echo "ok - $sentence"
else
    echo "not ok - $sentence"
    grep -E ': (warning|error): ' <<<"$words" | sort -u | head -n 30 | sed 's/^/    /'
    exit 1
fi
