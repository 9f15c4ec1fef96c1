#!/usr/bin/python3
"""make sbatch on a real Slurm: two nodes train like this machine alone; a job that is ended early
saves; one that reaches its time limit is requeued and continues."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

from pages import Page
from runs import ROOT, check, losses_of
from slurm_cluster import cluster, missing

SMALL = ["LAYERS=1", "HIDDEN_DIM=32", "HEADS=4", "BATCH_SIZE=8", "SEQ=32"]
ON_TWO_NODES = ["sbatch", "NTASKS=4", "TP=2", "NODES=2", *SMALL]
LONG = ["EPOCHS=1000", "SAMPLES=2000"]


def losses_in(path):
    with open(path) as file:
        return [line["loss"] for line in map(json.loads, file) if "step" in line]


def apart(first, second):
    return max(abs(a - b) for a, b in zip(first, second))


def checkpoints(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith("step-")) if os.path.isdir(folder) else []


def until(condition, seconds=300):
    end = time.time() + seconds
    while not condition() and time.time() < end:
        time.sleep(0.2)


def number_of(one, name):
    return one.ask("squeue", "-h", "-o", "%i", "--name", name)


def training(one, job, name, folder):
    """Waits until the job has trained some steps, or has ended; returns its number."""
    steps = f"{folder}/{name}.jsonl"
    until(lambda: job.poll() is not None or os.path.exists(steps) and len(losses_in_part(steps)) > 3)
    return number_of(one, name)


def losses_in_part(path):
    with open(path) as file:
        return [line for line in file if line.endswith("\n") and '"step"' in line]


def trains_on_two_nodes(one, folder, start):
    status, text = one.made(*ON_TWO_NODES, f"NAME=two-{start}", f"START={start}", "STEPS=10", "MAP=1", f"METRICS={folder}/{start}.jsonl", "REPORT=1",
                            f"OUT={folder}/{start}.html")
    local = losses_of(1, "--layers", 1, "--hidden-dim", 32, "--heads", 4, "--batch-size", 8, "--seq", 32, "--steps", 10)
    there = losses_in(f"{folder}/{start}.jsonl") if status == 0 else []
    check(status == 0 and len(there) == 10 and apart(local, there) < 1e-4,
          f"two nodes train to the losses of one rank here, by {start}", f"status {status}\n{there}\n{local}\n{text}")
    check(all(f"rank {r}: node n{1 + r // 2}" in text for r in range(4)), f"the ranks that split a model share a node, by {start}", text)
    rows = [line for line in text.splitlines() if line[:4].strip().isdigit() and len(line.split()) == 9]
    check(len(rows) == 4 and re.search(r"(running|completing|ran) on n\[1-2\]", text),
          f"the nodes and then the table are printed, by {start}", text)
    page = Page(f"{folder}/{start}.html") if os.path.exists(f"{folder}/{start}.html") else None
    check(page and page.data and not page.unclosed and all(f"rank {r}" in json.dumps(page.data) for r in range(4)), f"REPORT=1 makes a page of the ranks on both nodes, by {start}", text)


def script_stands_alone(one):
    script = f"{one.scripts}/two-srun.sbatch"
    alone = subprocess.run(["sbatch", "--wait", script], env=one.environment, cwd=ROOT, capture_output=True, text=True)
    bash = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
    check(alone.returncode == 0 and bash.returncode == 0, "the stored script can be submitted as it is", alone.stderr)


def goes_back_into_the_queue(one, folder):
    run = [*SMALL, "STEPS=400", "EPOCHS=2"]
    job = one.make(*ON_TWO_NODES, *run, "NAME=again", f"SAVE={folder}/again", f"RESUME={folder}/again", f"METRICS={folder}/again.jsonl")
    number = training(one, job, "again", folder)
    one.ask("scancel", "--signal=USR1", "--batch", number)  # as Slurm does before the time limit
    text, _ = job.communicate(timeout=300)
    check(job.returncode == 0 and "goes back into the queue" in text and "continues after step" in text and
          checkpoints(f"{folder}/again")[-1:] == ["step-000400"], "a job that reaches its time limit goes back into the queue until it is done",
          text)
    status, text = one.made(*ON_TWO_NODES, *run, "NAME=whole", f"METRICS={folder}/whole.jsonl")
    pieces, whole = losses_in(f"{folder}/again.jsonl"), losses_in(f"{folder}/whole.jsonl")
    check(status == 0 and len(pieces) == len(whole) == 400 and apart(pieces, whole) == 0,
          "and has the losses of a job in one piece", f"{len(pieces)} and {len(whole)} steps")


def ends_when_its_time_is_over(one, folder):
    job = one.make(*ON_TWO_NODES, *LONG, "NAME=over", f"SAVE={folder}/over", f"METRICS={folder}/over.jsonl")
    one.ask("scancel", "--signal=USR1", "--batch", training(one, job, "over", folder))
    text, _ = job.communicate(timeout=300)
    check(job.returncode != 0 and "error: the time limit was reached" in text and "HINT" in text and checkpoints(f"{folder}/over"),
          "without RESUME, a job that reaches its time limit saves and fails", text)


def saves_when_cancelled(one, folder):
    job = one.make(*ON_TWO_NODES, *LONG, "NAME=gone", f"SAVE={folder}/gone", f"METRICS={folder}/gone.jsonl")
    one.ask("scancel", training(one, job, "gone", folder))
    text, _ = job.communicate(timeout=300)
    check(job.returncode != 0 and "was cancelled" in text and checkpoints(f"{folder}/gone"), "a job ended by scancel saves first",
          f"{checkpoints(f'{folder}/gone')}\n{text}")
    again = [*ON_TWO_NODES, "NAME=put", "STEPS=400", "EPOCHS=2", f"SAVE={folder}/put", f"RESUME={folder}/put"]
    job = one.make(*again, f"METRICS={folder}/put.jsonl")
    one.ask("scontrol", "requeue", training(one, job, "put", folder))
    text, _ = job.communicate(timeout=300)
    check(job.returncode == 0 and "continues after step" in text, "a job that another command requeues resumes from its checkpoint", text)


def interrupt(job):
    os.killpg(job.pid, signal.SIGINT)


def interrupted_once(one, folder):
    job = one.make(*ON_TWO_NODES, *LONG, "NAME=once", f"SAVE={folder}/once", f"METRICS={folder}/once.jsonl")
    number = training(one, job, "once", folder)
    interrupt(job)
    text, _ = job.communicate(timeout=300)
    check(job.returncode != 0 and f"make sbatch JOB={number}" in text and f"{number} once RUNNING" in one.queue(),
          "one Ctrl-C leaves the job running, and says how to wait for it again", f"{one.queue()}\n{text}")
    waits = one.make("sbatch", f"JOB={number}")
    time.sleep(3)
    one.ask("scancel", "--signal=TERM", "--batch", number)
    text, _ = waits.communicate(timeout=300)
    check("step 1/" in text and "\nrank " in text and waits.returncode != 0, "JOB=n waits for it again, and shows all that it printed", text)


def interrupted_twice(one, folder, start):
    name = f"twice-{start}"
    job = one.make(*ON_TWO_NODES, *LONG, f"NAME={name}", f"START={start}", f"SAVE={folder}/{name}", f"METRICS={folder}/{name}.jsonl")
    training(one, job, name, folder)
    interrupt(job)
    time.sleep(1.5)
    interrupt(job)
    text, _ = job.communicate(timeout=300)
    check(job.returncode != 0 and one.queue() == "" and checkpoints(f"{folder}/{name}"),
          f"two Ctrl-C end the job after it has saved, by {start}", f"{one.queue()}\n{text}")


def waits_its_turn(one):
    one.ask("scontrol", "update", "partition=p", "state=DOWN")
    job = one.make("sbatch", "NTASKS=1", *SMALL, "STEPS=1", "NAME=waits")
    until(lambda: number_of(one, "waits"))
    status, text = one.made("sbatch", "NTASKS=1", *SMALL, "STEPS=1", "NAME=waits")
    check(status == 2 and text.count("error:") == 1 and "already has the name waits" in text,
          "a second job of the same name is refused", text)
    waits = one.make("sbatch", "NTASKS=1", *SMALL, "STEPS=1", "NAME=never")
    until(lambda: number_of(one, "never"))
    time.sleep(1.5)
    interrupt(waits)
    time.sleep(1.5)
    interrupt(waits)
    never, _ = waits.communicate(timeout=300)
    check(waits.returncode != 0 and "removed from the queue" in never and "never" not in one.queue(),
          "two Ctrl-C remove a pending job from the queue", never)
    one.ask("scontrol", "update", "partition=p", "state=UP")
    text, _ = job.communicate(timeout=300)
    check(job.returncode == 0 and "PartitionDown" in text, "the reason why a job is pending is shown", text)


def stays_here_in_an_allocation(one):
    done = subprocess.run(["salloc", "--quiet", "-N", "2", "-n", "4", "make", "train", "NTASKS=4", "TP=2", "MAP=1", *SMALL, "STEPS=2"],
                          env=one.environment, cwd=ROOT, capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout.count(f"node {socket.gethostname()}") == 4,
          "within an allocation, make train stays on this machine", done.stdout + done.stderr)


def main():
    why = missing()
    if why:
        print(f"skip - training through Slurm: {why}")
        return
    with cluster() as one, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        trains_on_two_nodes(one, folder, "srun")
        trains_on_two_nodes(one, folder, "mpirun")
        script_stands_alone(one)
        goes_back_into_the_queue(one, folder)
        ends_when_its_time_is_over(one, folder)
        saves_when_cancelled(one, folder)
        interrupted_once(one, folder)
        interrupted_twice(one, folder, "srun")
        interrupted_twice(one, folder, "mpirun")
        waits_its_turn(one)
        stays_here_in_an_allocation(one)


main()
