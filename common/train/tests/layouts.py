#!/usr/bin/python3
"""One model, every layout: the loss of each step at every tp x dp is that of one rank, up to rounding. How much rounding
may do is measured: 8 times the largest deviation of serial runs whose initial weights are moved by one unit in the last
place."""
from runs import check, losses_of, metrics_of

SMALL = ["--layers", 2, "--hidden-dim", 64, "--heads", 4, "--batch-size", 12, "--seq", 48, "--steps", 12, "--samples", 256,
         "--test", "", "--threads", 1]
OPTIMISERS = {
    "SGD, dropout 0.1": ["--optimizer", "sgd", "--lr", 0.3, "--weight-decay", 0, "--dropout", 0.1],
    "AdamW, dropout 0": ["--lr", 1e-3, "--dropout", 0],
    "AdamW with eps 1e-4, dropout 0.1": ["--lr", 1e-3, "--dropout", 0.1, "--eps", 1e-4],
}


def deviation(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


for name, options in OPTIMISERS.items():
    serial = losses_of(1, *SMALL, *options)
    moved = max(deviation(serial, losses_of(1, *SMALL, *options, "--perturb", k)) for k in (1, 2, 3))
    for tp, dp in ((2, 1), (4, 1), (1, 2), (1, 4), (2, 2), (2, 3)):
        apart = deviation(serial, losses_of(tp * dp, *SMALL, *options, "--tp", tp))
        check(len(serial) == 12 and 0 < moved and apart <= 8 * moved,
              f"tp {tp}, dp {dp} gives the losses of one rank ({name})", f"{apart:.3g} apart, {8 * moved:.3g} allowed")

ADAMW = OPTIMISERS["AdamW, dropout 0"]
whole = losses_of(1, *SMALL, *ADAMW)
moved = max(deviation(whole, losses_of(1, *SMALL, *ADAMW, "--perturb", k)) for k in (1, 2, 3))
parts = losses_of(2, *SMALL, *ADAMW, "--tp", 1, "--accumulate", 3)
check(deviation(whole, parts) <= 8 * moved, "three micro-batches a step give the losses of the whole batch",
      f"{deviation(whole, parts)} apart, {8 * moved} allowed")

CLIP = [*ADAMW, "--clip", 0.05]
norms = [[line["grad_norm"] for line in metrics_of(tp * dp, *SMALL, *CLIP, "--tp", tp) if "step" in line]
         for tp, dp in ((1, 1), (2, 1), (1, 2), (2, 2))]
check(all(abs(a - b) <= 1e-5 * a for other in norms[1:] for a, b in zip(norms[0], other)) and norms[0][0] > 0.05,
      "the norm of the gradient is the same at every layout", str([n[:3] for n in norms]))
check(deviation(losses_of(1, *SMALL, *CLIP), whole) > 1e-5, "clipping changes what is learnt")
rates = [line["lr"] for line in metrics_of(1, *SMALL, *ADAMW, "--warmup", 4, "--decay", 12) if "step" in line]
check(rates[:5] == [0.00025, 0.0005, 0.00075, 0.001, 0.001] and abs(rates[8] - 0.0005) < 1e-12 and rates[11] > 0,
      "the rate rises over the warm-up and falls to zero at the end of the decay", str(rates))

again = [losses_of(2, *SMALL, *OPTIMISERS["AdamW, dropout 0"]) for _ in range(2)]
check(again[0] == again[1], "two runs of one layout are equal to the last digit")
threads = [losses_of(1, *SMALL[:-1], n, *OPTIMISERS["AdamW, dropout 0"]) for n in (2, 2)]
check(threads[0] == threads[1], "two runs of one rank with two threads are equal to the last digit")
other = losses_of(1, *SMALL, *OPTIMISERS["AdamW, dropout 0"], "--seed", 2)
check(deviation(again[0], other) > 1e-3, "another seed gives other losses")
