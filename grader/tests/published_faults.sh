#!/usr/bin/env bash
# Published faults of parallel training, each rebuilt as a wrong lab or a wrong trainer: make check must
# find them in one process, at the line or by the parameter. common/autograd/README.md tells them.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree published_faults

ends_with() { # ends_with COMMAND WORDS SETTING...: one error, which says WORDS
    make --silent "$1" STACK=mine STEPS=1 NTASKS=2 "${@:3}" > out 2>&1 && return 1
    [ "$(grep -c '^error: ' out)" = 1 ] && says "$2" && says HINT
}
is_told() { # is_told FAULT: the documentation has this fault
    grep -qF -- "$1" "$ROOT/common/autograd/README.md"
}
lab_with() { # lab_with LAB SED: the solution, changed by SED
    copy_solution "$1"
    sed -i "$2" "$(lab_file "$1")"
    ! cmp -s "$(lab_file "$1")" "$ROOT/solutions/${file#labs/}"
}
caught() { # caught FAULT LAB SED WORDS SETTING...
    local file status
    file=$(lab_file "$2")
    is_told "$1" && lab_with "$2" "$3" && ends_with check "${@:4}"
    status=$?
    make --silent reset "LAB=$2" > /dev/null 2>&1
    return "$status"
}
# fault FAULT LAB SED WORDS SETTING...: a wrong lab
fault() {
    check "$1 is found: $4" caught "$@"
}

PARTIAL_OVER_DP="the gradient of embedding.weight is still a partial sum over mesh->dp"
fault "NovaSky-AI/SkyRL #1886" 1 's/return group_all_reduce(mesh->world, dy)/return dy/' "duplication_backward: its result is still a partial sum over mesh->tp: nothing has added the other ranks' terms at collectives.c:12" TP=2 UPTO=7
fault "pytorch/torchtitan #1805" 6 '/x = duplication/d' "each rank computes only some outputs, so its gradient of x is only a partial sum at colrow-pair.c:22" TP=2 UPTO=7
fault "pytorch/torchtitan #2387" 6 's/SHAPE(inner, in), shard(0)/SHAPE(inner, in), whole()/' "copied and the weight [512,128] whole: the weight's gradient would be a partial sum" TP=2 UPTO=7
fault "bigcode-project/Megatron-LM #37" 4 '/"key"/s/shard(0)/whole()/' "copied and the weight [128,128] whole: the weight's gradient would be a partial sum" TP=2 UPTO=7
fault "bigcode-project/Megatron-LM #12" 20 's/add_bias(\(all_reduce(.*, mesh)\), layer/add_bias(duplication(\1, mesh), layer/' "the bias's gradient would be a partial sum" TP=2 UPTO=20 MODEL=gpt2
fault "awslabs/slapo #10" 20 's/return add_bias(all_reduce(\(linear\)(x, layer->weight), mesh), layer->bias)/return all_reduce(\1_with_bias(x, layer->weight, layer->bias), mesh)/' "the result is one rank's term of a sum, and the bias belongs after that sum at parallel-linears.c:40" TP=2 UPTO=20 MODEL=gpt2
fault "NVIDIA/Megatron-LM #1989" 20 's/SHAPE(3, hidden, hidden), shard(1)/SHAPE(3 * hidden, hidden), shard(0)/; s/SHAPE(3, hidden), shard(1)/SHAPE(3 * hidden), shard(0)/; s/take(y, 2, \(.\))/part(y, 2, \1, 3)/g' \
    "part k of this rank's columns is not this rank's share of part k of x" TP=2 UPTO=20 MODEL=gpt2
fault "NVIDIA/Megatron-LM #7452" 4 's/^struct MultiHeadSelfAttention {/&\n    LayerNorm *norm;/; s/^    layer->heads = .*/&\n    layer->norm = layer_norm_new(b, hidden \/ b->mesh->tp_degree);/; s/linear(y, /linear(layer_norm(layer->norm, y), /' \
    "shard(2) is not whole" TP=2 UPTO=7
fault "inclusionAI/AReno #496" 6 's/duplication(x, mesh)/duplication(duplication(x, mesh), mesh)/' "a second duplication would sum its gradient twice" TP=2 UPTO=7
fault "NVIDIA/Megatron-LM #1446" 18 '/^    pending_wait/d' "sum_norm_gradients: the gradient of blocks.0.norm1.weight is still a partial sum over mesh->tp" TP=2 UPTO=18 SP=1
fault "modelscope/FunASR #3472" 14 's/pass == passes - 1/pass == 0/' "bucket_filled started the sum over the replicas in backward pass 1 of 2" TP=1 UPTO=14 MICRO=2
fault "hpcaitech/ColossalAI #247" 14 's/pass == passes - 1/pass >= 0/' "and the passes after it add to the same gradients" TP=1 UPTO=14 MICRO=2
fault "huggingface/picotron #5" 14 's/pass == passes - 1/pass == passes/' "pending_wait: there is nothing to wait for at data-parallel.c:28" TP=1 UPTO=14 MICRO=2
fault "karpathy/build-nanogpt #30" 11 '/^    bucket->pending/d; /^        pending_wait/d' "buckets_finish: $PARTIAL_OVER_DP" TP=1 UPTO=14
fault "lodestone-rock/RamTorch #13" 17 's/^    group_reduce_scatter_parts.*/&\n&/' "these numbers are no partial sum over mesh->dp, so the sum would count them once per rank" TP=1 UPTO=17 ZERO=1

