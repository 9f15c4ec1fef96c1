#!/usr/bin/env bash
# Grading with the cuda backend's kernels, on an emulated GPU or, with BACKEND=cuda, on a real one:
# solutions of part 1 have full marks. slow_on_gpu.sh grades part 2 and wrong answers on a GPU.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree on_gpu
export BACKEND=${BACKEND:-emulated}
for part in "$BACKEND" "libbalise-$BACKEND.a"; do cp -rp "$BUILD/$part" build/ 2> /dev/null; done
grade SOLUTION=1
check "every solution has full marks on a GPU" scores 100/100
copy_solution 6
grade LAB=6
check "a solution as a student's file has full marks on a GPU" scores 10/10
finish
