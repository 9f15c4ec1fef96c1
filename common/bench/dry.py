"""What a step of a model takes on a rank of a layout: build/check simulates the step (make check)."""
import functools
import json
import os
import tempfile

from rows import said

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STACK = "solutions", 14
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
FP32 = 4  # bytes of a number that make check counts
MOMENTS = 8  # bytes per parameter of AdamW's two moments, which ZERO=1 shards
KINDS = {"linear": "GEMM", "attention": "attention", "attention_causal": "attention", "optimiser": "optimiser", "clipping": "optimiser"}
SENT = ("all_reduce", "duplication", "all_gather", *(f"gradient reduction, {part}" for part in ("which rows", "under way", "exposed")))
SENDS, RECEIVES, WAITED = "send to another stage", "receive from another stage", "waiting for other ranks"
# Element-wise operations on a rank's part of a tensor. All others are on x, whole, or with SP=1 on
# the rank's positions.
ON_PARTS = ("gelu and dropout", "dropout", "gelu", "gelu_tanh", "swiglu", "rotary", "add_bias", "row_sum_exp", "row_pick", "logarithm", "subtract",
            "cross entropy")


def kind_of(what):
    """The category of a span of a profile, or of a dry run."""
    if what in (WAITED, RECEIVES):
        return "waiting"
    return "communication" if what in (*SENT, SENDS) else KINDS.get(what, "element-wise")


@functools.cache
def simulated(*options):
    """The summary of the step, and of a rank of each stage, as the metrics of make train have them."""
    program = f"{BUILD}/check" if STACK[0] == "solutions" else f"{BUILD}/stacks/{STACK[0]}-{STACK[1]}/check"
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics.jsonl")
        said(f"{ROOT}/common/train/dry_run.sh", *options[:1], *STACK, program, "--counts", metrics, *options[1:])
        with open(metrics, encoding="utf-8") as file:
            return json.loads(file.readlines()[-1])


def step(model, tp=1, dp=1, pp=1, micro=1, schedule="1f1b"):
    return simulated(tp * dp * pp, *([] if model.leaves_out else ["--gpu"]), "--tp", tp, "--dp", dp, "--pp", pp, "--micro", micro, "--schedule", schedule,
                     *model.named(), "--layers", model.layers, "--hidden-dim", model.hidden, "--heads", model.heads, "--seq", model.seq,
                     "--batch-size", model.batch, "--vocab-size", model.vocabulary, "--amp", "bf16" if model.rounds else "off", *model.options(dp))


def stages(model, *layout):
    """The summary of the first rank of each stage."""
    return step(model, *layout)["ranks"]


def parameters(model, *layout):
    """The most that a rank holds."""
    return max(rank["parameters"] for rank in stages(model, *layout))


def summed(model, tp=1):
    """The numbers that a rank sums over two replicas in a step."""
    return stages(model, tp, 2)[0]["comm_bytes_dp"] / FP32


def operations(model):
    """The floating-point operations of a step, recomputation included."""
    return 2 * sum(rank["multiply_adds"] for rank in stages(model))


def useful(model):
    """The operations that the model needs in a step, by PaLM's formula (transformer_work())."""
    return step(model)["model_flops"]


def memory_of(cluster, rank):
    """The bytes that a rank needs. On a cluster with numbers of two bytes, activations take half as
    much as in the kit."""
    if cluster.width == FP32:
        return rank["peak_bytes"]
    return (cluster.state - MOMENTS) * rank["parameters"] + rank["peak"]["optimiser"] + cluster.width * rank["peak"]["activations"] // FP32


def memory(cluster, model, *layout):
    """The largest of all stages."""
    return max(memory_of(cluster, rank) for rank in stages(model, *layout))


def sent(model, *layout):
    """The most bytes that a rank of a stage sends in a step."""
    return max(rank["comm_bytes_tp"] + rank["comm_bytes_dp"] + rank["comm_bytes_pp"] for rank in stages(model, *layout))
