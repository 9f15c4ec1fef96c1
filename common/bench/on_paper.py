"""The sections of make bench that measure what pace.py and dry.py predict: the pipeline, how a step
grows with each size, the bytes that a step sends, and the smallest memory."""
import functools
import math
import os
import subprocess

import aims
import cost
import dry
import pace
import peers
import steps
from rows import Row, _, give_up, has_failed, number, show, table
from turns import KIT, Figure, progress, rows_of, step, take_turns


def train(here, sizes, *more, ranks=1, tp=1):
    return steps.train(here.build, here.work, ranks, tp, 1, sizes, *steps.data_in(here.work), *more)


def rates_in(model, runs):
    """A cluster of one rank, with the rates of its profiles. For each kind of work, the least time
    counts."""
    turns = [steps.seconds_of(run["profile"]) for run in runs]
    rates = steps.rates(model, {kind: min(turn[kind] for turn in turns) for kind in turns[0]})
    return pace.Cluster(**rates, near=pace.ALONE, far=pace.ALONE, cores=steps.cores())


# ---- ONLY=pipeline: a step of two stages by number of micro-batches, with GPipe and 1F1B ------------------------------

STATE = "weights", "gradients", "optimiser"  # held by every schedule, and by PyTorch
STAGES, MICROS, SCHEDULES = 2, (1, 2, 4, 8), ("gpipe", "1f1b")
PIPELINE = 4, 256, 4, 128, 32, 7  # layers, hidden, heads, sequence, batch, steps
ALONE = "one rank"


def stages_of_kit(here, micro, schedule):
    return train(here, PIPELINE, "--pp", STAGES, "--micro", micro, "--schedule", schedule, ranks=STAGES)


def stages_of_torch(python, micro, schedule):
    return peers.run(python, "torch_pipeline.py", 1, STAGES, *PIPELINE, steps.VOCABULARY, micro, schedule)


def pipelines(here, versions):
    """{name: (micro-batches, schedule)}, and the cases. PyTorch's 1F1B rejects fewer micro-batches than
    stages."""
    shapes = {f"{schedule}, m = {micro}": (micro, schedule) for micro in MICROS for schedule in SCHEDULES}
    return shapes, {name: {KIT: functools.partial(stages_of_kit, here, *shape),
                           **{f"PyTorch {version}": functools.partial(stages_of_torch, python, *shape) for version, python in versions.items()
                              if shape[1] == "gpipe" or shape[0] >= STAGES}}
                    for name, shape in shapes.items()}


def held(run):
    """Bytes of each stage's process, without those for importing PyTorch."""
    return ([rank["resident_bytes"] for rank in run["ranks"]] if "ranks" in run
            else [every - imports for every, imports in zip(run["resident_bytes"], run["imported_bytes"])])


def pipeline(here):
    """Beside each step of the kit is the longest path through its schedule, without messages, as make
    model predicts it from the profiles of one rank."""
    versions = peers.with_module(here.pythons, "torch.distributed.pipelining", "pipelines came with 2.5")
    shapes, cases = pipelines(here, versions)
    found = take_turns({ALONE: {KIT: functools.partial(train, here, PIPELINE, "--profile", 1)}, **cases}, here.rounds)
    model = cost.Model(*PIPELINE[:-1], steps.VOCABULARY)
    cluster = rates_in(model, found.pop(ALONE)[KIT])
    rows = rows_of(found, step("pipeline"), lambda name, who: aims.PIPELINE_SPEED)
    for (name, who), row in rows.items():
        run = found[name][who][-1]
        columns = {"process": held(run)}
        if who == KIT:
            row.notes["predicted"] = number(1e3 * sum(pace.step(cluster, model, 1, 1, STAGES, *shapes[name]).values()))
            columns.update({"tensors": [rank["peak_bytes"] for rank in run["ranks"]], "state": [sum(rank["peak"][kind] for kind in STATE) for rank in run["ranks"]]})
        else:
            share = max(held(found[name][KIT][-1])) / max(held(run))
            row.notes["kit's share"] = f"{share:.2f} {aims.judged(share <= aims.PIPELINE_MEMORY)}".strip()
        row.notes.update({name: " ".join(number(size / 1e6) for size in sizes) for name, sizes in columns.items()})
    layers, hidden, _heads, seq, batch, _steps = PIPELINE
    show(f"{STAGES} stages, {layers} blocks of {hidden}, {batch} rows of {seq} tokens: ms per step; MB of each stage (state: weights, gradients, optimiser)",
         rows.values(), "predicted", "state", "tensors", "process")
    if versions:
        print(f"  PyTorch's 1F1B refuses fewer micro-batches than stages. The kit's share of the memory should be at most {aims.PIPELINE_MEMORY}.")
    return list(rows.values())


# ---- ONLY=growth: how a step grows with each size of the model --------------------------------------------------------

