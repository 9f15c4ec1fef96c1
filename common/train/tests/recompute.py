#!/usr/bin/python3
"""RECOMPUTE: the backward pass runs blocks, or their attention, again. The numbers of a run stay
the same, bit for bit; its memory and its bytes are those that make check predicts."""
import tempfile

from layouts_apart import SMALL, weights_apart
from runs import as_in_dry_run, check, losses_of, run

WHAT = ("block", "attention")
MODELS = {"reviews": (), "masked tokens": ("--task", "mlm", "--positions", 1), "gpt2": ("--model", "gpt2"), "llama": ("--model", "llama")}
STEPS = [*SMALL, "--steps", 3, "--dropout", 0.1]

with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    for name, options in MODELS.items():
        steps = STEPS if name != "llama" else STEPS[:-2]
        for tp, dp, pp, micro in ((1, 1, 1, 1), (2, 2, 1, 1), (2, 1, 2, 3)):
            layout = ("--tp", tp, "--pp", pp, "--micro", micro)

            def saved(what, *more):
                return losses_of(tp * dp * pp, *options, *steps, *layout, "--save", f"{folder}/{name}-{tp}-{pp}-{what}", *more)

            kept = saved("nothing")
            for what in WHAT:
                again = saved(what, "--recompute", what)
                apart = weights_apart(f"{folder}/{name}-{tp}-{pp}-nothing", f"{folder}/{name}-{tp}-{pp}-{what}")
                check(len(kept) == 3 and kept == again and apart == 0,
                      f"tp {tp}, dp {dp}, pp {pp}, {micro} micro-batches: RECOMPUTE={what} gives the same losses and weights, bit for bit ({name})",
                      f"{kept} and {again}, weights {apart} apart")

for kind in ("--model", "llama"), ("--model", "gpt2"), ("--task", "mlm"):
    for what in WHAT:
        for tp in (1, 2):
            as_in_dry_run(f"{kind[1]} at tp {tp}, RECOMPUTE={what}: each rank holds and sends what make check says", tp, *kind, "--layers", 4,
                          "--hidden-dim", 96, "--heads", 6, "--seq", 64, "--batch-size", 8, "--steps", 1, "--test", "", "--threads", 1, "--tp", tp,
                          "--recompute", what, apart=0.01 if kind[1] == "mlm" else 0, sums_apart=0.01 if kind[1] == "mlm" else 0)

done = run(1, *STEPS, "--recompute", "block")
check("memory    keeps the input of each block; the backward pass runs the block again" in done.stdout, "the table says what runs again", done.stdout)
done = run(1, *STEPS, "--recompute", "norm")
check(done.returncode == 2 and "block or attention" in done.stderr, "another RECOMPUTE is refused, with what it can be", done.stderr)
