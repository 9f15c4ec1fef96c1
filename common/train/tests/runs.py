"""Runs of the training program, for the tests beside this file."""
import json
import os
import subprocess
import tempfile

ROOT = os.environ["ROOT"]
BUILD = os.environ["BUILD"]

program = "train"  # a program in BUILD
environment_of_runs = {}
GPU = os.environ.get("BACKEND", "emulated")
ON_GPUS = {"over MPI": (f"train-{GPU}", {"EMULATED_GPUS": "1"}), "over NCCL": (f"train-{GPU}-nccl", {"EMULATED_GPUS": "4"})}
if not os.path.exists(f"{BUILD}/train-{GPU}-nccl"):
    del ON_GPUS["over NCCL"]


def on(name):
    """Makes later runs use this device: "on the CPU", or a GPU, which is emulated unless BACKEND is
    set."""
    global program, environment_of_runs
    program, environment_of_runs = ON_GPUS.get(name, ("train", {}))


def command(ranks, *options, stack="solutions", stage=14):
    return ["common/train/launch.sh", str(ranks), stack, str(stage), f"{BUILD}/{program}", "--cache", f"{BUILD}/cache",
            *map(str, options)]


def run(ranks, *options, **environment):
    """The finished process, with its output as text."""
    return subprocess.run(command(ranks, *options), cwd=ROOT, capture_output=True, text=True, 
                          env={**os.environ, **environment_of_runs, **environment})


def metrics_of(ranks, *options):
    """The lines of the metrics file of a run that must succeed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "metrics.jsonl")
        done = run(ranks, "--tp", ranks, "--metrics", path, *options)
        if done.returncode:
            raise SystemExit(f"not ok - training runs\n{done.stdout}{done.stderr}")
        with open(path) as file:
            return [json.loads(line) for line in file]


def dry_run(ranks, *options, rank=0):
    """What make check says of a rank, and of one rank of each other stage: {rank: summary}."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "metrics.jsonl")
        words = ["common/train/dry_run.sh", ranks, "solutions", 21, f"{BUILD}/check", *(["--gpu"] if program != "train" else []), "--tp", ranks, *options,
                 "--rank", rank, "--counts", path]
        done = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"not ok - a dry run runs\n{done.stdout}{done.stderr}")
        with open(path) as file:
            return {one["rank"]: one for one in json.load(file)["ranks"]}


COUNTED = ("parameters", "comm_bytes_tp", "comm_bytes_dp", "comm_bytes_pp", "stage", "blocks", "micro_batches_in_flight")


def as_in_dry_run(sentence, ranks, *options, apart=0.0, sums_apart=0.0):
    """Checks every rank of a run of one step against make check. Returns the last line of its metrics,
    and the multiply-adds of all ranks.

    @param apart how far the peaks of memory may be apart
    @param sums_apart how far the bytes may be apart, if they depend on the data"""
    last, wrong, multiplied = metrics_of(ranks, *options)[-1], [], 0
    for its in last["ranks"]:
        played = dry_run(ranks, *options, rank=its["rank"])[its["rank"]]
        multiplied += played["multiply_adds"]
        wrong += [(its["rank"], key, its[key], played[key]) for key in COUNTED
                  if its[key] != played[key] and not (key.startswith("comm") and abs(its[key] - played[key]) <= sums_apart * its[key])]
        if abs(its["peak_bytes"] - played["peak_bytes"]) > apart * its["peak_bytes"]:
            wrong.append((its["rank"], "peak_bytes", its["peak_bytes"], played["peak_bytes"]))
    check(not wrong, sentence, "rank, what, in the run, in the dry run: " + str(wrong))
    return last, multiplied


def losses_of(ranks, *options):
    return [line["loss"] for line in metrics_of(ranks, *options) if "step" in line]


def lacks_bf16():
    """Why AMP=bf16 cannot run on this machine's CPU; empty if it can."""
    tiny = ["--layers", 1, "--hidden-dim", 16, "--heads", 2, "--seq", 16, "--batch-size", 4, "--steps", 1, "--test", ""]
    on("the CPU")
    return run(1, *tiny, "--amp", "bf16").stderr.partition("error: ")[2].partition("\n")[0]


def check(good, sentence, detail=""):
    print(("ok - " if good else "not ok - ") + sentence)
    if not good and detail:
        print("    " + detail.replace("\n", "\n    "))
