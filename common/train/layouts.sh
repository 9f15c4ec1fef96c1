#!/usr/bin/env bash
# layouts.sh BUILD: trains one model at thirteen layouts and prints a table: last loss, the largest
# difference of a loss and of a weight from one rank, memory, bytes and time. Also trains three of
# the layouts with averaged weights, with recomputation and with a sharded optimiser; a BERT also
# with sequence parallelism, and with the last three settings together. The differences may be 8
# times those of serial runs whose initial weights are moved by one unit in the last place. A loss
# may always differ by 8 such units. Ends with a sentence, and with exit status 1 if a layout
# differs by more. OPTIONS replaces the sizes; MODEL=gpt2, MODEL=llama, TASK, DATA and VOCAB mean
# the same as for make train.
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/../base/say.sh"
build=$1
case ${MODEL:-} in
'' | gpt2) own="--hidden-dim 96 --dropout 0.1" ;;
llama) own="--hidden-dim 144" ;; # 384 columns in its feed-forward layers, which 3 ranks can share
*) give_up "$(said 'make layouts does not train MODEL=%s' "$MODEL")" \
    "$(say 'it trains small models of sizes that every layout can split: MODEL=gpt2, MODEL=llama, or the BERT if you leave out MODEL')" ;;
esac
read -r -a options <<< "${OPTIONS:---layers 4 $own --heads 12 --batch-size 12 --seq 64 --steps 10}"
for setting in MODEL TASK DATA VOCAB; do # the sizes come after MODEL, and override those that it sets
    [ -z "${!setting:-}" ] || options=("--${setting,,}" "${!setting}" "${options[@]}")
done
work=$(mktemp -d "$build/layouts.XXXXXX")
trap 'rm -rf "$work"' EXIT

# run NAME RANKS OPTIONS...
run() {
    local name=$1 ranks=$2
    shift 2
    common/train/launch.sh "$ranks" solutions 16 "$build/train" --cache "$build/cache" --test "" --threads 1 \
        "${options[@]}" --save "$work/$name" --metrics "$work/$name.jsonl" "$@" > "$work/$name.out" || exit 2
    sed -n 's/^{"step":.*"loss":\([-0-9.e+]*\),.*"lr".*/\1/p' "$work/$name.jsonl" > "$work/$name.loss"
}

losses_apart() {
    paste "$work/serial.loss" "$work/$1.loss" |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d } END { printf "%.3g", m }'
}

weights_apart() {
    "$build/checkpoint" compare "$work/serial" "$work/$1" | sed -n 's/^largest difference of a weight: //p'
}

