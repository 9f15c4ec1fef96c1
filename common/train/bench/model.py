#!/usr/bin/env python3
"""make model: how long would a training step take on N ranks, and which layout is best?

    model.py BUILD     with NTASKS TP MODEL LAYERS HIDDEN_DIM HEADS SEQ BATCH_SIZE CLUSTER in the environment

Without CLUSTER this machine is measured first (one rank alone, two at a time, an all-reduce by size), the prediction for 1, 2 and
4 ranks is set beside the measurement, and then NTASKS ranks of this machine are predicted. CLUSTER=file.json describes another
one, as clusters/*.json do; CLUSTER=dgx-2h repeats the weak scaling of Megatron-LM's paper from its hardware.
"""
import json
import os
import statistics
import subprocess
import sys
import threading

import cost
import steps
from rows import fail, number, table

HERE = os.path.dirname(os.path.abspath(__file__))
PRESETS = {"base": (12, 768, 12), "large": (24, 1024, 16)}
WARM_UP = 2


def whole_number(name, default):
    text = os.environ.get(name) or str(default)
    if not text.isdigit() or int(text) < 1:
        fail(f"{name} cannot be '{text}'", f"it is a number from 1 on: {name}={default}")
    return int(text)


def asked_for():
    name = os.environ.get("MODEL") or ""
    if name and name not in PRESETS:
        fail(f"there is no model '{name}'", "MODEL=base or MODEL=large, or LAYERS= HIDDEN_DIM= HEADS=")
    layers, hidden, heads = PRESETS.get(name, (2, 128, 4))
    model = cost.Model(whole_number("LAYERS", layers), whole_number("HIDDEN_DIM", hidden), whole_number("HEADS", heads),
                       whole_number("SEQ", 128), whole_number("BATCH_SIZE", 8), steps.VOCABULARY, classifies=True)
    if model.hidden % model.heads:
        fail(f"HIDDEN_DIM={model.hidden} cannot be shared out over HEADS={model.heads}", "choose a multiple")
    return model


# ---- this machine ------------------------------------------------------------------------------------------------------


def run(build, work, model, tp, dp, count):
    """Milliseconds of each step, and rank 0's profile: {(what, pass): ms}."""
    os.makedirs(work, exist_ok=True)
    sizes = (model.layers, model.hidden, model.heads, model.seq, model.batch, count)
    lines = steps.train(build, work, tp * dp, tp, 1, sizes, *steps.data_in(f"{build}/bench-data"), "--profile", 1)
    profile = next(line["profile"] for line in lines if "profile" in line)
    return [line["step_s"] for line in lines if "step_s" in line][WARM_UP:], {one["what"]: one for one in profile}


