#!/usr/bin/env python3
"""record.py NAME: prints what the slides show of runs of the kit, as a file of slides/runs: verdict,
verdict.fr, timeline, losses or all-reduce. Needs build/train, build/grade and
build/bench-collectives of `make bench-programs`.

A file's first line is the command that makes it. compute.py turns the files into drawings.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
FOLDER = os.path.join(ROOT, "slides/runs")
sys.path.insert(0, os.path.join(ROOT, "common/bench"))
import steps

ANSWER = "06-no_f"  # of grader/mutants: the pair of lab 6 without f
LAYOUTS = ((1, 1, 1), (2, 1, 1), (4, 1, 1), (1, 2, 1), (2, 2, 1), (4, 2, 1), (1, 1, 2), (1, 2, 3), (2, 2, 2))  # tp, dp, pp
LOSSES = {"task": "mlm", "layers": 4, "hidden-dim": 96, "heads": 12, "dropout": 0.1, "batch-size": 12, "seq": 64, "lr": 1e-3}
LOSS_STEPS = 60
# Two ranks; the options describe a model whose step takes about a tenth of a second.
TIMELINE = {"layers": 2, "hidden-dim": 384, "heads": 12, "batch-size": 8, "seq": 128}
TIMELINE_LAYOUTS = ((2, 1, 1), (1, 2, 1), (1, 1, 2))  # tp, dp, pp
MICRO = {"timeline": 4, "losses": 3}  # micro-batches of a pipeline
TIMELINE_STEPS = 12  # of which the trace has ten
KINDS = {"forward": "F", "backward": "B", "tp": "sent", "dp": "sent", "pp": "wait", "waiting": "wait", "optimiser": "step"}
SHORTEST = 50  # microseconds: shorter spans count as part of the one before
RING_RANKS, LARGEST = (2, 4), 1 << 24


def said(*command, **environment):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode not in (0, 1):  # 1: the lab is wrong
        raise SystemExit(f"error: {command[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def trained(tp, dp, pp, micro, options, *more):
    """Trains with all labs."""
    said("common/train/launch.sh", tp * dp * pp, *steps.ALL_LABS, f"{BUILD}/train", "--cache", f"{BUILD}/cache", "--test", "", "--threads", 1, "--tp", tp,
         "--pp", pp, "--micro", micro if pp > 1 else 1, *(word for name, value in options.items() for word in (f"--{name}", value)), *more)


def verdict(language="en"):
    """What the grader says of the wrong answer. Its first line has a time, which is left out."""
    said("bash", "grader/tests/mutants.sh", f"/{ANSWER}")
    text = said(f"{BUILD}/grade", "--lab", int(ANSWER[:2]), "--author", "mutant", "--runners", f"{BUILD}/mutants/mutants/{ANSWER}", "--seed", 1, LANGUAGE=language, LANG=f"{language}.UTF-8", TEXTDOMAINDIR=f"{BUILD}/locale")
    first, *lines = text.splitlines()
    return [first.split("(")[0].rstrip(), *lines]


def losses(layouts=LAYOUTS, count=LOSS_STEPS):
    """A line for each layout: tp, dp, pp and the losses of all steps."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for tp, dp, pp in layouts:
            trained(tp, dp, pp, MICRO["losses"], LOSSES, "--steps", count, "--metrics", f"{folder}/run")
            with open(f"{folder}/run", encoding="utf-8") as file:
                found = [one["loss"] for one in map(json.loads, file) if "step" in one]
            lines.append(" ".join(map(str, (tp, dp, pp, *found))))
    return lines


def spans_of_step(trace):
    """(rank, kind, begin, end) in microseconds since the step began, of the fastest step of the trace."""
    events = [one for one in trace["traceEvents"] if one["ph"] == "X"]
    step = min((one for one in events if one["cat"] == "step" and one["pid"] == 0), key=lambda one: one["dur"])
    begins = {one["pid"]: one["ts"] for one in events if one["cat"] == "step" and one["name"] == step["name"]}
    ends = {one["pid"]: one["ts"] + one["dur"] for one in events if one["cat"] == "step" and one["name"] == step["name"]}
    passes = [one for one in events if one["cat"] == "pass"]
    zero, found = min(begins.values()), []
    for one in sorted(events, key=lambda one: (one["pid"], one["ts"])):
        rank, kind = one["pid"], KINDS.get(one["cat"])
        if kind == "F":  # a backward pass computes some of the forward pass again
            kind = next((each["name"][0] for each in passes if each["pid"] == rank and each["ts"] <= one["ts"] < each["ts"] + each["dur"]), kind)
        if not kind or not begins[rank] <= one["ts"] < ends[rank]:
            continue
        begin, end = one["ts"] - zero, one["ts"] + one["dur"] - zero
        if found and found[-1][0] == rank and (found[-1][1] == kind or one["dur"] < SHORTEST):
            found[-1][3] = end
        else:
            found.append([rank, kind, begin, end])
    return found


def timeline(count=TIMELINE_STEPS):
    """A line for each span: tp, dp, pp, rank, kind, begin and end."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for tp, dp, pp in TIMELINE_LAYOUTS:
            trained(tp, dp, pp, MICRO["timeline"], TIMELINE, "--steps", count, "--trace", f"{folder}/trace")
            with open(f"{folder}/trace", encoding="utf-8") as file:
                spans = spans_of_step(json.load(file))
            lines += [f"{tp} {dp} {pp} {rank} {kind} {begin:.0f} {end:.0f}" for rank, kind, begin, end in spans]
    return lines


def all_reduce(largest=LARGEST):
    """The number of usable cores; then a line for each size: ranks, bytes and the median microseconds of an all-reduce."""
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return [f"cores {steps.cores()}"] + [f"{ranks} {size} {statistics.median(samples):.1f}" for ranks in RING_RANKS
            for (name, size), samples in steps.collectives(f"{BUILD}/bench-collectives", ranks, largest).items() if name == "all_reduce"]


MADE_BY = {"verdict": verdict, "verdict.fr": lambda: verdict("fr"), "timeline": timeline, "losses": losses, "all-reduce": all_reduce}


def read(name):
    """The lines of a file of slides/runs, without the first."""
    with open(os.path.join(FOLDER, f"{name}.txt"), encoding="utf-8") as file:
        return file.read().splitlines()[1:]


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in MADE_BY:
        raise SystemExit(__doc__)
    print("\n".join([f"# slides/record.py {sys.argv[1]} > slides/runs/{sys.argv[1]}.txt", *MADE_BY[sys.argv[1]]()]))


if __name__ == "__main__":
    main()
