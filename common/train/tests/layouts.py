#!/usr/bin/python3
"""One model, every layout: the loss of each step and the final weights for every tp x dp x pp equal
those of one rank, up to rounding. The tolerance is measured: 8 times the largest deviation of
serial runs whose initial weights are moved by one unit in the last place."""
import math
import tempfile

from layouts_apart import OPTIMISERS, SMALL, at_every_layout, deviation
from runs import check, losses_of, metrics_of

for name in ("SGD, dropout 0.1", "AdamW with eps 1e-4, dropout 0.1"):  # slow_layouts.py has the others
    at_every_layout(name)

ADAMW = OPTIMISERS["AdamW, dropout 0"]
SMALL = [*SMALL, "--steps", 12]
whole = losses_of(1, *SMALL, *ADAMW)
moved = max(deviation(whole, losses_of(1, *SMALL, *ADAMW, "--perturb", k)) for k in (1, 2, 3))
parts = losses_of(2, *SMALL, *ADAMW, "--tp", 1, "--micro", 3)
check(deviation(whole, parts) <= 8 * moved, "three micro-batches per step give the losses of the whole batch",
      f"{deviation(whole, parts)} apart, {8 * moved} allowed")

ring = losses_of(4, *SMALL, *ADAMW, "--tp", 1, "--allreduce", "ring")
check(deviation(whole, ring) <= 8 * moved, "gradients summed by the ring of lab 15 give the losses of the whole batch",
      f"{deviation(whole, ring)} apart, {8 * moved} allowed")

CLIP = [*ADAMW, "--clip", 0.05]
norms = [[line["grad_norm"] for line in metrics_of(tp * dp * pp, *SMALL, *CLIP, "--tp", tp, "--pp", pp) if "step" in line]
         for tp, dp, pp in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1), (1, 1, 3), (2, 1, 2))]
check(all(abs(a - b) <= 1e-5 * a for other in norms[1:] for a, b in zip(norms[0], other)) and norms[0][0] > 0.05,
      "the norm of the gradient is the same at every layout", str([n[:3] for n in norms]))
check(deviation(losses_of(1, *SMALL, *CLIP), whole) > 1e-5, "clipping changes what is learnt")
rates = [line["lr"] for line in metrics_of(1, *SMALL, *ADAMW, "--warmup", 4, "--decay", 12) if "step" in line]
check(rates[:5] == [0.00025, 0.0005, 0.00075, 0.001, 0.001] and abs(rates[8] - 0.0005) < 1e-12 and rates[11] > 0,
      "the rate rises over the warm-up and falls to zero at the end of the decay", str(rates))

for tp, dp, pp in ((2, 1, 1), (2, 2, 1), (1, 2, 2)):
    again = [losses_of(tp * dp * pp, *SMALL, *ADAMW, "--tp", tp, "--pp", pp) for _ in range(2)]
    check(again[0] == again[1], f"two runs at tp {tp}, dp {dp}, pp {pp} are equal to the last digit")
threads = [losses_of(1, *SMALL, "--threads", n, *OPTIMISERS["AdamW, dropout 0"]) for n in (2, 2)]
check(threads[0] == threads[1], "two runs of one rank with two threads are equal to the last digit")
other = losses_of(1, *SMALL, *OPTIMISERS["AdamW, dropout 0"], "--seed", 2)
check(deviation(again[0], other) > 1e-3, "another seed gives other losses")

EVALUATED = [*SMALL[:-2], "--samples", 64, "--epochs", 1, "--test", "data/reviews/test.csv", "--lr", 1e-3]
accuracies = {layout: [line["test_accuracy"] for line in metrics_of(math.prod(layout), *EVALUATED, "--tp", layout[0], "--pp", layout[2])
                       if "test_accuracy" in line]
              for layout in ((1, 1, 1), (2, 1, 1), (1, 3, 1), (2, 2, 1), (1, 1, 3), (1, 3, 2))}
check(len(set(map(tuple, accuracies.values()))) == 1 and len(accuracies[1, 1, 1]) == 1,
      "the test accuracy is the same at every layout, replicas that read different numbers of rows included", str(accuracies))

with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    file.write("review,label\na good film,1\na bad film,0\nno film,0\n")
    file.flush()
    FEW = [*SMALL[:-2], "--samples", 12, "--epochs", 1, "--test", file.name]
    accuracies = [[line["test_accuracy"] for line in metrics_of(ranks, *FEW, "--tp", 1) if "test_accuracy" in line] for ranks in (1, 4)]
check(accuracies[0] == accuracies[1] and len(accuracies[0]) == 1,
      "three test rows on four replicas give the accuracy of one rank", str(accuracies))
