#!/usr/bin/env bash
# Grading with the cuda backend's kernels, on an emulated GPU or, with BACKEND=cuda, on a real one.
# Solutions of part 2 have full marks, wrong answers are caught as on the CPU, and an unusual right
# one is accepted. Uses its own folder, because slow_mutants.sh builds answers of the same names.
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree slow_on_gpu
export BACKEND=${BACKEND:-emulated}
for part in "$BACKEND" "libbalise-$BACKEND.a"; do cp -rp "$BUILD/$part" build/ 2> /dev/null; done
grade SOLUTION=1 PART=2
check "every solution of part 2 has full marks on a GPU" scores 100/100
ROOT=$tree BUILD=build bash grader/tests/mutants.sh '/01-f_no_ar' '/02-(no_f|own_gather)' '/03-values_only' '/04-factor_hidden' '/05-one_replaced' \
    '/06-(two_colwise|in_place_mpi)' '/07-g_again' '/08-color_mod_D' '/09-gather_world' '/10-dp_rank_wrong' '/11-(g_no_div|blocking)' '/12-(sends_its_input|as_torch_chunk)' '/13-(reversed|three_loops)' |
    grep -E '^(not )?ok|^    \|'
[ "${PIPESTATUS[0]}" = 0 ] || exit 1
finish
