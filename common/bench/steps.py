"""Measures training steps: the kit's, alternating with PyTorch's."""
import json
import os
import random
import subprocess
import sys

import aims
import cost
import pace
import peers
from rows import Row, _, either, give_up, number, said, show, table

VOCABULARY = cost.VOCABULARY
REVIEWS, LONGEST = 320, 1030  # reviews, and the words of each
WARM_UP = 2  # these steps fill the pool and the caches

# name: layers, hidden, heads, sequence, batch, steps per run
MODELS = {
    "2x128": (2, 128, 2, 128, 8, 14),
    "6x256": (6, 256, 4, 128, 8, 8),
    "base": (12, 768, 12, 128, 8, 4),
    "base-512": (12, 768, 12, 512, 2, 4),
}
# name: ranks, tp, threads
LAYOUTS = {"serial": (1, 1, 1), "serial 2 threads": (1, 1, 2), "tp2": (2, 2, 1), "dp2": (2, 1, 1), "2x2": (4, 2, 1)}
REPLICATED = [name for name, (ranks, tp, _) in LAYOUTS.items() if ranks > tp]
AMPS = ("off", "bf16")
BACKENDS = ("cpu", "cuda", "emulated")
ALL_LABS = ("solutions", 14)
ALL_KINDS = ("GEMM", "attention", "element-wise", "optimiser", "communication", "waiting")
KINDS = {"linear": "GEMM", "attention": "attention", "attention_causal": "attention", "optimiser": "optimiser", "clipping": "optimiser"}
SENT = ("all_reduce", "duplication", "all_gather", *(f"gradient reduction, {part}" for part in ("which rows", "under way", "exposed")))
WAITED = "waiting for other ranks"
# Element-wise operations on a rank's part of a tensor. All others are on x, whole, or with SP=1 on
# the rank's positions.
ON_PARTS = ("gelu and dropout", "dropout", "gelu", "gelu_tanh", "swiglu", "rotary", "add_bias", "row_sum_exp", "row_pick", "logarithm", "subtract",
            "cross entropy")


def kind_of(what):
    """The category of a line of a profile."""
    if what in (WAITED, "receive from another stage"):
        return "waiting"
    return "communication" if what in (*SENT, "send to another stage") else KINDS.get(what, "element-wise")


def backend():
    name = os.environ.get("BACKEND") or "cpu"
    if name not in BACKENDS:
        give_up(_("there is no backend '{name}'").format(name=name), either("BACKEND", ("cpu", "cuda")))
    return name


def prepare(work):
    """Prepares runs on this machine: their environment and their data."""
    os.environ.pop("OPENBLAS_CORETYPE", None)
    write_data(work)


def write_data(work):
    """Writes a vocabulary of BERT's size: the words of the kit's reviews, and entries that occur in
    no text. Also writes reviews that are longer than any SEQ here, so there is no padding: the kit
    skips padding in attention, and PyTorch's script has no mask."""
    os.makedirs(work, exist_ok=True)
    with open("data/reviews/vocab.txt", encoding="utf-8") as file:
        words = file.read().split("\n")[:-1]
    with open(f"{work}/vocab.txt", "w", encoding="utf-8") as file:
        file.writelines(word + "\n" for word in words + [f"[unused{i}]" for i in range(len(words), VOCABULARY)])
    draw = random.Random(1)
    words = [word for word in words if word.isalpha()]
    with open(f"{work}/reviews.csv", "w", encoding="utf-8") as file:
        file.write("review,label\n")
        file.writelines(f"{' '.join(draw.choices(words, k=LONGEST))},{i % 2}\n" for i in range(REVIEWS))


def data_in(work):
    return ["--vocab", f"{work}/vocab.txt", "--data", f"{work}/reviews.csv"]


def options_of(model, dp):
    """The options of build/train for the fields of a model. A sharded optimiser and averages need
    replicas."""
    return (*(("--recompute", model.recompute) if model.recompute else ()), *(("--sp", 1) if model.sequence_parallel else ()),
            *(("--zero", 1) if model.zero and dp > 1 else ()), *(("--average", model.average) if model.average and dp > 1 else ()))


