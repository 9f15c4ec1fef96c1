#!/usr/bin/python3
"""RECOMPUTE: the backward pass runs blocks, or their attention, again. The numbers of a run stay
the same, bit for bit; its memory and its bytes are those that make model predicts."""
import os
import sys
import tempfile

from layouts_apart import SMALL, weights_apart
from runs import check, losses_of, metrics_of, run

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../bench"))
import cost
import language_cost
import pace

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

H, RATES = 96, pace.Cluster(1.0, 1.0, 1.0, 1.0, pace.Link(0.0, 1e9), pace.Link(0.0, 1e9))
for kind, vocabulary, *options in (("llama", 708, "--model", "llama"), ("gpt2", 657, "--model", "gpt2"), ("mlm", 968, "--task", "mlm")):
    for what in WHAT:
        model = language_cost.LanguageModel(4, H, 6, 64, 8, vocabulary, kind=kind, recompute=what)
        for tp in (1, 2):
            rank = metrics_of(tp, *options, "--layers", 4, "--hidden-dim", H, "--heads", 6, "--seq", 64, "--batch-size", 8, "--steps", 2, "--test", "",
                              "--threads", 1, "--check", 0, "--tp", tp, "--recompute", what)[-1]["ranks"][0]
            paper, sent = cost.memory(RATES, model, tp, 1), cost.sent(RATES, model, tp, 1)[0]
            check(abs(rank["peak_bytes"] / paper - 1) < 0.01 and abs(rank["comm_bytes_tp"] / 2 - sent) <= 0.005 * sent,
                  f"{kind} at tp {tp}, RECOMPUTE={what}: a rank's peak and its bytes are within 1 % of those of make model",
                  f"{rank['peak_bytes']} and {rank['comm_bytes_tp'] / 2}; on paper {paper:.0f} and {sent:.0f}")

done = run(1, *STEPS, "--recompute", "block")
check("memory    keeps the input of each block; the backward pass runs the block again" in done.stdout, "the table says what runs again", done.stdout)
done = run(1, *STEPS, "--recompute", "norm")
check(done.returncode == 2 and "block or attention" in done.stderr, "another RECOMPUTE is refused, with what it can be", done.stderr)
