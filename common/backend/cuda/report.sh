#!/usr/bin/env bash
# report.sh BUILD BACKEND: what a GPU does with the kit, in one go of some minutes: the kernels' tests, the grading of all solutions, steps of
# BERT with what share of the peak they reach, over MPI and NCCL, and PyTorch beside them where it is installed. Everything is built before
# (make gpu-report, which names the TESTS). MODELS="layers hidden heads seq batch; ..." trains others than BERT-Base and BERT-Large at SEQ=512; PEAK="fp32 bf16"
# are the GPU's TFLOP/s where it is none of the known ones.
set -uo pipefail
build=$1 backend=$2
export BUILD=$build
models=${MODELS:-12 768 12 512 16; 24 1024 16 512 8}
steps=${STEPS:-12}
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

# peak AMP: TFLOP/s, dense, of the data sheet
peak() {
    local name figures
    name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -1)
    case ${PEAK:-$name} in
    *H100* | *H200*) figures='67 989' ;;
    *A100*) figures='19.5 312' ;;
    *B200*) figures='75 2250' ;;
    *L40S*) figures='91.6 362' ;;
    *L4*) figures='30.3 121' ;;
    *4090*) figures='82.6 165' ;;
    [0-9]*) figures=$PEAK ;;
    *) figures='0 0' ;;
    esac
    read -r single sixteen <<< "$figures"
    if [ "$1" = off ]; then echo "$single"; else echo "$sixteen"; fi
}

section machine
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2> /dev/null || echo "no nvidia-smi"
"$build/kernels-$backend" || exit 2
date -u +%F

section "kernels against their definitions"
for test in $TESTS; do
    [[ $test != *_ranks* ]] || continue
    # Those of the kernels wait for them; the others read at once.
    if [[ $test == */backend/* ]]; then blocking=0; else blocking=1; fi
    CK_FORK=no CUDA_LAUNCH_BLOCKING=$blocking timeout 240 "$test" > "$work/out" 2>&1 || failed "${test##*/}"
    printf '%-32s %5d passed, %d failed\n' "${test##*/}" "$(grep -c '^ok' "$work/out")" "$(grep -c '^not ok' "$work/out")"
    grep -m 5 '^not ok' "$work/out"
done

section "memory, races, unset reads (compute-sanitizer)"
if type -P compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck initcheck synccheck; do
        for kernels in matrix attention vector; do # the first launches: racecheck is slow
            CK_FORK=no timeout 90 compute-sanitizer --tool "$tool" --error-exitcode 9 --launch-count 400 \
                "$build/tests/$backend/common/backend/tests/test_kernels_$kernels" > "$work/out" 2>&1 || failed "$tool $kernels"
            printf '%-10s %-10s %s\n' "$tool" "$kernels" "$(grep 'SUMMARY' "$work/out" | tail -1)"
        done
    done
else
    echo "not there"
fi

section "grading the solutions"
make --no-print-directory BACKEND="$backend" SOLUTION=1 grade > "$work/out" 2>&1 || failed grade
tail -15 "$work/out"

# train RANKS TP AMP PROGRAM LAYERS HIDDEN HEADS SEQ BATCH: a line of the table
train() {
    local ranks=$1 tp=$2 amp=$3 program=$4 layers=$5 hidden=$6 heads=$7 seq=$8 batch=$9
    if ! common/train/launch.sh "$ranks" solutions 11 "$build/$program" --tp "$tp" --amp "$amp" --layers "$layers" --hidden-dim "$hidden" \
        --heads "$heads" --seq "$seq" --batch-size "$batch" --steps "$steps" --test '' --metrics "$work/m" --cache "$build/cache" > "$work/out" 2>&1; then
        failed "$program, $ranks ranks, tp $tp, $amp: $(grep -m 1 error "$work/out")"
        return
    fi
    /usr/bin/python3 - "$work/m" "$(peak "$amp")" "$@" << 'PYTHON'
import json, statistics, sys
file, peak, ranks, tp, amp, program, layers, hidden, heads, seq, batch = sys.argv[1:]
lines = [json.loads(line) for line in open(file)]
steps = [line for line in lines if "step" in line]
seconds = [line["step_s"] for line in steps[2:]]
tokens = int(batch) * int(seq)
# forward and backward: 6 operations a weight and token, and 12 S H a layer and token in attention; what need not be multiplied is not left out
work = tokens * int(layers) * (72 * int(hidden) ** 2 + 12 * int(seq) * int(hidden))
median = statistics.median(seconds)
share = f"{work / median / float(peak) / 1e12:7.1%}" if float(peak) else "      ?"
held = max(rank["peak_bytes"] for rank in lines[-1]["ranks"]) / 1e6
print(f"{layers:>3}x{hidden:<5} S={seq:<4} B={batch:<3} {ranks} rank{'s' if ranks != '1' else ' '} tp {tp} {amp:5} "
      f"{'NCCL' if program.endswith('nccl') else 'MPI ':5}{min(seconds) * 1e3:9.1f} {median * 1e3:9.1f} {tokens / median:10.0f} {share} {held:9.0f}")
PYTHON
}

section "steps of the student's stack"
echo "model                  layout         AMP   through   min ms median ms   tokens/s    MFU   MB a rank"
while read -r -d ';' -a sizes || [ ${#sizes[@]} -gt 0 ]; do
    [ ${#sizes[@]} -eq 5 ] || break
    for amp in off bf16 fp16; do train 1 1 "$amp" "train-$backend" "${sizes[@]}"; done
    if [ -x "$build/train-$backend-nccl" ]; then train 1 1 bf16 "train-$backend-nccl" "${sizes[@]}"; fi
    train 2 2 bf16 "train-$backend" "${sizes[@]}"
    train 2 1 bf16 "train-$backend" "${sizes[@]}"
    sizes=()
done <<< "$models;"

section "PyTorch beside it"
if /usr/bin/python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    /usr/bin/python3 common/backend/cuda/torch_steps.py "$models" "$steps"
else
    echo "no PyTorch that sees a GPU"
fi
section end
exit $((failures > 0))
