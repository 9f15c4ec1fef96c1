#!/usr/bin/env bash
# report.sh BUILD BACKEND: tests and measures the kit on a GPU in less than 8 minutes: the kernels'
# tests, the grading of all solutions, the bench (kernels, collectives, steps of BERT with their
# share of the peak, over MPI and NCCL, and PyTorch if it is installed), and compute-sanitizer in
# the time that is left. `make gpu-report` builds everything first and names the TESTS. MODELS,
# STEPS, PEAK and TORCH are settings of the bench.
set -uo pipefail
build=$1 backend=$2
export BUILD=$build
limit=${LIMIT:-470} # seconds
slower=${SLOWER:-1} # factor on time limits, for an emulated GPU
source "${BASH_SOURCE[0]%/*}/../../comm/open_mpi.sh"
open_mpi root here quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

section() {
    printf '\n== %s (%s s since the beginning)\n' "$1" "$SECONDS"
}
failed() {
    printf 'FAILED: %s\n' "$1"
    failures=$((failures + 1))
}
# within SECONDS COMMAND...: runs it for at most SECONDS (times `slower`), and not beyond the limit
# of the whole report
within() {
    local left=$((limit - SECONDS)) most=$(($1 * slower))
    timeout -k 2 "$((left < 1 ? 1 : left < most ? left : most))" "${@:2}"
}
bench() { # bench NAME=VALUE...
    within 300 env BACKEND="$backend" ROUNDS=1 "$@" common/bench/bench.py "$build" || failed "the bench: $*"
}

section machine
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2> /dev/null || echo "no nvidia-smi"
"$build/kernels-$backend" || exit 2
date -u +%F

section "kernels against their definitions"
for test in $TESTS; do
    # Tests of kernels wait for each kernel themselves. Other tests read results at once, so
    # launches must wait.
    if [[ $test == */backend/* ]]; then blocking=0; else blocking=1; fi
    ranks=()
    [[ $test != *_ranks* ]] || ranks=(mpirun -n "${test##*_ranks}")
    CK_FORK=no CUDA_LAUNCH_BLOCKING=$blocking within 240 "${ranks[@]}" "$test" > "$work/out" 2>&1 || failed "${test##*/}"
    printf '%-32s %5d passed, %d failed\n' "${test##*/}" "$(grep -c '^ok' "$work/out")" "$(grep -c '^not ok' "$work/out")"
    grep -m 5 '^not ok' "$work/out"
done

section "grading the solutions"
within 120 make --no-print-directory BACKEND="$backend" SOLUTION=1 grade > "$work/out" 2>&1 || failed grade
tail -15 "$work/out"

section "kernels, collectives and steps"
bench

section "PyTorch beside it"
for python in ${TORCH:-python3 /usr/bin/python3}; do
    if "$python" -c 'import torch; torch.cuda.init()' 2> /dev/null; then
        bench ONLY='steps/one rank' AMP=bf16 VS=torch TORCH="$python"
        break
    fi
    echo "$python has no PyTorch that sees a GPU"
done

section "memory, races, unset reads (compute-sanitizer)"
if type -P compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck initcheck synccheck; do
        for kernels in matrix rows attention vector; do
            launches=400
            [[ $tool$kernels != racecheckattention ]] || launches=40 # more take minutes
            CK_FORK=no within 90 compute-sanitizer --tool "$tool" --error-exitcode 9 --launch-count "$launches" \
                "$build/tests/$backend/common/backend/tests/test_kernels_$kernels" > "$work/out" 2>&1 || failed "$tool $kernels"
            printf '%-10s %-10s %s\n' "$tool" "$kernels" "$(grep 'SUMMARY' "$work/out" | tail -1)"
        done
    done
else
    echo "compute-sanitizer is not installed"
fi
section end
exit $((failures > 0))
