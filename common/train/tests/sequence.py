#!/usr/bin/python3
"""SP: norms, dropouts and residual sums on the positions of each tp rank. Losses and weights are
the same in all layouts; bytes and memory are the predicted ones; other settings are rejected."""
import shutil
import tempfile

from layouts_apart import SMALL, deviation, unit, weights_apart
from runs import as_in_dry_run, check, losses_of, metrics_of, run

LAYOUTS = ((2, 1, 1), (4, 1, 1), (2, 2, 1), (3, 2, 1), (2, 1, 2), (2, 2, 2))
MODELS = {"reviews": (), "masked tokens": ("--task", "mlm", "--positions", 1)}
STEPS = [*SMALL, "--steps", 3, "--dropout", 0.1, "--optimizer", "sgd", "--lr", 0.3, "--weight-decay", 0]


def layout_of(tp, pp):
    return ("--tp", tp, "--pp", pp, "--micro", 3 if pp > 1 else 1)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    for name, options in MODELS.items():

        def saved(as_name, ranks, *more):
            return losses_of(ranks, *options, *STEPS, "--save", f"{folder}/{as_name}", *more)

        serial = saved("serial", 1)
        moved = [(deviation(serial, saved(f"moved-{k}", 1, "--perturb", k)), weights_apart(f"{folder}/serial", f"{folder}/moved-{k}")) for k in (1, 2, 3)]
        loss, weight = (8 * max(column) for column in zip(*moved, (unit(serial[0]), 0)))
        for tp, dp, pp in LAYOUTS:
            for more in ((), ("--recompute", "block")) if tp * dp * pp < 8 else ((),):
                losses = saved("parts", tp * dp * pp, *layout_of(tp, pp), "--sp", 1, *more)
                apart = deviation(serial, losses), weights_apart(f"{folder}/serial", f"{folder}/parts")
                shutil.rmtree(f"{folder}/parts")
                check(len(serial) == len(losses) == 3 and apart[0] <= loss and apart[1] <= weight,
                      f"tp {tp}, dp {dp}, pp {pp}: SP=1{' with RECOMPUTE=block' if more else ''} gives the losses and weights of one rank ({name})",
                      f"{apart[0]:.3g} and {apart[1]:.3g} apart, {loss:.3g} and {weight:.3g} allowed")
        for kept in ("serial", "moved-1", "moved-2", "moved-3"):
            shutil.rmtree(f"{folder}/{kept}")

# In a gather, a rank sends (n-1)/n of the result; in each f and g, it sends twice that. The pairs
# of a block send as much with SP as f and g do without it. SP also repeats two gathers of each
# block, gathers one tensor at each end, and sums the norms' gradients.
for tp in (2, 4):
    layers, hidden, numbers = 4, 48, 12 * 48 * 48
    plain, split = (metrics_of(tp, *STEPS, "--tp", tp, *more)[-1]["ranks"][0]["comm_bytes_tp"] / 3 for more in ((), ("--sp", 1)))
    more = 4 * (tp - 1) / tp * ((2 * layers + 2) * numbers + 2 * 4 * layers * hidden)
    check(split - plain == more, f"over {tp} ranks, SP=1 sends to the byte what f and g send, the gathers that run again, those of the two ends, "
          "and the norms' gradients", f"{split - plain} more, {more} expected")

sizes = ("--hidden-dim", 96, "--heads", 12, "--seq", 64, "--batch-size", 8, "--steps", 1, "--test", "", "--threads", 1, "--check", 0)


def activations(tp, layers, *more):
    return metrics_of(tp, *sizes, "--layers", layers, "--tp", tp, *more)[-1]["ranks"][0]["peak"]["activations"]


# A block keeps two sums, q, k, v, the output of attention and the inner layer, 10 H together; a bit
# for each number of the inner layer, 4 H / 32; two numbers per row of scores; and two per position
# for each of the two norms.
rows = 8 * 64
for tp in (2, 4):
    each = activations(tp, 7, "--sp", 1) - activations(tp, 6, "--sp", 1)
    share = 4 * rows * (10 * 96 + 4 * 96 / 32 + 2 * 12 + 4) / tp
    check(abs(each / share - 1) < 0.01, f"over {tp} ranks, a block keeps 1/tp of what it keeps on one rank", f"{each} bytes, {share} expected")

for what in ("none", "block", "attention"):
    for tp in (1, 2, 4):
        as_in_dry_run(f"mlm at tp {tp}, SP=1 RECOMPUTE={what}: a rank's peak and its bytes are within 1 % of those of make check", tp, "--task", "mlm", *sizes,
                      "--layers", 4, "--tp", tp, "--sp", 1, "--recompute", what, apart=0.01, sums_apart=0.01)

done = run(2, *STEPS, "--tp", 2, "--sp", 1)
check("sequence  norms, dropouts and residual sums on the positions of each tp rank" in done.stdout, "the table says what is split", done.stdout)
for model in ("gpt2", "llama", "hf:common/pretrained/tests/models/bert"):
    done = run(2, "--model", model, "--seq", 8, "--tp", 2, "--sp", 1)
    check(done.returncode == 2 and "SP=1 splits the positions of the labs' BERT" in done.stderr and done.stderr.count("error") == 1,
          f"SP=1 with MODEL={model} is one error", done.stderr)
done = run(2, *STEPS, "--tp", 2, "--sp", 1, "--seq", 47)
check(done.returncode == 2 and "SEQ=47 is not divisible by TP=2" in done.stderr, "positions that the ranks cannot share are refused", done.stderr)
