"""make bench ONLY=memory: the smallest MEM at which a BERT trains on 4 ranks, plain and with each
setting that saves memory. Beside it, the peak that a rank reports, and the one that cost.py
predicts."""
import dataclasses
import math
import os
import subprocess

import cost
import pace
import steps
from rows import Row, _, give_up, has_failed, number, table

TP, DP = 2, 2
MIB = 1 << 20  # the unit of MEM=800M
# name: what it is, layers, hidden, heads, sequence, batch. The plain BERT-Large needs 13.3 GB on 4
# ranks.
MODELS = {"large": ("BERT-Large", 24, 1024, 16, 512, 4), "base": ("BERT-Base", 12, 768, 12, 512, 4),
          "2x128": ("A BERT of two layers", 2, 128, 2, 128, 8)}
# name: fields of cost.Model
SAVING = {"plain": {}, "ZERO=1": {"zero": True}, "SP=1": {"sequence_parallel": True}, "RECOMPUTE=block": {"recompute": "block"},
          "all three": {"zero": True, "sequence_parallel": True, "recompute": "block"}}


def wanted(part):
    """The model that a part names: BERT-Large unless it names another."""
    if part and part not in MODELS:
        give_up(_("no model whose memory is measured is called '{name}'").format(name=part),
                _("ONLY=memory for BERT-Large, or ONLY=memory/ and one of: ") + ", ".join(MODELS))
    return MODELS[part or "large"]


def available():
    """Bytes that programs can allocate without swapping."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        return next((1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable")), math.inf)


@dataclasses.dataclass
class Runs:
    """Runs of a model for one step, without an evaluation."""

    build: str
    work: str
    model: cost.Model

    def command(self, *more):
        return (self.build, self.work, TP * DP, TP, 1, (*self.model.sizes(), 1), *steps.data_in(self.work),
                *steps.options_of(self.model, DP), *more)

    def peak(self):
        """The most bytes of tensors on any rank."""
        return max(rank["peak_bytes"] for rank in steps.train(*self.command())[-1]["ranks"])

    def fits(self, mem):
        """Does the step run within `mem` MiB per rank? Any other error ends the program."""
        words = steps.command(*self.command("--mem", f"{mem}M"))[0]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C"))
        if done.returncode and "MB that MEM allows" not in done.stderr:
            has_failed(f"MEM={mem}M", done.returncode, done.stderr.strip()[-1000:], words)
        return not done.returncode

    def smallest(self, mem):
        """The smallest MEM that suffices, in MiB; `mem` is a guess that should suffice."""
        if not self.fits(mem):
            return next(more for more in range(mem + 1, 2 * mem + 2) if self.fits(more))
        while mem > 1 and self.fits(mem - 1):
            mem -= 1
        return mem


def measure(build, work, part):
    what, *sizes = wanted(part)
    found = []
    for name, fields in SAVING.items():
        model = cost.Model(*sizes, steps.VOCABULARY, classifies=True, **fields)
        predicted = cost.memory(pace.UNIT, model, TP, DP)
        if TP * DP * predicted > available():
            print(f"memory    no row for {name}: {TP * DP} ranks need {number(TP * DP * predicted / 1e6)} MB, and {number(available() / 1e6)} are available")
            continue
        steps.progress(f"{what}, {name}: {number(predicted / 1e6)} MB per rank predicted")
        runs = Runs(build, work, model)
        peak = runs.peak()
        found.append((name, predicted, peak, runs.smallest(math.ceil(peak / MIB))))
    steps.progress("")
    return show(what, sizes, found)


def show(what, sizes, found):
    layers, hidden, heads, seq, batch = sizes
    if not found:
        return []
    table(f"{what} on {TP * DP} ranks, tp {TP} and dp {DP}, MB of a rank's tensors\n"
          f"({layers} layers, hidden {hidden}, {heads} heads, SEQ {seq}, BATCH_SIZE {batch})",
          ["", "predicted", "measured", "difference", "smallest MEM"],
          [[name, f"{predicted / 1e6:,.1f}", f"{peak / 1e6:,.1f}", f"{100 * (predicted / peak - 1):+.2f} %", f"{mem}M"] for name, predicted, peak, mem in found])
    least, most = min(found, key=lambda one: one[3]), max(found, key=lambda one: one[3])
    print(f"  {what} trains with these MEM, and with 1M less it does not.")
    print(f"  MEM={least[3]}M ({least[0]}) is {100 * least[3] / most[3]:.0f} % of MEM={most[3]}M ({most[0]}).")
    return [Row("memory", f"{what} {name}, {figure}", unit, [value]) for name, _, peak, mem in found
            for figure, unit, value in (("a rank's tensors", "MB", peak / 1e6), ("smallest MEM", "MiB", mem))]
