#!/usr/bin/env bash
# SAN=1: the reference solution of every lab has full marks, so no report is about the grader's own code.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree slow-sanitizers
mkdir build/checked # the tests' programs have the same sanitizers
for part in float generated libbalise.a; do cp -rp "$BUILD/sanitized/$part" build/checked/ 2> /dev/null; done
for part in 1 2; do
    grade PART=$part SOLUTION=1 SAN=1
    check "with sanitizers, the solutions of part $part have full marks" says "100/100"
done
finish
