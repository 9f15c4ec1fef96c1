#!/usr/bin/python3
"""AVERAGE=h: each replica steps with its own gradients, and every h steps the replicas average
their weights. With SGD and h = 1, the run equals one that averages gradients, up to rounding. Bytes
and memory are those that `make check` predicts."""
import tempfile

from layouts_apart import SMALL, deviation, unit, weights_apart
from runs import check, dry_run, losses_of, metrics_of, run

FP32 = 4
SGD = [*SMALL, "--optimizer", "sgd", "--lr", 0.3, "--weight-decay", 0, "--check", 1]
STEPS = [*SGD, "--steps", 10]
MASKED = ["--task", "mlm", "--positions", 1]


def equals_gradients(folder, name, layouts, *options):
    """Tests that losses and weights equal those of averaged gradients, up to 8 times the deviation
    of runs whose initial weights are moved by one unit in the last place."""
    def saved(run_name, ranks, *more):
        return losses_of(ranks, *STEPS, *options, "--save", f"{folder}/{name}-{run_name}", *more)

    whole = saved("whole", 1)
    moved = [(deviation(whole, saved(f"moved-{k}", 1, "--perturb", k)), weights_apart(f"{folder}/{name}-whole", f"{folder}/{name}-moved-{k}"))
             for k in (1, 2, 3)]
    loss, weight = (8 * max(column) for column in zip(*moved, (unit(whole[0]), 0)))
    for tp, dp, pp in layouts:
        parts = f"{tp}-{dp}-{pp}"
        losses = saved(parts, tp * dp * pp, "--tp", tp, "--pp", pp, "--micro", 2 if pp > 1 else 1, "--average", 1)
        apart = deviation(whole, losses), weights_apart(f"{folder}/{name}-whole", f"{folder}/{name}-{parts}")
        check(len(losses) == 10 and weight > 0 and apart[0] <= loss and apart[1] <= weight,
              f"tp {tp}, dp {dp}, pp {pp}: with SGD and AVERAGE=1, losses and weights equal those of averaged gradients ({name})",
              f"{apart[0]:.3g} and {apart[1]:.3g} apart, {loss:.3g} and {weight:.3g} allowed")


def bytes_of_steps(average, *options):
    lines = metrics_of(4, *SGD, "--tp", 2, "--average", average, *options)
    parameters = lines[-1]["ranks"][0]["parameters"]
    return [line["comm_bytes_dp"] for line in lines if "step" in line], parameters


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    equals_gradients(folder, "reviews", ((1, 2, 1), (2, 3, 1), (1, 2, 2)))
    equals_gradients(folder, "masked tokens", ((1, 3, 1), (2, 2, 1)), *MASKED)

    sent, parameters = bytes_of_steps(4, "--steps", 10)
    least, rows = FP32 * 2 * parameters // 2, 8
    check([step + 1 for step, count in enumerate(sent) if count] == [4, 8, 10] and
          all(least <= count <= 1.1 * least + rows for count in sent if count),
          "AVERAGE=4 sends over dp after steps 4, 8 and the last one only: all weights once", str(sent))
    sent, _ = bytes_of_steps(100, "--steps", 6, "--save", f"{folder}/some", "--every", 4)
    check([step + 1 for step, count in enumerate(sent) if count] == [4, 6], "and before each checkpoint", str(sent))
    sent, _ = bytes_of_steps(100, "--samples", 36, "--epochs", 2, "--test", "data/reviews/test.csv")
    check([step + 1 for step, count in enumerate(sent) if count] == [3, 6], "and before each evaluation", str(sent))

    apart = [losses_of(2, *STEPS, "--tp", 1, "--dp", 2, *more) for more in ((), ("--average", 4))]
    check(deviation(*apart) > 1e-4, "AVERAGE=4 differs from a run that averages gradients")

    alone = losses_of(4, *STEPS, "--tp", 2, "--average", 3, "--save", f"{folder}/alone", "--every", 5)
    parted = []
    for steps in (5, 10):
        parted += losses_of(4, *SGD, "--steps", steps, "--tp", 2, "--average", 3, "--save", f"{folder}/parted", "--resume", f"{folder}/parted",
                            "--every", 5)
    check(parted == alone and weights_apart(f"{folder}/alone", f"{folder}/parted") == 0,
          "with SGD, a run that resumes between two averages equals one run bit for bit", f"{parted}\n{alone}")

    done = run(2, *STEPS, "--tp", 1, "--average", 4)
    check("averages  of weights every 4 steps, in place of the sums of gradients" in done.stdout, "the table says what is averaged, and when", done.stdout)
    done = run(2, *SMALL, "--steps", 12, "--tp", 1, "--average", 5, "--check", 1, "--clip", 0.1)
    check(done.returncode == 0, "AdamW and clipping work with AVERAGE: after each average, the replicas have the same weights", done.stdout + done.stderr)

for kind, *options in (("reviews",), ("mlm", "--task", "mlm"), ("gpt2", "--model", "gpt2"), ("llama", "--model", "llama")):
    for tp in (1, 2):
        sizes = [*options, "--layers", 4, "--hidden-dim", 96, "--heads", 6, "--seq", 64, "--batch-size", 8, "--test", "", "--tp", tp, "--average", 2]
        rank = metrics_of(2 * tp, *sizes, "--steps", 4, "--threads", 1, "--check", 0)[-1]["ranks"][0]
        played = dry_run(2 * tp, *sizes)[0]
        check(abs(rank["peak_bytes"] / played["peak_bytes"] - 1) < 0.01 and rank["comm_bytes_dp"] / 4 == played["comm_bytes_dp"],
              f"{kind} at tp {tp}, dp 2, AVERAGE=2: a rank sends over dp in a step what make check says, and its peak is within 1 %", f"{rank}\n{played}")