def side_by_side(build, work, model, copies, count):
    """The profile of a serial run beside others of its kind: cores share caches, memory and power."""
    found = [None] * copies

    def one(i):
        found[i] = run(build, f"{work}/{i}", model, 1, 1, count)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(copies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if None in found:
        sys.exit(2)  # its thread has said why
    return found[0][1]


def rates(model, profile):
    """Rates of one rank from what its operations took."""
    def spent(*names):
        return max(1e-9, sum(profile[name]["forward_ms"] + profile[name]["backward_ms"] for name in names if name in profile) / 1e3)

    others = [name for name in profile if name not in ("linear", "attention", "optimiser", *steps.SENT)]
    tokens = model.batch * model.seq
    linear, blocks = model.products(3)
    return {"gemm": 2 * linear * tokens * model.hidden ** 2 / spent("linear"),
            "attention": 4 * blocks * tokens * model.seq * model.hidden / spent("attention"),
            "stream": tokens * model.layers * 44 * model.hidden * 4 / spent(*others),
            "optimiser": 32 * model.parameters(1) / spent("optimiser")}


def link_here(build):
    """Latency and bandwidth from all-reduces of 4 KiB and 2 MiB over two ranks: t = 2 latency + size / bandwidth."""
    done = subprocess.run(["mpirun", "-q", "-n", "2", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl",
                           "self,vader", "--mca", "btl_vader_single_copy_mechanism", "none", f"{build}/bench-collectives"],
                          capture_output=True, text=True, check=True)
    times = {int(size): statistics.median(map(float, samples)) / 1e6 for name, size, *samples in map(str.split, done.stdout.splitlines())
             if name == "all_reduce"}
    small, large = times[4 << 10], times[2 << 20]
    return cost.Link(small / 2, (2 << 20) / max(large - small, 1e-9))


def this_machine(build, work, model):
    """{ranks that compute at a time: Cluster}."""
    cores, count = os.cpu_count(), 12 if model.hidden <= 256 else 5
    link = link_here(build)
    return {busy: cost.Cluster(**rates(model, side_by_side(build, work, model, busy, count)), near=link, far=link, cores=cores)
            for busy in sorted({1, min(2, cores)})}


def here(machine, ranks):
    return machine[min(ranks, max(machine))]


def validate(build, work, model, machine):
    lines, count = [], 14 if model.hidden <= 256 else 5
    for tp, dp in [(1, 1), (2, 1), (1, 2), (4, 1), (2, 2), (1, 4)]:
        if (tp, dp) not in cost.layouts(tp * dp, model):
            continue
        measured = 1e3 * statistics.median(run(build, f"{work}/0", model, tp, dp, count)[0])
        predicted = 1e3 * sum(cost.step(here(machine, tp * dp), model, tp, dp).values())
        lines.append([f"tp={tp} dp={dp}", tp * dp, number(predicted), number(measured), f"{100 * (predicted / measured - 1):+.0f} %"])
    table("prediction against measurement, ms a step", ["", "ranks", "predicted", "measured", "error"], lines)


# ---- answers -----------------------------------------------------------------------------------------------------------


def show_machine(machine):
    table("rates of a rank, by how many compute at a time", ["", *(f"{busy}" for busy in machine)],
          [["GEMM, GFLOP/s", *(number(c.gemm / 1e9) for c in machine.values())],
           ["attention, GFLOP/s", *(number(c.attention / 1e9) for c in machine.values())],
           ["element-wise, GB/s", *(number(c.stream / 1e9) for c in machine.values())],
           ["optimiser, GB/s", *(number(c.optimiser / 1e9) for c in machine.values())],
           ["all-reduce: latency, us", *(number(1e6 * c.near.latency) for c in machine.values())],
           ["all-reduce: bandwidth, GB/s", *(number(c.near.bandwidth / 1e9) for c in machine.values())]])


def show_layouts(model, ranks, cluster_for, only_tp):
    found = [(tp, dp) for tp, dp in cost.layouts(ranks, model) if only_tp in (0, tp)]
    if not found:
        fail(f"no layout of {ranks} ranks fits: TP={only_tp or 'any'}, {model.heads} heads, BATCH_SIZE={model.batch}",
             "TP divides NTASKS and HEADS, and BATCH_SIZE is a multiple of NTASKS/TP")
    lines = []
    for tp, dp in found:
        cluster = cluster_for(ranks)
        parts, held = cost.step(cluster, model, tp, dp), cost.memory(cluster, model, tp, dp)
        whole = sum(parts.values())
        lines.append((held > cluster.memory, whole, [
            f"tp={tp} dp={dp}", number(1e3 * whole), number(model.batch * model.seq / whole), *(number(1e3 * part) for part in parts.values()),
            number(held / 1e6) + (" too much" if held > cluster.memory else "")]))
    best = min(lines)
    table(f"{ranks} ranks, predicted, ms a step", ["", "step", "tokens/s", *parts, "MB a rank"], [line for _, _, line in sorted(lines)])
    print("  no layout fits into the memory" if best[0] else f"  fastest: {best[2][0]}")


def show_paper(described, cluster):
    sizes = [cost.Model(**one["model"]) for one in described["weak_scaling"]]
    lines = []
    for one, model in zip(described["weak_scaling"], sizes):
        for dp in (1, described["replicas"]):
            wide = cost.Model(**dict(one["model"], batch=model.batch * dp))
            predicted = 100 * cost.rate(cluster, wide, one["tp"], dp) / cost.rate(cluster, sizes[0], 1, 1)
            published = one["published"][dp > 1]
            lines.append([one["name"], one["tp"] * dp, one["tp"], dp, f"{predicted:.0f} %", f"{published} %", f"{predicted - published:+.0f}"])
    table(f"weak scaling of {described['source']}", ["", "GPUs", "tp", "dp", "predicted", "published", "points apart"],
          sorted(lines, key=lambda line: (line[3], line[2])))
    print(f"  one GPU: {cost.rate(cluster, sizes[0], 1, 1) / 1e12:.1f} TFLOP/s predicted, {described['one_gpu_tflops']} published")


def described_cluster(name):
    path = name if name.endswith(".json") else f"{HERE}/clusters/{name}.json"
    try:
        with open(path, encoding="utf-8") as file:
            described = json.load(file)
        rates_given = dict(described["rates"], near=cost.Link(**described["near"]), far=cost.Link(**described["far"]))
        return described, cost.Cluster(**rates_given)
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{path} describes no cluster: {error}",
             "CLUSTER=file.json; take common/train/bench/clusters/dgx-2h.json for a pattern, whose fields are those of cost.py")


def main():
    build, model, ranks = sys.argv[1], asked_for(), whole_number("NTASKS", 4)
    only_tp = whole_number("TP", 1) if os.environ.get("TP") else 0
    print(f"model     {model.layers} layers, hidden {model.hidden}, {model.heads} heads, SEQ {model.seq}, BATCH_SIZE {model.batch}, "
          f"{model.parameters(1) / 1e6:.1f} M parameters")
    if os.environ.get("CLUSTER"):
        described, cluster = described_cluster(os.environ["CLUSTER"])
        if "weak_scaling" in described:
            show_paper(described, cluster)
        show_layouts(model, ranks, lambda _: cluster, only_tp)
        return
    os.environ.pop("OPENBLAS_CORETYPE", None)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    work = f"{build}/bench-data"
    steps.write_data(work)
    machine = this_machine(build, work, model)
    show_machine(machine)
    validate(build, work, model, machine)
    show_layouts(model, ranks, lambda n: here(machine, n), only_tp)


if __name__ == "__main__":
    main()
