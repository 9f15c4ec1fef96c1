#!/usr/bin/python3
"""A run killed with SIGKILL at random moments ten times, and resumed each time by the same command, ends with the loss
curve of an undisturbed run."""
import os
import random
import signal
import subprocess
import tempfile
import time

from checkpoints import SMALL, curve, newest, succeed, tool
from runs import ROOT, check, command

KILLS = 10
SEED = int(os.environ.get("SEED", time.time_ns() % 10**6))
RUN = ["--tp", 2, "--epochs", 60]  # of 16 steps, with an evaluation after each


def processes_of(session):
    """All processes of a session: MPI gives its ranks groups of their own."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(name))
    return found


def kill_all(session):
    while left := processes_of(session):
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def run_until(moment, words):
    """Returns the exit status, or None if it was killed."""
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as job:
        try:
            job.wait(moment)
        except subprocess.TimeoutExpired:
            kill_all(job.pid)
            job.wait()
            return None
        print(f"    {job.stderr.read()}" if job.returncode else "", end="")
        return job.returncode


def progress(folder):
    steps = [name for name in os.listdir(folder) if name.startswith("step-")] if os.path.isdir(folder) else []
    return int(max(steps)[5:]) if steps else 0


def main(temporary):
    draw = random.Random(SEED)
    alone, killed, folder = f"{temporary}/alone.jsonl", f"{temporary}/killed.jsonl", f"{temporary}/saved"
    begin = time.monotonic()
    succeed(2, *RUN, "--metrics", alone, "--save", f"{temporary}/alone", "--every", 1)
    whole = time.monotonic() - begin
    words = command(2, *SMALL, *RUN, "--metrics", killed, "--save", folder, "--resume", folder, "--every", 1)
    steps, statuses, sound = [], [], True
    for _ in range(KILLS):
        statuses.append(run_until(0.4 + draw.uniform(0, whole / 8), words))
        steps.append(progress(folder))
        sound = sound and (not steps[-1] or tool("info", newest(folder)).returncode == 0)
    check(statuses == [None] * KILLS and len(set(steps)) > 3 and steps == sorted(steps),
          f"{KILLS} runs are killed while they train (SEED={SEED})", f"{statuses}, after steps {steps}")
    check(sound, "each kill leaves a whole checkpoint", f"after steps {steps}")
    check(run_until(3600, words) == 0, "the command then runs to the end")
    check(curve(killed) == curve(alone) and len(curve(alone)) == 60 * 17, "the curve is that of an undisturbed run",
          f"{len(curve(killed))} lines and {len(curve(alone))}; killed after steps {steps}, SEED={SEED}")
    left = sorted(os.listdir(folder))
    check(left == [".lock", "step-000959", "step-000960"], "nothing half-written is left", str(left))


with tempfile.TemporaryDirectory() as place:
    main(place)
