#!/usr/bin/python3
"""ZERO=1: the optimiser's state is sharded over the replicas. A run stays the same: bit for bit
with two replicas, up to rounding with more. Memory and bytes are as predicted, and checkpoints
equal those of a run without ZERO."""
import itertools
import os
import tempfile

from layouts_apart import SMALL, deviation, unit, weights_apart
from runs import as_in_dry_run, check, lacks_bf16, losses_of, metrics_of, run

STEPS = [*SMALL, "--steps", 4, "--check", 1]
RUNS = {
    "AdamW": (),
    "SGD": ("--optimizer", "sgd", "--lr", 0.3),
    "CLIP": ("--clip", 0.05),
    "bf16": ("--amp", "bf16"),
    "masked tokens": ("--task", "mlm", "--positions", 1),
    "gpt2": ("--model", "gpt2"),
}
if why := lacks_bf16():
    print(f"skip - bf16: two replicas with ZERO=1 make the same run, bit for bit: {why}")
    del RUNS["bf16"]


def files_of(folder):
    """The files of the folder's last checkpoint, except index.json, whose sums of doubles may
    differ."""
    step = os.path.join(folder, sorted(os.listdir(folder))[-1])
    return [os.path.join(step, name) for name in sorted(os.listdir(step)) if name.endswith(".safetensors")]


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    number = itertools.count()

    def saved(ranks, *options, steps=STEPS):
        to = f"{folder}/{next(number)}"
        return losses_of(ranks, *steps, *options, "--save", to), to

    for name, options in RUNS.items():
        for tp, pp, micro in ((1, 1, 1), (2, 1, 2)):
            layout = ("--tp", tp, "--dp", 2, "--pp", pp, "--micro", micro)
            (losses, plain), (with_zero, shared) = saved(2 * tp * pp, *options, *layout), saved(2 * tp * pp, *options, *layout, "--zero", 1)
            check(len(losses) == 4 and losses == with_zero and weights_apart(plain, shared) == 0,
                  f"{name}, tp {tp}, {micro} micro-batches: two replicas with ZERO=1 make the same run, bit for bit", f"{losses} and {with_zero}")

    for name, options in {"AdamW": ("--eps", 1e-4), "SGD": RUNS["SGD"], "gpt2": ("--model", "gpt2", "--eps", 1e-4)}.items():
        serial, of_serial = saved(1, *options)
        moved = [saved(1, *options, "--perturb", k) for k in (1, 2, 3)]
        loss = 8 * max(unit(serial[0]), *(deviation(serial, losses) for losses, _ in moved))
        weight = 8 * max(weights_apart(of_serial, to) for _, to in moved)
        for tp, dp, pp in ((1, 3, 1), (2, 3, 1), (1, 3, 2), (2, 2, 2)):
            losses, to = saved(tp * dp * pp, *options, "--tp", tp, "--dp", dp, "--pp", pp, "--micro", 2 if pp > 1 else 1, "--zero", 1, "--clip", 1e6)
            apart = deviation(serial, losses), weights_apart(of_serial, to)
            check(len(losses) == 4 and apart[0] <= loss and apart[1] <= weight,
                  f"{name}, tp {tp}, dp {dp}, pp {pp}: with ZERO=1, losses and weights equal those of one rank, and what several ranks hold is the same",
                  f"{apart[0]:.3g} and {apart[1]:.3g} apart, {loss:.3g} and {weight:.3g} allowed")

    FOUR = ("--dp", 4, "--tp", 1)
    (plain, to_plain), (shared, to_shared) = saved(2, "--dp", 2, "--tp", 1), saved(2, "--dp", 2, "--tp", 1, "--zero", 1)
    pairs = list(zip(files_of(to_plain), files_of(to_shared)))
    check(pairs and all(os.path.getsize(a) == os.path.getsize(b) for a, b in pairs), "a checkpoint with ZERO=1 has the format of one without")

    EIGHT = [*SMALL, "--steps", 8, "--check", 1, "--eps", 1e-4]
    HALF = [*EIGHT[:EIGHT.index("--steps")], "--steps", 4, *EIGHT[EIGHT.index("--steps") + 2:]]
    once, of_once = saved(4, *FOUR, "--zero", 1, steps=EIGHT)
    moved, of_moved = saved(4, *FOUR, "--zero", 1, "--perturb", 1, steps=EIGHT)
    for title, first, second in (("at once", (4, *FOUR, "--zero", 1), (4, *FOUR, "--zero", 1)),
                                 ("with another dp", (2, "--dp", 2, "--tp", 1, "--zero", 1), (3, "--dp", 3, "--tp", 1, "--zero", 1)),
                                 ("with another tp", (4, "--dp", 2, "--tp", 2, "--zero", 1), (4, *FOUR, "--zero", 1)),
                                 ("with another pp", (4, *FOUR, "--zero", 1), (4, "--dp", 2, "--tp", 1, "--pp", 2, "--zero", 1)),
                                 ("without ZERO", (4, *FOUR, "--zero", 1), (2, "--dp", 2, "--tp", 1)),
                                 ("with ZERO for the first time", (2, "--tp", 2, "--dp", 1), (4, *FOUR, "--zero", 1))):
        to = f"{folder}/{next(number)}"
        losses = losses_of(first[0], *HALF, *first[1:], "--save", to)
        losses += losses_of(second[0], *EIGHT, *second[1:], "--save", to, "--resume", to)
        apart, allowed = deviation(once, losses), 8 * deviation(once, moved)
        far, far_allowed = weights_apart(of_once, to), 8 * weights_apart(of_once, of_moved)
        same = losses == once and far == 0
        check(len(losses) == 8 and (same or title != "at once") and apart <= allowed and far <= far_allowed,
              f"a run with ZERO=1 resumes {title}, and stays the same run", f"{apart:.3g} and {far:.3g} apart, {allowed:.3g} and {far_allowed:.3g} allowed")

    SENT = [*SMALL, "--steps", 2, "--check", 0]
    for dp in (2, 3, 4):
        plain, shared = (metrics_of(dp, *SENT, "--tp", 1, "--dp", dp, *more)[-1]["ranks"] for more in ((), ("--zero", 1)))
        state = [rank["peak"]["optimiser"] for rank in shared]
        whole = plain[0]["peak"]["optimiser"]
        check(max(state) <= 1.02 * whole / dp + 4096 and min(state) > 0, f"{dp} replicas with ZERO=1: each has 1/{dp} of the optimiser's state",
              f"{state} of {whole}")
        ratio = sum(rank["comm_bytes_dp"] for rank in shared) / sum(rank["comm_bytes_dp"] for rank in plain)
        check(abs(ratio - 1) < 0.01, f"{dp} replicas with ZERO=1 send as much as without", f"{ratio}")

