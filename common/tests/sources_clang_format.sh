#!/usr/bin/env bash
# Every C, C++ and CUDA file is formatted as .clang-format says, except those formatted by hand:
# balise.h, the labs, their start files and their solutions.
set -euo pipefail
cd -- "${ROOT:?}"
sentence="C, C++ and CUDA files are formatted by clang-format"
if ! type -P clang-format >/dev/null; then
    echo "skip - $sentence: clang-format is not installed"
    exit
fi
mapfile -t files < <(find common grader \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cc' \) ! -path common/balise.h ! -path 'grader/start/*' | sort)
if words=$(clang-format --dry-run -Werror "${files[@]}" 2>&1); then
    echo "ok - $sentence"
else
    echo "not ok - $sentence"
    grep -o '^[^ :]*:[0-9]*' <<<"$words" | awk -F: '!seen[$1]++ { print "    " $0 " (clang-format -i " $1 ")" }'
    exit 1
fi