HEAD_SIZE, STEPS = 64, 6
BASE = {"SEQ": 128, "HIDDEN_DIM": 256, "LAYERS": 4, "BATCH_SIZE": 8}
SIZES = {"SEQ": (64, 128, 256, 512, 1024), "HIDDEN_DIM": (64, 128, 256, 512), "LAYERS": (1, 2, 4, 8), "BATCH_SIZE": (2, 4, 8, 16, 32)}


def model_of(**sizes):
    sizes = {**BASE, **sizes}
    return cost.Model(sizes["LAYERS"], sizes["HIDDEN_DIM"], sizes["HIDDEN_DIM"] // HEAD_SIZE, sizes["SEQ"], sizes["BATCH_SIZE"], steps.VOCABULARY)


def powers(points, values):
    """The exponent of a value's growth from each point to the next; empty for the first point."""
    return [""] + [f"{math.log(values[i] / values[i - 1]) / math.log(points[i] / points[i - 1]):.2f}" for i in range(1, len(points))]


def axes_called(part):
    """The sizes to vary that this part of ONLY selects."""
    axes = [axis for axis in SIZES if part.upper() in axis]
    return axes or give_up(_("no size to vary is called '{name}'").format(name=part), _("choose one of: ") + ", ".join(SIZES))


def growth(here):
    axes = axes_called(here.part)
    cases = {f"{axis}={size}": {KIT: functools.partial(train, here, (*model_of(**{axis: size}).sizes(), STEPS), "--profile", 1)}
             for axis in axes for size in SIZES[axis]}
    found = take_turns(cases, here.rounds)
    cluster = rates_in(model_of(), found[f"{axes[0]}={BASE[axes[0]]}"][KIT][-1:])
    return [row for axis in axes for row in growth_with(axis, cluster, {name: found[name] for name in cases if name.startswith(axis)})]


def growth_with(axis, cluster, found):
    """Shows a step's time and memory by one size, their predictions, and the powers of the size with
    which they grow; returns the rows to store."""
    rows, sizes = list(rows_of(found, step("growth")).values()), SIZES[axis]
    models = [model_of(**{axis: size}) for size in sizes]
    columns = {"on paper": [1e3 * sum(pace.step(cluster, model, 1, 1).values()) for model in models],
               "MB": [runs[KIT][0]["tensor_bytes"] / 1e6 for runs in found.values()],
               "MB on paper": [dry.memory(cluster, model, 1, 1) / 1e6 for model in models]}
    for i, row in enumerate(rows):
        row.notes = {name: number(values[i]) for name, values in columns.items()}
        row.notes.update({f"power of {name}": powers(sizes, values)[i] for name, values in {"ms": [one.best() for one in rows], **columns}.items()})
    show(f"growth with {axis}; the others: " + ", ".join(f"{name}={size}" for name, size in BASE.items() if name != axis), rows)
    return [*rows, *(Row("growth", f"{name}, tensors", "MB", [mb]) for name, mb in zip(found, columns["MB"]))]


# ---- ONLY=layouts: the bytes that a step sends ------------------------------------------------------------------------

# tp, dp, global batch. In the last layout, a replica has as many rows as with tp=2 alone. Its ranks
# should need the same memory, because a rank holds nothing for other replicas.
LAYOUTS = [(1, 1, 12), (2, 1, 12), (4, 1, 12), (1, 2, 12), (1, 4, 12), (2, 2, 12), (4, 2, 12), (2, 3, 12), (2, 2, 24)]
SENT = 2, 128, 4, 64  # layers, hidden, heads, sequence
WORDS = 968


def sent_on_paper(tp, dp, batch):
    """The bytes that a step sends over tp and over dp, summed over the ranks."""
    model = cost.Model(*SENT, batch, WORDS)
    rank = dry.stages(model, tp, dp)[0]
    return [tp * dp * rank[f"comm_bytes_{over}"] for over in ("tp", "dp")]


def layouts(here):
    """Compares the bytes that a step sends, summed over the ranks, with the prediction of make check, and
    measures the memory of a rank."""
    cases = {f"tp={tp} dp={dp} batch {batch}": (tp, dp, batch) for tp, dp, batch in LAYOUTS}
    found = take_turns({name: {KIT: functools.partial(steps.train, here.build, here.work, tp * dp, tp, 1, (*SENT, batch, 2))}
                        for name, (tp, dp, batch) in cases.items()}, 1)
    memory_of = Figure("memory", "MB", lambda run: [run["tensor_bytes"] / 1e6])
    rows, traffic = [memory_of.row(f"{name}, a rank's tensors", runs[KIT]) for name, runs in found.items()], []
    for row, (name, layout) in zip(rows, cases.items()):
        for over, expected in zip(("tp", "dp"), sent_on_paper(*layout)):
            sent = sum(rank[f"comm_bytes_{over}"] for rank in found[name][KIT][0]["ranks"]) / 2e6
            row.notes.update({f"sent over {over}": f"{sent:.3f}", f"{over} by formula": f"{expected / 1e6:.3f}"})
            traffic.append(Row("traffic", f"{name}, {over}", "MB", [sent]))
    show("memory, and MB that a step sends, summed over the ranks", rows)
    return rows + traffic


# ---- ONLY=memory: the smallest MEM at which a BERT trains on 4 ranks --------------------------------------------------

TP, DP = 2, 2
MIB = 1 << 20  # the unit of MEM=800M
# name: what it is, layers, hidden, heads, sequence, batch. The plain BERT-Large needs 13.3 GB on 4
# ranks.
MODELS = {"large": ("BERT-Large", 24, 1024, 16, 512, 4), "base": ("BERT-Base", 12, 768, 12, 512, 4),
          "2x128": ("A BERT of two layers", 2, 128, 2, 128, 8)}
# name: fields of cost.Model
SAVING = {"plain": {}, "ZERO=1": {"zero": True}, "SP=1": {"sequence_parallel": True}, "RECOMPUTE=block": {"recompute": "block"},
          "all three": {"zero": True, "sequence_parallel": True, "recompute": "block"}}


def model_whose_memory(part):
    """The model that a part of ONLY names: BERT-Large unless it names another."""
    if part and part not in MODELS:
        give_up(_("no model whose memory is measured is called '{name}'").format(name=part),
                _("ONLY=memory for BERT-Large, or ONLY=memory/ and one of: ") + ", ".join(MODELS))
    return MODELS[part or "large"]


def available():
    """Bytes that programs can allocate without swapping."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        return next((1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable")), math.inf)


def one_step(here, model, *more):
    """The arguments of steps.command() for a step of this model, without an evaluation."""
    return (here.build, here.work, TP * DP, TP, 1, (*model.sizes(), 1), *steps.data_in(here.work), *model.options(DP), *more)


def fits(here, model, mem):
    """Does the step run within `mem` MiB per rank? Any other error ends the program."""
    words = steps.command(*one_step(here, model, "--mem", f"{mem}M"))[0]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C"))
    if done.returncode and "MB that MEM allows" not in done.stderr:
        has_failed(f"MEM={mem}M", done.returncode, done.stderr.strip()[-1000:], words)
    return not done.returncode


def smallest(suffices, mem):
    """The smallest MEM that suffices, in MiB; `mem` is a guess that should suffice."""
    if not suffices(mem):
        return next(more for more in range(mem + 1, 2 * mem + 2) if suffices(more))
    while mem > 1 and suffices(mem - 1):
        mem -= 1
    return mem


def memory(here):
    """Measures the smallest MEM, plain and with each setting that saves memory. Beside it are the peak
    that a rank reports, and the one that make check predicts."""
    what, *sizes = model_whose_memory(here.part)
    found = []
    for name, fields in SAVING.items():
        model = cost.Model(*sizes, steps.VOCABULARY, **fields)
        predicted = dry.memory(pace.UNIT, model, TP, DP)
        if TP * DP * predicted > available():
            print(f"memory    no row for {name}: {TP * DP} ranks need {number(TP * DP * predicted / 1e6)} MB, and {number(available() / 1e6)} are available")
            continue
        progress(f"{what}, {name}: {number(predicted / 1e6)} MB per rank predicted")
        peak = steps.train(*one_step(here, model))["tensor_bytes"]
        found.append((name, predicted, peak, smallest(functools.partial(fits, here, model), math.ceil(peak / MIB))))
    progress("")
    return show_memory(what, sizes, found) if found else []


def show_memory(what, sizes, found):
    layers, hidden, heads, seq, batch = sizes
    table(f"{what} on {TP * DP} ranks, tp {TP} and dp {DP}, MB of a rank's tensors\n"
          f"({layers} layers, hidden {hidden}, {heads} heads, SEQ {seq}, BATCH_SIZE {batch})",
          ["", "predicted", "measured", "difference", "smallest MEM"],
          [[name, f"{predicted / 1e6:,.1f}", f"{peak / 1e6:,.1f}", f"{100 * (predicted / peak - 1):+.2f} %", f"{mem}M"] for name, predicted, peak, mem in found])
    least, most = min(found, key=lambda one: one[3]), max(found, key=lambda one: one[3])
    print(f"  {what} trains with these MEM, and with 1M less it does not.")
    print(f"  MEM={least[3]}M ({least[0]}) is {100 * least[3] / most[3]:.0f} % of MEM={most[3]}M ({most[0]}).")
    return [Row("memory", f"{what} {name}, {figure}", unit, [value]) for name, _predicted, peak, mem in found
            for figure, unit, value in (("a rank's tensors", "MB", peak / 1e6), ("smallest MEM", "MiB", mem))]