for kind in ("--model", "llama"), ("--model", "gpt2"), ("--task", "mlm"):
    for tp, dp in ((1, 2), (1, 3), (2, 2)):
        as_in_dry_run(f"{kind[1]} at tp {tp}, dp {dp} with ZERO=1: each rank holds and sends what make check says", tp * dp, *kind, "--layers", 4,
                      "--hidden-dim", 96, "--heads", 6, "--seq", 64, "--batch-size", 12, "--steps", 1, "--test", "", "--threads", 1, "--tp", tp, "--dp", dp,
                      "--zero", 1, apart=0.01 if kind[1] == "mlm" else 0, sums_apart=0.01 if kind[1] == "mlm" else 0)

done = run(2, *STEPS, "--tp", 1, "--zero", 1)
check("optimiser keeps its state for a part of the weights on each replica" in done.stdout, "the table says what the replicas share", done.stdout + done.stderr)
for options, words in ((("--average", 2), "ZERO=1 cannot be combined with AVERAGE=2"), (("--allreduce", "ring"), "ZERO=1 cannot be combined with ALLREDUCE=ring"),
                       (("--dp", 1, "--tp", 2), "there is only one replica")):
    done = run(2, *STEPS, "--zero", 1, *options)
    check(done.returncode == 2 and words in done.stderr and "HINT" in done.stderr and done.stderr.count("error:") == 1,
          f"ZERO=1 with {' '.join(map(str, options))} is refused, with a hint", done.stderr)