def command(build, work, ranks, tp, threads, sizes, *more, program=None, stack=ALL_LABS, before=(), model=()):
    """The words of a command that runs build/train or another program, and the file of its metrics.

    @param model the options that name a model, whose sizes are replaced
    @param stack whose labs, and the last of them
    @param before the words of a command that runs the launcher"""
    layers, hidden, heads, seq, batch, count = sizes
    metrics = os.path.join(work, "run.jsonl")
    words = [*before, "common/train/launch.sh", ranks, *stack, program or f"{build}/train", *model, "--cache", f"{build}/cache", "--tp", tp,
             "--test", "", "--seq", seq, "--batch-size", batch, "--steps", count, "--threads", threads, "--layers", layers,
             "--hidden-dim", hidden, "--heads", heads, "--metrics", metrics, *more]
    return [str(word) for word in words], metrics


def train(build, *given, environment=None, program=None, **more):
    """Runs a command(); returns its metrics, a dictionary per line."""
    words, metrics = command(build, *given, program=program, **more)
    said(*words, what=program or f"{build}/train", env={**os.environ, **(environment or {})})
    with open(metrics, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def measured(lines):
    """A run's figures, from its metrics: the seconds of each step, the largest memory of a rank,
    and where rank 0's time goes."""
    ranks = lines[-1]["ranks"]
    return {"seconds": [line["step_s"] for line in lines if "step_s" in line],
            "resident_bytes": max(rank["resident_bytes"] for rank in ranks),
            "tensor_bytes": max(rank["peak_bytes"] for rank in ranks),
            "profile": next((line["profile"] for line in lines if "profile" in line), [])}


def cores():
    """The number of cores that this process may use: taskset or Slurm may bind it to some of the
    machine's cores."""
    return len(os.sched_getaffinity(0))


def collectives(program, ranks, *most):
    """{(name, bytes): microseconds of each sample}, from the output of bench-collectives."""
    settings = said("common/comm/open_mpi.sh", "root", "here", "quiet", *(["yield"] if ranks > cores() else [])).splitlines()
    lines = said("mpirun", "-n", ranks, program, *most, env={**os.environ, **dict(line.split("=", 1) for line in settings)}).splitlines()
    return {(name, int(size)): [float(sample) for sample in samples]
            for name, size, *samples in map(str.split, lines)
            if name in ("all_reduce", "all_gather", "reduce_scatter")}


def run_kit(build, work, model, layout, amp="off"):
    return measured(train(build, work, *LAYOUTS[layout], MODELS[model], *data_in(work),
                          "--profile", 1, *(["--amp", amp] if amp != "off" else [])))


def spent_in(profile):
    """{kind: milliseconds of a step}"""
    found = dict.fromkeys(ALL_KINDS, 0.0)
    for one in profile:
        found[kind_of(one["what"])] += one["forward_ms"] + one["backward_ms"]
    return found


def seconds_of(profile):
    """{kind: seconds of a step}; the element-wise operations are also split into those on parts and
    those on x."""
    found = {kind: ms / 1e3 for kind, ms in spent_in(profile).items()}
    parts = sum(spent_in([one for one in profile if one["what"] in ON_PARTS]).values()) / 1e3
    return {**{kind: max(1e-9, seconds) for kind, seconds in found.items()},
            "on parts": max(1e-9, parts), "on x": max(1e-9, found["element-wise"] - parts)}


def rates(model, seconds):
    """The rates of one rank, as arguments for a pace.Cluster, from the result of seconds_of()."""
    linear, attention = model.work()
    tokens, (whole, parts) = model.batch * model.seq, model.streamed(1, 1, 0)
    return {"gemm": linear / seconds["GEMM"], "attention": attention / seconds["attention"],
            "stream": pace.Cluster.width * tokens * whole / seconds["on x"],
            "activation": pace.Cluster.width * tokens * parts / seconds["on parts"],
            "optimiser": pace.step(pace.UNIT, model, 1, 1)["optimiser"] / seconds["optimiser"]}


def rates_of_products(models, seconds):
    """The rates of products, from the seconds that they take in a step of two models that differ in
    their batch. With fewer rows, a product reads and writes just as many weights for fewer
    operations."""
    (work, fewer), (moved, as_many) = zip(*((model.work()[0], pace.Cluster.width * model.moved(1, 1, 0, model.batch * model.seq)) for model in models))
    whole = work * as_many - fewer * moved
    multiplying, moving = (seconds[0] * as_many - seconds[1] * moved) / whole, (work * seconds[1] - fewer * seconds[0]) / whole
    if multiplying <= 0 or moving <= 0:  # too small a difference to measure
        return {"gemm": work / seconds[0]}
    return {"gemm": 1 / multiplying, "moves": 1 / moving}


def why_no(build, work, amp, program=None, stack=ALL_LABS):
    """Returns an empty text if a run with this AMP trains; otherwise the program's error."""
    command = ["common/train/launch.sh", "1", *stack, program or f"{build}/train", "--cache", f"{build}/cache", "--test", "", "--layers", "1",
               "--hidden-dim", "8", "--heads", "1", "--seq", "8", "--steps", "1", "--amp", amp, *data_in(work)]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return done.stderr.strip().partition("\n")[0] or f"it ended with {done.returncode}" if done.returncode else ""


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def names():
    """{name: (model, layout, AMP)} of every row."""
    return {f"{model} {layout}{'' if amp == 'off' else ' ' + amp}": (model, layout, amp)
            for model in MODELS for layout in LAYOUTS for amp in AMPS}


def called(words):
    """The rows whose names contain all these words. A layout named in full, such as "2x128 serial",
    selects only its own rows."""
    layout = " ".join(word for word in words.split() if word not in AMPS)
    return {name for name, case in names().items() if set(words.split()) <= set(name.split()) and
            (layout not in names() or layout == f"{case[0]} {case[1]}")}


def wanted(part, amps=AMPS):
    """{name: (model, layout, AMP)} of the rows that one of the comma-separated parts selects."""
    chosen = set().union(*(called(words) for words in part.split(",")))
    found = {name: case for name, case in names().items() if name in chosen and case[2] in amps}
    if not found:
        give_up((_("no training step is called '{name}'") if amps == AMPS else _("no training step is called '{name}' where AMP is {amp}")).format(name=part, amp=amps[0]),
                _("choose words of one of these: ") + ", ".join(name for name, case in names().items() if case[2] in amps))
    return found


def measure(build, work, rounds, pythons, cases):
    """{name: {who: [run, ...]}}, where who is "kit" or a version of PyTorch, eager or compiled. The
    runs alternate.

    @param pythons by version
    @param cases the result of wanted()"""
    others = peers.on_cpu(pythons)
    found = {name: {who: [] for who in ("kit", *others)} for name in cases}
    for turn in range(rounds):
        for name, (model, layout, amp) in cases.items():
            progress(f"round {turn + 1} of {rounds}: {name}")
            found[name]["kit"].append(run_kit(build, work, model, layout, amp))
            for who, (python, where) in others.items():
                found[name][who].append(peers.step(python, MODELS[model], LAYOUTS[layout], amp, VOCABULARY, where))
    progress("")
    return found


def times(runs):
    return [1e3 * step for run in runs for step in run["seconds"][WARM_UP:]]


def megabytes(runs, key="resident_bytes"):
    return max(run[key] for run in runs) / 1e6


def useful_of(sizes):
    """The floating-point operations that a step of the BERT needs."""
    return cost.Model(*sizes[:5], VOCABULARY, classifies=True).useful()


def share_of_peak(row, peak):
    """The share of the peak in per cent.

    @param peak GFLOP/s of a core in single precision"""
    model, layout, _ = names()[row.name]
    ranks, _, threads = LAYOUTS[layout]
    return 100 * useful_of(MODELS[model]) / (row.best() / 1e3) / (1e9 * peak * min(ranks * threads, cores()))


def step_row(name, runs, peak):
    model, layout, amp = names()[name]
    row = Row("step", name, "ms", times(runs["kit"]))
    row.notes = {"ranks": LAYOUTS[layout][0], "of the peak": f"{share_of_peak(row, peak):.0f} %" if amp == "off" else "",
                 "tokens/s": number(1e3 * MODELS[model][3] * MODELS[model][4] / row.median()),
                 "peak MB per rank": number(megabytes(runs["kit"])), "of tensors": number(megabytes(runs["kit"], "tensor_bytes"))}
    return row


def against_torch(row, runs, who):
    """A line of the table: times, their ratio, memory, each with its target.

    @param who a version of PyTorch, eager or compiled"""
    other = Row("step", f"{row.name}, PyTorch {who}", "ms", times(runs[who]))
    ratio, aim = other.median() / row.median(), aims.ratio(row.name, who)
    mine, its = megabytes(runs["kit"]), megabytes(runs[who])
    return other, [row.name, who, number(other.best()), number(other.median()), number(row.best()), number(row.median()),
                   f"{other.best() / row.best():.2f}", f"{ratio:.2f}", aim or "", aims.judged(aim is None or ratio > aim),
                   number(its), number(megabytes(runs[who], "imported_bytes")), number(mine), aims.judged(mine < its)]


def show_aims(rows, found, peak):
    """Shows the measured rows beside the targets that need no PyTorch.

    @param rows by name"""
    lines = [[f"{name}, share of the peak, %", f"{share_of_peak(rows[name], peak):.0f}", *aims.least(share_of_peak(rows[name], peak), aim)]
             for name, aim in aims.PER_CENT_OF_PEAK.items() if name in rows]
    for name, aim in aims.SPEED_UP.items():
        one = rows.get(f"{name.split()[0]} serial")
        if name in rows and one:
            faster = one.median() / rows[name].median()
            lines.append([f"{name}, times as fast as one rank", f"{faster:.2f}", *aims.least(faster, aim)])
    lines += [[f"{name}, MB per rank", number(megabytes(found[name]["kit"])), *aims.most(megabytes(found[name]["kit"]), aim)]
              for name, aim in aims.MEGABYTES.items() if name in found]
    if lines:
        table("targets of the step alone", ["", "measured", "target", ""], lines)


def show_steps(found, peak):
    """Prints the tables; returns the rows to store: times and memory of the kit and of PyTorch."""
    mine = {name: step_row(name, runs, peak) for name, runs in found.items()}
    show(f"training step; the peak of a core in single precision is {number(peak)} GFLOP/s", mine.values(), "ranks", "tokens/s",
         "of the peak", "peak MB per rank", "of tensors")
    compared = [against_torch(mine[name], runs, who) for name, runs in found.items() for who in list(runs)[1:]]
    if compared:
        table("against PyTorch, in alternating runs: ms per step, ratios of them, MB per rank",
              ["", "PyTorch", "its best", "median", "the kit's", "median", "ratio", "median", "target", "", "its MB", "imported", "the kit's",
               ""], [line for _, line in compared])
    show_aims(mine, found, peak)
    memory = [Row("memory", f"{name}, per rank", "MB", [run["resident_bytes"] / 1e6 for run in runs["kit"]], blur=0.01)
              for name, runs in found.items()]
    return [*mine.values(), *(other for other, _ in compared), *memory]


def show_profiles(found):
    """Shows where rank 0's time goes in the fastest run, by category, and the part of the reduction
    that was exposed."""
    lines = []
    for name, runs in found.items():
        profile = min(runs["kit"], key=lambda run: sum(run["seconds"][WARM_UP:]))["profile"]
        spent, shown = spent_in(profile).values(), "-"
        if names()[name][1] in REPLICATED:
            left = [one for one in profile if one["what"] == SENT[-1]]
            shown = number(sum(spent_in(left).values()))
        whole = sum(spent)
        lines.append([name, number(whole), *(f"{100 * ms / whole:.1f} %" for ms in spent), shown])
    table("where the time goes, on rank 0 (waiting: until all ranks of an exchange are there; exposed: the part of the gradients' reduction that backward did not overlap)",
          ["", "ms per step", *ALL_KINDS, "exposed, ms"], lines)
