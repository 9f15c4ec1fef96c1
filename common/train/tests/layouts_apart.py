"""Runs one model in every layout, and measures how far two runs are apart."""
import math
import shutil
import subprocess
import tempfile

from runs import BUILD, check, losses_of

LAYOUTS = ((2, 1, 1), (4, 1, 1), (1, 2, 1), (1, 4, 1), (2, 2, 1), (4, 2, 1), (2, 3, 1), (3, 2, 1), (1, 1, 2), (1, 2, 3), (2, 2, 2), (1, 1, 4))
SMALL = ["--layers", 4, "--hidden-dim", 48, "--heads", 12, "--batch-size", 12, "--seq", 48, "--samples", 256, "--test", "",
         "--threads", 1]
TEN_STEPS = [*SMALL, "--steps", 10]
OPTIMISERS = {
    "SGD, dropout 0": ["--optimizer", "sgd", "--lr", 0.3, "--weight-decay", 0, "--dropout", 0],
    "SGD, dropout 0.1": ["--optimizer", "sgd", "--lr", 0.3, "--weight-decay", 0, "--dropout", 0.1],
    "AdamW, dropout 0": ["--lr", 1e-3, "--dropout", 0],
    "AdamW with eps 1e-4, dropout 0.1": ["--lr", 1e-3, "--dropout", 0.1, "--eps", 1e-4],
}


def deviation(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def unit(loss):
    """One unit in the last place of a loss in single precision. Rounding may change a loss by this
    much, even if moving the initial weights happens to change none."""
    return 2.0 ** (math.frexp(loss)[1] - 24)


def weights_apart(one, other):
    """The largest difference in any weight between two saved runs."""
    said = subprocess.run([f"{BUILD}/checkpoint", "compare", one, other], capture_output=True, text=True, check=True).stdout
    return float(said.partition("largest difference in any weight: ")[2].split()[0])


def at_every_layout(name):
    """Tests one model with this optimiser: losses and weights in every layout equal those of one
    rank, up to rounding."""
    options = OPTIMISERS[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:

        def saved(run, ranks, *more):
            return losses_of(ranks, *TEN_STEPS, *options, "--save", f"{folder}/{run}", *more)

        serial = saved("serial", 1)
        moved = [(deviation(serial, saved(f"moved-{k}", 1, "--perturb", k)), weights_apart(f"{folder}/serial", f"{folder}/moved-{k}"))
                 for k in (1, 2, 3)]
        loss, weight = (8 * max(column) for column in zip(*moved, (unit(serial[0]), 0)))
        for tp, dp, pp in LAYOUTS:
            losses = saved("parts", tp * dp * pp, "--tp", tp, "--pp", pp, "--micro", 3 if pp > 1 else 1)
            apart = deviation(serial, losses), weights_apart(f"{folder}/serial", f"{folder}/parts")
            shutil.rmtree(f"{folder}/parts")
            check(len(serial) == len(losses) == 10 and weight > 0 and apart[0] <= loss and apart[1] <= weight,
                  f"tp {tp}, dp {dp}, pp {pp} gives the losses and the weights of one rank ({name})",
                  f"{apart[0]:.3g} and {apart[1]:.3g} apart, {loss:.3g} and {weight:.3g} allowed")
