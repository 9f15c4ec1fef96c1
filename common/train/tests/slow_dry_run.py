#!/usr/bin/python3
"""make check is exact in the layouts of make layouts, with every setting that changes them: what each
rank holds, sends and multiplies, to the byte."""
from runs import as_in_dry_run, check

LAYOUTS = ((1, 1, 1), (2, 1, 1), (4, 1, 1), (1, 2, 1), (1, 4, 1), (2, 2, 1), (4, 2, 1), (2, 3, 1), (3, 2, 1), (1, 1, 2), (1, 2, 3), (2, 2, 2), (1, 1, 4))
SIZES = ("--layers", 4, "--heads", 12, "--batch-size", 12, "--seq", 64, "--steps", 1, "--test", "", "--threads", 1)
MODELS = {"llama": ("--model", "llama", "--hidden-dim", 144), "gpt2": ("--model", "gpt2", "--hidden-dim", 96, "--dropout", 0.1)}


def played(name, tp, dp, pp, *more):
    layout = ("--tp", tp, "--pp", pp, "--micro", 3 if pp > 1 else 1)
    said = " ".join(map(str, more))
    last, multiplied = as_in_dry_run(f"{name} at tp {tp}, dp {dp}, pp {pp}{' ' * bool(said)}{said}: each rank holds and sends what make check says, to the byte",
                                     tp * dp * pp, *MODELS[name], *SIZES, *layout, *more)
    return 2 * multiplied / last["model_flops"]


for name in MODELS:
    apart = [played(name, *layout) for layout in LAYOUTS]
    check(max(abs(one - 1) for one in apart) < 1e-8, f"{name}: in every layout, the products of all ranks are those that a run counts", str(apart))
for more in (("--allreduce", "ring"), ("--zero", 1), ("--average", 1), ("--recompute", "block"), ("--recompute", "attention"), ("--schedule", "gpipe"), ("--clip", 1),
             ("--optimizer", "sgd"), ("--micro", 2), ("--threads", 2)):
    for layout in ((1, 2, 1), (2, 3, 1), (2, 2, 2)):
        played("gpt2", *layout, *more)
