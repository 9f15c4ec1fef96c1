"""Runs of the kit: the data that they read, their metrics, and the rates of a rank in them."""
import json
import os
import random

import cost
import dry
import pace
from rows import _, either, give_up, said

VOCABULARY = cost.VOCABULARY
REVIEWS, LONGEST = 320, 1030  # reviews, and the words of each
AMPS = ("off", "bf16")
BACKENDS = ("cpu", "cuda", "emulated")
ALL_LABS = ("solutions", 14)
ALL_KINDS = ("GEMM", "attention", "element-wise", "optimiser", "communication", "waiting")


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
    """Runs a command(); returns its figures."""
    words, metrics = command(build, *given, program=program, **more)
    said(*words, what=program or f"{build}/train", env={**os.environ, **(environment or {})})
    with open(metrics, encoding="utf-8") as file:
        return measured([json.loads(line) for line in file])


def measured(lines):
    """A run's figures, from its metrics: the seconds and the loss of each step, what each rank sent
    and held, the largest memory of a rank, and where rank 0's time goes."""
    ranks = lines[-1]["ranks"]
    return {"seconds": [line["step_s"] for line in lines if "step_s" in line],
            "losses": [line["loss"] for line in lines if "step" in line],
            "ranks": ranks,
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


def spent_in(profile):
    """{kind: milliseconds of a step}"""
    found = dict.fromkeys(ALL_KINDS, 0.0)
    for one in profile:
        found[dry.kind_of(one["what"])] += one["forward_ms"] + one["backward_ms"]
    return found


def seconds_of(profile):
    """{kind: seconds of a step}; the element-wise operations are also split into those on parts and
    those on x."""
    found = {kind: ms / 1e3 for kind, ms in spent_in(profile).items()}
    parts = sum(spent_in([one for one in profile if one["what"] in dry.ON_PARTS]).values()) / 1e3
    return {**{kind: max(1e-9, seconds) for kind, seconds in found.items()},
            "on parts": max(1e-9, parts), "on x": max(1e-9, found["element-wise"] - parts)}


def work_of_step(model):
    """{kind: operations or bytes of a step on one rank}"""
    return {kind: sum(passes) for kind, passes in pace.work_of(model, dry.stages(model)[0], 1, 1)[0].items()}


def rates(model, seconds):
    """The rates of one rank, as arguments for a pace.Cluster, from the result of seconds_of()."""
    work = work_of_step(model)
    return {"gemm": work["GEMM"] / seconds["GEMM"], "attention": work["attention"] / seconds["attention"], "stream": work["on x"] / seconds["on x"],
            "activation": work["on parts"] / seconds["on parts"], "optimiser": work["optimiser"] / seconds["optimiser"]}


def rates_of_products(models, seconds):
    """The rates of products, from the seconds that they take in a step of two models that differ in
    their batch. With fewer rows, a product reads and writes just as many weights for fewer
    operations."""
    (work, fewer), (moved, as_many) = zip(*((one["GEMM"], one["moves"]) for one in map(work_of_step, models)))
    whole = work * as_many - fewer * moved
    multiplying, moving = (seconds[0] * as_many - seconds[1] * moved) / whole, (work * seconds[1] - fewer * seconds[0]) / whole
    if multiplying <= 0 or moving <= 0:  # too small a difference to measure
        return {"gemm": work / seconds[0]}
    return {"gemm": 1 / multiplying, "moves": 1 / moving}


def useful_of(sizes):
    """The floating-point operations that a step of the BERT needs."""
    return dry.useful(cost.Model(*sizes[:5], VOCABULARY))
