"""make bench ONLY=pipeline: measures a step of two stages by number of micro-batches, with GPipe
and 1F1B, and the memory of each stage; compares them with the longest path through the schedule and
with PyTorch's pipelines."""
import statistics

import aims
import cost
import pace
import peers
import steps
from rows import Row, number, table

STATE = "weights", "gradients", "optimiser"  # held by every schedule, and by PyTorch
STAGES, MICROS, SCHEDULES = 2, (1, 2, 4, 8), ("gpipe", "1f1b")
SIZES = LAYERS, HIDDEN, HEADS, SEQ, BATCH, STEPS = 4, 256, 4, 128, 32, 7
MODEL = cost.Model(*SIZES[:-1], steps.VOCABULARY, classifies=True)


def of_kit(build, work, micro, schedule):
    lines = steps.train(build, work, STAGES, 1, 1, SIZES, *steps.data_in(work), "--pp", STAGES, "--micro", micro, "--schedule", schedule)
    ranks = lines[-1]["ranks"]
    return {"seconds": [line["step_s"] for line in lines if "step_s" in line], "tensors": [rank["peak_bytes"] for rank in ranks],
            "state": [sum(rank["peak"][kind] for kind in STATE) for rank in ranks],
            "resident_bytes": [rank["resident_bytes"] for rank in ranks], "imported_bytes": [0] * len(ranks)}


def profile_of_one_rank(build, work):
    return steps.measured(steps.train(build, work, 1, 1, 1, SIZES, *steps.data_in(work), "--profile", 1))["profile"]


def predicted(profiles, micro, schedule):
    """The milliseconds of a step without messages, as make model predicts it, from the profiles of
    one rank. For each kind of work, the least time counts."""
    turns = [steps.seconds_of(profile) for profile in profiles]
    rates = steps.rates(MODEL, {kind: min(turn[kind] for turn in turns) for kind in turns[0]})
    cluster = pace.Cluster(**rates, near=pace.ALONE, far=pace.ALONE, cores=steps.cores())
    return 1e3 * sum(pace.step(cluster, MODEL, 1, 1, STAGES, micro, schedule).values())


def of_torch(python, micro, schedule):
    return peers.run(python, "torch_pipeline.py", 1, STAGES, *SIZES, steps.VOCABULARY, micro, schedule)


def cases(versions):
    """[(who, micro-batches, schedule), ...] in the order of the runs. PyTorch's 1F1B rejects fewer
    micro-batches than stages."""
    return [(who, micro, schedule) for micro in MICROS for schedule in SCHEDULES for who in ("kit", *versions)
            if who == "kit" or schedule == "gpipe" or micro >= STAGES]


def add(found, key, run):
    one = found.setdefault(key, {"ms": []})
    one["ms"] += [1e3 * seconds for seconds in run["seconds"][steps.WARM_UP:]]
    one["run"] = run


def show_times(found, versions, profiles):
    lines = []
    for micro in MICROS:
        ms = [found.get((who, micro, schedule), {}).get("ms") for who in ("kit", *versions) for schedule in SCHEDULES]
        lines.append([f"m = {micro}", " / ".join(number(predicted(profiles, micro, schedule)) for schedule in SCHEDULES),
                      *(f"{number(min(some))} / {number(statistics.median(some))}" if some else "-" for some in ms)])
    table(f"{STAGES} stages, {LAYERS} blocks of {HIDDEN}, {BATCH} rows of {SEQ} tokens: ms per step, best / median",
          ["", f"predicted: {' / '.join(SCHEDULES)}", *(f"{who} {schedule}" for who in ("kit", *versions) for schedule in SCHEDULES)], lines)
    if versions:
        print("  -: PyTorch's 1F1B refuses fewer micro-batches than stages")


def show_memory(found, versions):
    most = MICROS[-1]
    lines = []
    for who in ("kit", *versions):
        for schedule in SCHEDULES:
            run = found[who, most, schedule]["run"]
            process = [all_of_it - imports for all_of_it, imports in zip(run["resident_bytes"], run["imported_bytes"])]
            columns = run.get("state", []), run.get("tensors", []), process
            lines.append([f"{who} {schedule}", *(" ".join(number(size / 1e6) for size in sizes) or "-" for sizes in columns)])
    table(f"memory of each stage at m = {most}, MB", ["", "weights, gradients, optimiser", "all tensors", "process, without imports"], lines)


def held(run):
    """Bytes of the largest stage's process, without those for importing PyTorch."""
    return max(all_of_it - imports for all_of_it, imports in zip(run["resident_bytes"], run["imported_bytes"]))


def show_aims(found, versions):
    lines = []
    for who, micro, schedule in cases(versions):
        if who == "kit":
            continue
        its, mine = found[who, micro, schedule], found["kit", micro, schedule]
        faster = statistics.median(its["ms"]) / statistics.median(mine["ms"])
        share = held(mine["run"]) / held(its["run"])
        lines.append([f"{who} {schedule}, m = {micro}", f"{faster:.2f}", *aims.least(faster, aims.PIPELINE_SPEED), f"{share:.2f}",
                      *aims.most(share, aims.PIPELINE_MEMORY)])
    if lines:
        table("against PyTorch: how many times as fast, and the share of its memory", ["", "times", "target", "", "memory", "target", ""], lines)


def measure(build, work, rounds, pythons):
    versions, found, profiles = peers.with_module(pythons, "torch.distributed.pipelining", "pipelines came with 2.5"), {}, []
    for _ in range(rounds):
        profiles.append(profile_of_one_rank(build, work))
        for who, micro, schedule in cases(versions):
            add(found, (who, micro, schedule), of_kit(build, work, micro, schedule) if who == "kit" else of_torch(versions[who], micro, schedule))
    show_times(found, versions, profiles)
    show_memory(found, versions)
    show_aims(found, versions)
    return [Row("pipeline", f"{who} {schedule}, m = {micro}", "ms", found[who, micro, schedule]["ms"]) for who, micro, schedule in cases(versions)]