# layouts [MORE...]: the layouts in the table of runs with the options MORE.
layouts() {
    local all=("1 1 1" "2 1 1" "4 1 1" "1 2 1" "1 4 1" "2 2 1" "4 2 1" "2 3 1" "3 2 1" "1 1 2" "1 2 3" "2 2 2" "1 1 4")
    [ $# = 0 ] || all=("1 2 1" "2 3 1" "2 2 2")
    printf '%s\n' "${all[@]}"
}

# field NAME KEY: a number of rank 0 in the summary
field() {
    sed -n '$s/.*"rank":0,[^]]*\("'"$2"'":[-0-9.e+]*\).*/\1/p' "$work/$1.jsonl" | head -1 | sed 's/.*://'
}

# table OPTIMIZER OPTIONS... [-- MORE...]: prints a table. Only runs on several ranks get the
# options MORE.
table() {
    local optimizer=$1 loss=0 weight=0 name tp dp pp losses weights mark status=0 more=() given=("${options[@]}")
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    more=("${@:2}")
    run serial 1 --tp 1
    loss=$(awk 'NR == 1 { print 2 ^ (int(log($1) / log(2) + 100) - 123) }' "$work/serial.loss")
    for k in 1 2 3; do
        run "moved$k" 1 --tp 1 --perturb "$k"
        loss=$(printf '%s %s\n' "$loss" "$(losses_apart "moved$k")" | awk '{ print (($1 > $2) ? $1 : $2) }')
        weight=$(printf '%s %s\n' "$weight" "$(weights_apart "moved$k")" | awk '{ print (($1 > $2) ? $1 : $2) }')
    done
    printf '\n%s\n%s\n' "$optimizer" "$(said 'allowed: losses %.3g, weights %.3g apart' "$(awk "BEGIN { print 8 * $loss }")" \
        "$(awk "BEGIN { print 8 * $weight }")")"
    tell '                             most apart      peak      MB sent over      step'
    tell ' tp  dp  pp   last loss    losses   weights     MB     tp     dp     pp    ms'
    while read -r -u 3 tp dp pp; do
        name=$tp-$dp-$pp
        run "$name" $((tp * dp * pp)) --tp "$tp" --pp "$pp" --micro $((pp > 1 ? 3 : 1)) "${more[@]}"
        losses=$(losses_apart "$name") weights=$(weights_apart "$name")
        mark=$(awk "BEGIN { print ($losses <= 8 * $loss && $weights <= 8 * $weight) ? \"✓\" : \"✗\" }")
        [ "$mark" = ✓ ] || status=1 apart=$((apart + 1))
        trained=$((trained + 1))
        printf '%3s %3s %3s %11s %9s %9.3g %6.1f %6.1f %6.1f %6.1f %6.1f %s\n' "$tp" "$dp" "$pp" "$(tail -1 "$work/$name.loss")" \
            "$losses" "$weights" "$(awk "BEGIN { print $(field "$name" peak_bytes) / 1e6 }")" \
            "$(awk "BEGIN { print $(field "$name" comm_bytes_tp) / 1e6 }")" "$(awk "BEGIN { print $(field "$name" comm_bytes_dp) / 1e6 }")" \
            "$(awk "BEGIN { print $(field "$name" comm_bytes_pp) / 1e6 }")" "$(awk "BEGIN { print 1e3 * $(field "$name" step_s) }")" "$mark"
    done 3< <(layouts "${more[@]}")
    rm -rf "${work:?}"/*
    options=("${given[@]}")
    return "$status"
}

result=0 trained=0 apart=0
table "$(say 'SGD, rate 0.3')" --optimizer sgd --lr 0.3 --weight-decay 0 || result=1
table "$(say 'SGD, rate 0.3, AVERAGE=1')" --optimizer sgd --lr 0.3 --weight-decay 0 -- --average 1 || result=1
table "$(say 'SGD, rate 0.3, RECOMPUTE=block')" --optimizer sgd --lr 0.3 --weight-decay 0 -- --recompute block || result=1
[ -n "${MODEL:-}" ] || table "$(say 'SGD, rate 0.3, SP=1')" --optimizer sgd --lr 0.3 --weight-decay 0 -- --sp 1 || result=1
table "$(say 'AdamW, rate 1e-3, eps 1e-4, ZERO=1')" --lr 1e-3 --eps 1e-4 -- --zero 1 || result=1
[ -n "${MODEL:-}" ] || table "$(say 'AdamW, rate 1e-3, eps 1e-4, ZERO=1 SP=1 RECOMPUTE=block')" --lr 1e-3 --eps 1e-4 -- --zero 1 --sp 1 --recompute block || result=1
table "$(say 'AdamW, rate 1e-3, eps 1e-4')" --lr 1e-3 --eps 1e-4 || result=1
table "$(say 'AdamW, rate 1e-3, eps 1e-8')" --lr 1e-3 || result=1
echo
if [ "$apart" = 0 ]; then
    tell 'At all %s layouts, losses and weights equal those of one rank, up to rounding.' "$trained"
else
    tell 'At %s of %s layouts, marked ✗, losses or weights differ from those of one rank by more than rounding explains.' "$apart" "$trained"
fi | fold -s -w 80
exit "$result"