# Of the same kind, in the labs: another group, a second sum, numbers that are only scaled.
kind() { # kind SENTENCE LAB SED WORDS SETTING...
    check "$1" caught "| fault |" "${@:2}"
}
copy_solution 12
touch labs/09-grouped-collectives/grouped-collectives.c # lab 9 starts from lab 1's file
kind "a gradient that f leaves partial is told at f's line, although lab 12 runs the backward pass" 9 's/return group_all_reduce(mesh->tp, dy)/return dy/' \
    "duplication_backward: its result is still a partial sum over mesh->tp: nothing has added the other ranks' terms at grouped-collectives.c:12" TP=2 UPTO=14
make --silent reset LAB=12 > /dev/null 2>&1
rm -f labs/09-grouped-collectives/grouped-collectives.c
kind "a bucket that is summed over another group is found" 11 's/start(mesh->dp, bucket/start(mesh->tp, bucket/' "buckets_finish: $PARTIAL_OVER_DP" TP=1 UPTO=18
kind "a bucket that is summed twice is found at the line" 11 's/^        scale(/        pending_wait(group_all_reduce_start(mesh->dp, buckets[i].gradients));\n&/' \
    "group_all_reduce_start: these numbers are no partial sum over mesh->dp, so the sum would count them once per rank at data-parallel.c:29" TP=1 UPTO=18
kind "and so is one that is summed over tp, too" 11 's/^        scale(/        pending_wait(group_all_reduce_start(mesh->tp, buckets[i].gradients));\n&/' \
    "group_all_reduce_start: these numbers are no partial sum over mesh->tp" TP=2 NTASKS=4 UPTO=18
kind "weights that are only scaled are no average" 16 '/^    pending_wait/d' "average_weights: the average of the weights is still a partial sum over mesh->dp" TP=1 AVERAGE=1 UPTO=18
kind "with ZERO=1, parts that are only scaled are found" 17 '/^    group_reduce_scatter_parts/d' "reduce_scatter_gradients: $PARTIAL_OVER_DP" TP=1 ZERO=1 UPTO=18
copy_solution 11
sed -i '/^    bucket->pending/d; /^        pending_wait/d' "$(lab_file 11)"
check "a run ends like its dry run" ends_with train "buckets_finish: $PARTIAL_OVER_DP" TP=1 UPTO=14
make --silent reset LAB=11 > /dev/null 2>&1

# A wrong trainer: the kit, with one file changed.
for lab in 17 18; do copy_solution "$lab"; done
rm common && cp -rp "$ROOT/common" common
wrong_trainer() { # wrong_trainer FAULT SED WORDS SETTING...
    local file=common/train/replicas.c status
    sed -i.right -z "$2" "$file"
    is_told "$1" && ! cmp -s "$file" "$file.right" && ends_with check "${@:3}" UPTO=21
    status=$?
    mv "$file.right" "$file"
    touch "$file"
    return "$status"
}
trainer() {
    check "$1 is found: $3" wrong_trainer "$@"
}
trainer "EleutherAI/gpt-neox #1257" 's/    sum_norms_over_tp([^\n]*//' "sum_norm_gradients: the gradient of blocks.0.norm1.weight is still a partial sum over mesh->tp" TP=2 SP=1
trainer "deepspeedai/DeepSpeed #855" 's/    sharded_reduce([^\n]*//' "reduce_scatter_gradients: $PARTIAL_OVER_DP" TP=1 ZERO=1
trainer "uw-syfi/piper #13" 's/    model_sum_tied([^\n]*//' "model_sum_tied: the gradient of embedding.weight is still a partial sum over mesh->pp" TP=1 PP=2 MODEL=gpt2
trainer "NVIDIA/Megatron-LM #844" 's/\(    sum_within_replica(t);\n\)\(    sharded_reduce([^\n]*\n\)/\2\1/' "model_sum_tied: the gradient of embedding.weight is still a partial sum over mesh->pp" TP=1 PP=2 ZERO=1 NTASKS=4 MODEL=gpt2
finish
