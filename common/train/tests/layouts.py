#!/usr/bin/python3
"""One model, every layout: the loss of each step at 2 and 4 ranks is that of one rank, up to rounding. How much rounding
may do is measured: 8 times the largest deviation of serial runs whose initial weights are moved by one unit in the last
place."""
from runs import check, losses_of

SMALL = ["--layers", 2, "--hidden-dim", 64, "--heads", 4, "--batch-size", 8, "--seq", 48, "--steps", 12, "--samples", 256,
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
    for ranks in (2, 4):
        apart = deviation(serial, losses_of(ranks, *SMALL, *options))
        check(len(serial) == 12 and 0 < moved and apart <= 8 * moved,
              f"{ranks} ranks give the losses of one rank ({name})", f"{apart:.3g} apart, {8 * moved:.3g} allowed")

again = [losses_of(2, *SMALL, *OPTIMISERS["AdamW, dropout 0"]) for _ in range(2)]
check(again[0] == again[1], "two runs of one layout are equal to the last digit")
threads = [losses_of(1, *SMALL[:-1], n, *OPTIMISERS["AdamW, dropout 0"]) for n in (2, 2)]
check(threads[0] == threads[1], "two runs of one rank with two threads are equal to the last digit")
other = losses_of(1, *SMALL, *OPTIMISERS["AdamW, dropout 0"], "--seed", 2)
check(deviation(again[0], other) > 1e-3, "another seed gives other losses")
