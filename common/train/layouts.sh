#!/usr/bin/env bash
# layouts.sh BUILD: trains one model in thirteen layouts and prints a table: last loss, the largest
# difference of a loss and of a weight from the run on one rank, memory, bytes and time. Also trains
# three of the layouts with averaged weights, with recomputation and with a sharded optimiser; the
# labs' BERT also with sequence parallelism, and with the last three settings together. The
# differences may be up to 8 times those of serial runs whose initial weights are moved by one unit
# in the last place. A loss may always differ by 8 such units. Ends with a sentence, and with exit
# status 1 if a layout differs by more. On a terminal, each table after the first is a line, and
# shows only the layouts that differ by more. OPTIONS replaces the sizes; MODEL=bert, MODEL=gpt2,
# MODEL=llama, TASK, DATA, VOCAB and PACK mean the same as for make train.
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/../base/say.sh"
build=$1
case ${MODEL:-} in
'' | bert | gpt2) own="--hidden-dim 96 --dropout 0.1" ;;
llama) own="--hidden-dim 144" ;; # 384 columns in its feed-forward layers, which 3 ranks can share
*) give_up "$(said 'make layouts does not train MODEL=%s' "$MODEL")" \
    "$(say 'it trains small models of sizes that every layout can split: MODEL=bert, MODEL=gpt2, MODEL=llama, or the BERT of the labs if you leave out MODEL')" ;;
esac
read -r -a options <<< "${OPTIONS:---layers 4 $own --heads 12 --batch-size 12 --seq 64 --steps 10}"
for setting in MODEL TASK DATA VOCAB PACK; do # the sizes come after MODEL, and override those that it sets
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

larger() {
    awk "BEGIN { print ($1 > $2) ? $1 : $2 }"
}

losses_apart() {
    paste "$work/serial.loss" "$work/$1.loss" |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d } END { printf "%.3g", m }'
}

weights_apart() {
    "$build/checkpoint" compare "$work/serial" "$work/$1" | sed -n 's/^largest difference in any weight: //p'
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

# begin_table OPTIMIZER LOSS WEIGHT: prints the head of a table, with the differences allowed.
begin_table() {
    printf '\n%s\n%s\n' "$1" "$(said 'allowed: losses %.3g, weights %.3g apart' "$2" "$3")"
    tell '                             most apart      peak      MB sent over      step'
    tell ' tp  dp  pp   last loss    losses   weights     MB     tp     dp     pp    ms'
}

# row NAME TP DP PP LOSSES WEIGHTS MARK: prints a line of a table; if it is brief, keeps the line for
# end_table if the layout differs by more than is allowed.
row() {
    local name=$1 line
    printf -v line '%3s %3s %3s %11s %9s %9.3g %6.1f %6.1f %6.1f %6.1f %6.1f %s' "$2" "$3" "$4" "$(tail -1 "$work/$name.loss")" \
        "$5" "$6" "$(awk "BEGIN { print $(field "$name" peak_bytes) / 1e6 }")" \
        "$(awk "BEGIN { print $(field "$name" comm_bytes_tp) / 1e6 }")" "$(awk "BEGIN { print $(field "$name" comm_bytes_dp) / 1e6 }")" \
        "$(awk "BEGIN { print $(field "$name" comm_bytes_pp) / 1e6 }")" "$(awk "BEGIN { print 1e3 * $(field "$name" step_s) }")" "$7"
    if [ -z "$brief" ]; then
        printf '%s\n' "$line"
    elif [ "$7" = ✗ ]; then
        rows+=$line$'\n'
    fi
}

# end_table COUNT LOSSES WEIGHTS: ends the line of a brief table. On a terminal, all tables but the
# first are brief.
end_table() {
    if [ "$brief" ]; then
        printf '%3s %9.3g %9.3g %s\n%s' "$1" "$2" "$3" "$([ "$rows" ] && echo ✗ || echo ✓)" "$rows"
    elif [ -t 1 ]; then
        brief=yes
        echo
        tell 'Other settings, a line each; "make layouts | cat" prints a table for each.'
        tell '                                                    layouts    losses   weights'
    fi
}

# table OPTIMIZER OPTIONS... [-- MORE...]: prints a table. Only runs on several ranks get the
# options MORE.
table() {
    local optimizer=$1 loss=0 weight=0 name tp dp pp losses weights mark count=0 most=(0 0) rows='' more=() given=("${options[@]}")
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    more=("${@:2}")
    [ -z "$brief" ] || padded 55 "$optimizer"
    run serial 1 --tp 1
    loss=$(awk 'NR == 1 { print 2 ^ (int(log($1) / log(2) + 100) - 123) }' "$work/serial.loss")
    for k in 1 2 3; do
        run "moved$k" 1 --tp 1 --perturb "$k"
        loss=$(larger "$loss" "$(losses_apart "moved$k")") weight=$(larger "$weight" "$(weights_apart "moved$k")")
    done
    [ "$brief" ] || begin_table "$optimizer" "$(awk "BEGIN { print 8 * $loss }")" "$(awk "BEGIN { print 8 * $weight }")"
    while read -r -u 3 tp dp pp; do
        name=$tp-$dp-$pp
        run "$name" $((tp * dp * pp)) --tp "$tp" --pp "$pp" --micro $((pp > 1 ? 3 : 1)) "${more[@]}"
        losses=$(losses_apart "$name") weights=$(weights_apart "$name")
        mark=$(awk "BEGIN { print ($losses <= 8 * $loss && $weights <= 8 * $weight) ? \"✓\" : \"✗\" }")
        [ "$mark" = ✓ ] || apart=$((apart + 1))
        trained=$((trained + 1)) count=$((count + 1))
        most=("$(larger "${most[0]}" "$losses")" "$(larger "${most[1]}" "$weights")")
        row "$name" "$tp" "$dp" "$pp" "$losses" "$weights" "$mark"
    done 3< <(layouts "${more[@]}")
    end_table "$count" "${most[@]}"
    rm -rf "${work:?}"/*
    options=("${given[@]}")
}

trained=0 apart=0 brief=
table "$(say 'SGD, rate 0.3')" --optimizer sgd --lr 0.3 --weight-decay 0
table "$(say 'SGD, rate 0.3, AVERAGE=1')" --optimizer sgd --lr 0.3 --weight-decay 0 -- --average 1
table "$(say 'SGD, rate 0.3, RECOMPUTE=block')" --optimizer sgd --lr 0.3 --weight-decay 0 -- --recompute block
[ -n "${MODEL:-}" ] || table "$(say 'SGD, rate 0.3, SP=1')" --optimizer sgd --lr 0.3 --weight-decay 0 -- --sp 1
table "$(say 'AdamW, rate 1e-3, eps 1e-4, ZERO=1')" --lr 1e-3 --eps 1e-4 -- --zero 1
[ -n "${MODEL:-}" ] || table "$(say 'AdamW, rate 1e-3, eps 1e-4, ZERO=1 SP=1 RECOMPUTE=block')" --lr 1e-3 --eps 1e-4 -- --zero 1 --sp 1 --recompute block
table "$(say 'AdamW, rate 1e-3, eps 1e-4')" --lr 1e-3 --eps 1e-4
table "$(say 'AdamW, rate 1e-3, eps 1e-8')" --lr 1e-3
echo
if [ "$apart" = 0 ]; then
    tell 'In all %s layouts, losses and weights equal those of one rank, up to rounding.' "$trained"
else
    tell 'In %s of %s layouts, marked ✗, losses or weights differ from those of one rank by more than rounding explains.' "$apart" "$trained"
fi | fold -s -w 80
[ "$apart" = 0 ]
