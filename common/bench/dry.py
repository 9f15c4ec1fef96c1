"""What a rank of a layout would hold and send: build/check simulates a step of it (make check)."""
import functools
import json
import os
import tempfile

import steps
from rows import said

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOMENTS = 8  # bytes per parameter of AdamW's two moments, which ZERO=1 shards
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))


@functools.cache
def simulated(*options):
    """The summary of a rank of each stage, as the metrics of make train have them."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics.jsonl")
        said(f"{ROOT}/common/train/dry_run.sh", *options[:1], *steps.ALL_LABS, f"{BUILD}/check", "--counts", metrics, *options[1:])
        with open(metrics, encoding="utf-8") as file:
            return json.loads(file.readlines()[-1])["ranks"]


def stages(model, tp, dp, pp=1, micro=1, schedule="1f1b"):
    """The summary of the first rank of each stage."""
    return simulated(tp * dp * pp, *([] if model.leaves_out else ["--gpu"]), "--tp", tp, "--dp", dp, "--pp", pp, "--micro", micro, "--schedule", schedule, *model.named(), "--layers", model.layers,
                  "--hidden-dim", model.hidden, "--heads", model.heads, "--seq", model.seq, "--batch-size", model.batch, "--vocab-size", model.vocabulary,
                  "--amp", "bf16" if model.rounds else "off", *steps.options_of(model, dp))


def memory_of(cluster, rank):
    """The bytes that a rank needs. On a cluster with numbers of two bytes, activations take half as
    much as in the kit."""
    if cluster.width == 4:
        return rank["peak_bytes"]
    return (cluster.state - MOMENTS) * rank["parameters"] + rank["peak"]["optimiser"] + cluster.width * rank["peak"]["activations"] // 4


def memory(cluster, model, *layout):
    """The largest of all stages."""
    return max(memory_of(cluster, rank) for rank in stages(model, *layout))


def sent(model, *layout):
    """The most bytes that a rank of a stage sends in a step."""
    return max(rank["comm_bytes_tp"] + rank["comm_bytes_dp"] + rank["comm_bytes_pp"] for rank in stages(model, *layout))
