#!/usr/bin/env -S python3 -EsB
"""make model: predicts the time of a training step on N ranks, and the best layout.

    model.py BUILD     with NTASKS TP PP MICRO SCHEDULE MODEL TASK LAYERS HIDDEN_DIM HEADS SEQ BATCH_SIZE RECOMPUTE ZERO SP AVERAGE BACKEND AMP CLUSTER WEAK in
                       the environment

Without CLUSTER, first measures this machine (one rank alone, two at a time, an all-reduce by size),
compares predictions and measurements for 1, 2 and 4 ranks, then predicts NTASKS ranks of this
machine. BACKEND=cuda measures its GPU. CLUSTER=file.json describes another machine, like
clusters/*.json; with BACKEND=cuda, the prediction combines its links with the compute rate of this
GPU. WEAK=1 predicts the weak scaling of Megatron-LM's paper, on the paper's cluster
(CLUSTER=dgx-2h, beside the published figures), or on another cluster with the kit's communication.
"""
import dataclasses
import math
import os
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

import clusters
import cost
import dry
import gpu
import pace
import steps
import stories
import turns
from clusters import show_parts
from rows import _, either, give_up, number, paragraph, refuse, table, whole_number

SHOWN = 16  # the number of layouts in the table, the fastest first
TURNS = 2  # how many times a rate or a layout is measured
# These (tp, dp, pp) also run, as far as they fit; their times stand beside the predictions.
MEASURED = {(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (4, 1, 1), (2, 2, 1), (1, 4, 1), (1, 2, 2)}
SMALL, LARGE = 4 << 10, 16 << 20  # bytes of the exchanges that the link's rates follow from


def arithmetic():
    amp, amps = os.environ.get("AMP") or "off", steps.AMPS if not on_gpu() else gpu.AMPS
    if amp not in amps:
        refuse("AMP", amp, either("AMP", amps))
    return amp


def schedule():
    """The order of a pipeline's passes."""
    name = os.environ.get("SCHEDULE") or "1f1b"
    if name not in ("1f1b", "gpipe"):
        refuse("SCHEDULE", name, either("SCHEDULE", ("1f1b", "gpipe")))
    return name


# ---- this machine ------------------------------------------------------------------------------------------------------


def on_gpu():
    return steps.backend() != "cpu"


def program(build, name):
    return f"{build}/{name}-{steps.backend()}" if on_gpu() else f"{build}/{name}"


def micro_batches(model, dp, pp):
    """MICRO, if set. Otherwise 1 without a pipeline; with a pipeline, the largest divisor of a
    replica's rows that is at most four times the number of stages."""
    rows, asked = model.batch // dp, whole_number("MICRO", 1) if os.environ.get("MICRO") else 0
    return asked or max(m for m in range(1, 4 * pp + 1 if pp > 1 else 2) if rows % m == 0)


def named(tp, dp, pp, micro):
    return f"tp={tp} dp={dp}" + (f" pp={pp}" if pp > 1 else "") + (f" micro={micro}" if micro > 1 else "")


def run(build, work, model, tp=1, dp=1, pp=1, micro=1):
    """Trains, and returns its figures. If the replicas average weights, they do
    so at least every second step. On a GPU, takes the profile from another run, because profiling
    makes each call wait for its kernel."""
    os.makedirs(work, exist_ok=True)
    sizes = (*model.sizes(), 14 if model.hidden <= 256 else 6 if model.average else 5)
    data = f"{build}/bench-data"
    named_so, read = stories.options(data, model.kind) if model.kind in cost.AUTHORS else ((), steps.data_in(data))
    more = (*read, "--amp", arithmetic(), "--pp", pp, "--micro", micro, "--schedule", schedule(),
            *dataclasses.replace(model, average=min(model.average, 2)).options(dp))

    def once(*profile, **environment):
        return steps.train(build, work, tp * dp * pp, tp, 1, sizes, *more, *profile,
                           program=program(build, "train"), environment=environment, model=named_so)

    if not on_gpu():
        return once("--profile", 1)
    return {**once("--profile", 1, CUDA_LAUNCH_BLOCKING="1"), "seconds": once()["seconds"]}


def time_of_step(model, measured):
    """The milliseconds of a step, including its share of the time to average weights."""
    times = turns.milliseconds(measured)
    if model.average < 2:
        return statistics.median(times)
    alone, averaged = (statistics.median(times[first::2]) for first in (0, 1))
    return alone + (averaged - alone) / model.average


def rates_here(build, work, model, copies=1):
    """The rates of a rank while `copies` ranks compute. Cores share caches, memory and power. For
    each kind of work, the least time of several turns counts, because other programs may run. On
    the CPU, also measures products with an eighth of the rows, because a rank of a layout has fewer
    rows."""
    def seconds_of(model):
        with ThreadPoolExecutor() as pool:
            runs = list(pool.map(lambda i: run(build, f"{work}/{i}", model), range(copies)))
        return steps.seconds_of(runs[0]["profile"])

    models = [model] if on_gpu() else [model, dataclasses.replace(model, batch=-(-model.batch // 8))]
    turns = [[seconds_of(one) for one in models] for _ in range(TURNS)]
    least = [{kind: min(turn[i][kind] for turn in turns) for kind in turns[0][i]} for i in range(len(models))]
    rates = steps.rates(model, least[0])
    return rates if on_gpu() or model.batch == 1 else {**rates, **steps.rates_of_products(models, [one["GEMM"] for one in least])}


def link_here(build):
    """The link's latency and bandwidth, from all-reduces of 4 KiB and 16 MiB over two ranks:
    t = 2 latency + size / bandwidth. In a step, as in an exchange of 16 MiB, the numbers are not in
    the cache. An all-gather or a reduce-scatter takes t = latency + size / (2 bandwidth)."""
    times = steps.collectives(program(build, "bench-collectives"), 2, LARGE)

    def seconds(name, size):
        return 1e-6 * min(times[name, size])

    small = seconds("all_reduce", SMALL)
    # The program counts what a rank contributes, which is half of the gathered tensor.
    return pace.Link(small / 2, LARGE / max(seconds("all_reduce", LARGE) - small, 1e-9), gathers=LARGE / max(seconds("all_gather", LARGE) - small / 2, 1e-9),
                     scatters=LARGE / 2 / max(seconds("reduce_scatter", LARGE) - small / 2, 1e-9))


def this_machine(build, work, model):
    """{ranks that compute at a time: Cluster}. GPUs do not slow each other down, but ranks may
    share a GPU."""
    cores = gpu.count_of() if on_gpu() else steps.cores()
    link = link_here(build)
    state = 18 if model.rounds else 16
    return {busy: pace.Cluster(**rates_here(build, work, model, busy), near=link, far=link,
                               cores=cores, state=state)
            for busy in sorted({1, 1 if on_gpu() else min(2, cores)})}


def here(machine, ranks):
    return machine[min(ranks, max(machine))]


def fitting(model, ranks):
    """The layouts (tp, dp, pp, micro) that fit the model and MICRO."""
    found = ((tp, dp, pp, micro_batches(model, dp, pp)) for tp, dp, pp in cost.layouts(ranks, model))
    return [layout for layout in found if model.batch // layout[1] % layout[3] == 0]


def validate(build, work, model, machine):
    """Compares predictions with short runs. As for the rates, the fastest of several turns counts."""
    layouts = [(layout, ranks) for ranks in (1, 2, 4) for layout in fitting(model, ranks) if layout[:3] in MEASURED]
    turns = [[time_of_step(model, run(build, f"{work}/0", model, *layout)) for layout, _ in layouts] for _ in range(TURNS)]
    lines = []
    for (layout, ranks), measured in zip(layouts, map(min, zip(*turns))):
        predicted = 1e3 * sum(pace.step(here(machine, ranks), model, *layout, schedule()).values())
        lines.append([named(*layout), ranks, number(predicted), number(measured), f"{round(100 * (predicted / measured - 1)):+} %"])
    table("prediction against measurement, ms per step", ["", "ranks", "predicted", "measured", "error"], lines)


# ---- answers -----------------------------------------------------------------------------------------------------------


def show_machine(machine):
    table("rates of a rank, by how many compute at a time", ["", *(f"{busy}" for busy in machine)],
          [["GEMM, GFLOP/s", *(number(c.gemm / 1e9) for c in machine.values())],
           ["operands of GEMM, GB/s", *(number(c.moves / 1e9) if c.moves < math.inf else "-" for c in machine.values())],
           ["attention, GFLOP/s", *(number(c.attention / 1e9) for c in machine.values())],
           ["norms and sums, GB/s", *(number(c.stream / 1e9) for c in machine.values())],
           ["activations, GB/s", *(number(c.activation / 1e9) for c in machine.values())],
           ["optimiser, GB/s", *(number(c.optimiser / 1e9) for c in machine.values())],
           ["all-reduce: latency, us", *(number(1e6 * c.near.latency) for c in machine.values())],
           ["all-reduce: bandwidth, GB/s", *(number(c.near.bandwidth / 1e9) for c in machine.values())],
           ["all-gather, GB/s", *(number(c.near.gathers / 1e9) for c in machine.values())],
           ["reduce-scatter, GB/s", *(number(c.near.scatters / 1e9) for c in machine.values())]])


def layouts_of(model, ranks):
    """The layouts (tp, dp, pp, micro) that fit the model and the settings."""
    only = [whole_number(name, 1) if os.environ.get(name) else 0 for name in ("TP", "PP")]
    found = [layout for layout in fitting(model, ranks) if only[0] in (0, layout[0]) and only[1] in (0, layout[2])]
    if not found:
        give_up(_("no layout of {ranks} ranks fits: TP={tp}, PP={pp}, {heads} heads, {layers} layers, BATCH_SIZE={batch}").format(
            ranks=ranks, tp=only[0] or _("any"), pp=only[1] or _("any"), heads=model.heads, layers=model.layers, batch=model.batch),
                _("TP times PP divides NTASKS, TP divides HEADS and the columns of the feed-forward layers, PP is at most LAYERS, and DP times MICRO divides BATCH_SIZE"))
    return found


def show_layouts(model, ranks, layouts, cluster_for):
    lines = []
    for layout in layouts:
        cluster = cluster_for(ranks)
        parts, held = pace.step(cluster, model, *layout, schedule()), dry.memory(cluster, model, *layout, schedule())
        whole, sent = sum(parts.values()), cluster.width / dry.FP32 * dry.sent(model, *layout, schedule())
        lines.append((held > cluster.memory, whole, layout, parts, [
            number(1e3 * whole), number(model.batch * model.seq / whole), number(dry.useful(model) / whole / ranks / 1e9),
            number(sent / 1e6), number(held / 1e6), "*" if held > cluster.memory else ""]))
    lines.sort(key=lambda line: line[:3])
    shown = lines[:SHOWN]
    table(f"{ranks} ranks: predicted speed and memory, the fastest layout first",
          ["tp", "dp", "pp", "micro", "ms a\nstep", "tokens/s", "GFLOP/s\na rank", "MB sent", "MB\na rank", ""],
          [[*layout, *figures] for *_, layout, _, figures in shown])
    if any(line[0] for line in shown):
        print(f"  * more than the {number(cluster.memory / 1e6)} MB of a rank")
    show_parts("where the time of a step goes, ms", ["tp", "dp", "pp"], [(layout[:3], parts) for *_, layout, parts, _ in shown], lambda part, _: number(1e3 * part))
    if len(lines) > SHOWN:
        print(f"  {len(lines) - SHOWN} slower ones are not shown: TP= and PP= select")
    print("  no layout fits into the memory" if lines[0][0] else f"  fastest: {named(*lines[0][2])}")


def prepare(work):
    steps.prepare(work)
    stories.write_vocabularies(work)


def with_compute_of_here(build, work, model, cluster):
    """The cluster with its own links and memory, and with the rates of this machine's GPU."""
    prepare(work)
    found = rates_here(build, work, model)
    paragraph("measured", "products, attention, element-wise and optimiser: on the GPU here, with this model; everything else is from the cluster's file")
    return dataclasses.replace(cluster, **found)


def of_cluster(build, work, model, ranks, layouts):
    described, cluster = clusters.read(os.environ.get("CLUSTER") or "dgx-2h")
    if not on_gpu():
        model.rounds = cluster.rounds()
    else:
        cluster = with_compute_of_here(build, work, model, cluster)
    clusters.show_assumptions(described, cluster)
    if os.environ.get("WEAK"):
        clusters.show_weak_scaling(described, cluster)
    else:
        show_layouts(model, ranks, layouts, lambda _: cluster)


def main():
    build, ranks = sys.argv[1], whole_number("NTASKS", 4)
    # With PP or MICRO, each stage has a block, and all micro-batches have the same number of rows,
    # as make train requires.
    tp, pp, micro = (whole_number(degree, 1) for degree in ("TP", "PP", "MICRO"))
    parts = max(1, ranks // (tp * pp)) * micro if pp * micro > 1 else 1
    model = clusters.model_asked_for((max(2, pp), 128, 4), leaves_out=not on_gpu(), batch=-(-8 // parts) * parts, languages=True)
    work = f"{sys.argv[1]}/bench-data"
    model.rounds = arithmetic() in ("bf16", "fp16")
    schedule()
    if (os.environ.get("WEAK") or "1") != "1":
        refuse("WEAK", os.environ["WEAK"], "WEAK=1 CLUSTER=dgx-2h")
    if os.environ.get("WEAK") and model.kind in cost.AUTHORS:
        give_up(_("WEAK=1 predicts only the models of Megatron-LM's paper"), _("leave out WEAK, or MODEL and TASK"))
    paragraph("model", f"{clusters.sizes_text(model)}, {dry.parameters(model) / 1e6:.1f} M parameters")
    layouts = [] if os.environ.get("WEAK") else layouts_of(model, ranks)  # before anything is measured
    if os.environ.get("CLUSTER") or os.environ.get("WEAK"):
        of_cluster(build, work, model, ranks, layouts)
        return
    prepare(work)
    machine = this_machine(build, work, model)
    show_machine(machine)
    validate(build, work, model, machine)
    show_layouts(model, ranks, layouts, lambda n: here(machine, n))


if __name__ == "__main__":
    main()
