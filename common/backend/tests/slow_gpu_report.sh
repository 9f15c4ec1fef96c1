#!/usr/bin/env bash
# make gpu-report on an emulated GPU with a small model and the tests of two programs: it completes,
# and has a line for each measurement.
set -uo pipefail
cd "$ROOT" || exit 2
unset MAKEFLAGS MAKELEVEL MFLAGS
out=$BUILD/tests/gpu_report.out
EMULATED_GPUS=2 LIMIT=2400 SLOWER=6 make BUILD="$BUILD" BACKEND=emulated MODELS='2 64 4 16 8' STEPS=4 TESTS=rows gpu-report > "$out" 2>&1
status=$?
failures=0
check() {
    if "${@:2}"; then echo "ok - $1"; else
        echo "not ok - $1"
        sed 's/^/    | /' "$out"
        failures=1
    fi
}
check "the report completes without a failure" [ "$status$(grep -c FAILED "$out")" = 00 ]
check "all solutions get full marks in it" grep -q 'Score: 100/100' "$out"
check "the requested tests run, and pass" [ "$(grep -cE '^test_(kernels_rows|rows_of_zeros) +[1-9][0-9]* passed, 0 failed$' "$out")" = 2 ]
check "without a request, all programs run" [ "$(make -n BUILD="$BUILD" BACKEND=emulated gpu-report | grep -o "TESTS='.*'" | wc -w)" -ge 20 ]
check "steps have a line each: four precisions, the serial stack, two ranks by tp and dp, NCCL on one and two" \
    [ "$(grep -cE '^  2x64-16 (one rank|serial stack|tp2|dp2)( nccl)?( [a-z0-9]+)? +ms ' "$out")" = 10 ]
check "kernels and collectives have their lines" [ "$(grep -cE '^  (linear_forward up bf16 64|all_reduce, 4 KiB per rank, 1 rank through NCCL) ' "$out")" = 2 ]
exit "$failures"
