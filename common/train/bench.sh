#!/usr/bin/env bash
# bench.sh BUILD: kernels, the whole training step, what layouts send beside the formula, and the way from an edit to a verdict,
# in one run, as tables. The runs of the training step alternate (ROUNDS of them), so that a machine whose speed drifts does not
# favour one of them.
set -euo pipefail
build=$1
rounds=${ROUNDS:-3}
work=$build/bench-data
unset OPENBLAS_CORETYPE
mkdir -p "$work"

# A vocabulary of BERT's size: the committed words, and entries that no text uses.
awk '{ print } END { for (i = NR; i < 30522; i++) printf "[unused%d]\n", i }' data/reviews/vocab.txt > "$work/vocab.txt"

machine() {
    printf 'machine   %s, %s cores\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
    printf 'compiler  %s\n' "$(gcc --version | head -1)"
    printf 'MPI       %s\n' "$(mpirun --version | head -1)"
    printf 'rounds    %s, alternating; load before: %s\n' "$rounds" "$(cut -d' ' -f1-3 /proc/loadavg)"
}

# name, ranks, steps a round, sizes
configurations() {
    echo "2x128-serial 1 14 --layers 2 --hidden-dim 128 --heads 2"
    echo "2x128-tp2 2 14 --layers 2 --hidden-dim 128 --heads 2"
    echo "6x256-serial 1 8 --layers 6 --hidden-dim 256 --heads 4"
    echo "6x256-tp2 2 8 --layers 6 --hidden-dim 256 --heads 4"
    echo "bert-base-serial 1 4 --model base"
    echo "bert-base-tp2 2 4 --model base"
}

run_step() {
    local name=$1 ranks=$2 steps=$3
    shift 3
    common/train/launch.sh "$ranks" solutions 7 "$build/train" --cache "$build/cache" --tp "$ranks" --vocab "$work/vocab.txt" \
        --test "" --seq 128 --batch-size 8 --steps "$steps" --threads 1 --metrics "$work/run.jsonl" "$@" > /dev/null
    # The first two steps of a run fill the pool and the caches.
    sed -n 's/.*"step_s":\([0-9.e+-]*\),"tokens_per_s".*/\1/p' "$work/run.jsonl" | tail -n +3 >> "$work/$name.steps"
    sed -n '$s/.*"rank":0,[^}]*"peak_bytes":\([0-9]*\).*/\1/p' "$work/run.jsonl" > "$work/$name.peak"
}

training_steps() {
    local name
    rm -f "$work"/*.steps "$work"/*.peak
    for ((round = 0; round < rounds; round++)); do
        while read -r -a words; do
            run_step "${words[@]}"
        done < <(configurations)
    done
    printf '\n%-18s %6s %12s %12s %12s %16s\n' "training step" ranks "min ms" "median ms" tokens/s "peak MB a rank"
    configurations | while read -r name ranks _; do
        sort -g "$work/$name.steps" | awk -v name="$name" -v ranks="$ranks" -v peak="$(cat "$work/$name.peak")" '
            { t[NR] = $1 }
            END {
                median = (t[int((NR + 1) / 2)] + t[int(NR / 2) + 1]) / 2
                printf "%-18s %6d %12.1f %12.1f %12.0f %16.0f\n", name, ranks, 1e3 * t[1], 1e3 * median, 1024 / median, peak / 1e6
            }'
    done
}

# traffic TP DP BATCH: what a step of the small model sends, summed over the ranks, beside the formula of lab 11, and the peak of
# a rank. 2 blocks, H = 128, S = 64, 2 classes; every part is a multiple of 16 numbers, to which the arena pads it.
traffic() {
    local tp=$1 dp=$2 batch=$3
    common/train/launch.sh $((tp * dp)) solutions 11 "$build/train" --cache "$build/cache" --tp "$tp" --layers 2 --hidden-dim 128 \
        --heads 4 --seq 64 --batch-size "$batch" --steps 2 --test "" --threads 1 --metrics "$work/run.jsonl" > /dev/null
    tail -1 "$work/run.jsonl" | grep -o '"rank":.*' | sed 's/{"rank"/\n{"rank"/g' | awk -v tp="$tp" -v dp="$dp" -v batch="$batch" '
        function value(key) { return match($0, "\"" key "\":[0-9]+") ? substr($0, RSTART + length(key) + 3) + 0 : 0 }
        { over_tp += value("comm_bytes_tp") / 2; over_dp += value("comm_bytes_dp") / 2; held += value("parameters") }
        value("peak_bytes") > peak { peak = value("peak_bytes") }
        END {
            n = batch * 64 * 128
            printf "%4d %3d %6d %12.3f %12.3f %12.3f %12.3f %16.1f\n", tp, dp, batch, over_tp / 1e6,
                4e-6 * (tp - 1) * ((8 * 2 + 1) * n + 2 * batch * (2 + 128)), over_dp / 1e6, 4e-6 * 2 * (dp - 1) * held / dp, peak / 1e6
        }'
}

layouts() {
    printf '\n%4s %3s %6s %12s %12s %12s %12s %16s\n' tp dp batch "tp MB a step" "by formula" "dp MB a step" "by formula" "peak MB a rank"
    for layout in "1 1 12" "2 1 12" "4 1 12" "1 2 12" "1 4 12" "2 2 12" "4 2 12" "2 3 12" "2 2 24"; do
        # shellcheck disable=SC2086 # three numbers
        traffic $layout
    done
    printf 'The last line has the rows a replica of the second: as much memory, so nothing is held twice for the replicas.\n'
}

edit_to_verdict() {
    local begin
    printf '\nedit to verdict of make grade LAB=6, seconds:'
    for _ in 1 2 3; do
        touch solutions/06-colrow-pair/colrow-pair.c
        begin=$EPOCHREALTIME
        make grade LAB=6 SOLUTION=1 > /dev/null
        awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf " %.2f", b - a }'
    done
    printf '\n'
}

machine
"$build/bench-kernels" 1
training_steps
layouts
edit_to_verdict
