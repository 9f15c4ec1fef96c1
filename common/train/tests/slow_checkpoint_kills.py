#!/usr/bin/python3
"""SIGKILL ends a run ten times at random moments, and the same command resumes it each time. The
loss curve equals that of an undisturbed run."""
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
EPOCHS = 40  # of 16 steps, each with an evaluation: too many to complete before the tenth kill
RUN = ["--tp", 2, "--epochs", EPOCHS]


def processes_of(session):
    """All processes of a session, because MPI gives ranks their own process groups."""
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


def start(words):
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def kill_somewhere(words, metrics, draw):
    """Kills a run after some steps or, every third time, while it starts. Returns whether it was
    still running."""
    with start(words) as job:
        enough = size(metrics) + draw.randint(1, 25) * 200  # bytes; a step's line has about 200
        patience = draw.uniform(0, 1) if draw.random() < 1 / 3 else 60
        last = time.monotonic() + patience
        while size(metrics) < enough and time.monotonic() < last and job.poll() is None:
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 0.005))
        running = job.poll() is None
        kill_all(job.pid)
    return running


def progress(folder):
    steps = [name for name in os.listdir(folder) if name.startswith("step-")] if os.path.isdir(folder) else []
    return int(max(steps)[5:]) if steps else 0


def main(temporary):
    draw = random.Random(SEED)
    alone, killed, folder = f"{temporary}/alone.jsonl", f"{temporary}/killed.jsonl", f"{temporary}/saved"
    succeed(2, *RUN, "--metrics", alone)
    words = command(2, *SMALL, *RUN, "--metrics", killed, "--save", folder, "--resume", folder, "--every", 1)
    running, steps, sound = [], [], True
    for _ in range(KILLS):
        running.append(kill_somewhere(words, killed, draw))
        steps.append(progress(folder))
        sound = sound and (not steps[-1] or tool("info", newest(folder)).returncode == 0)
    check(all(running) and len(set(steps)) > 3 and steps == sorted(steps), f"{KILLS} runs are killed (SEED={SEED})",
          f"running: {running}, after steps {steps}")
    check(sound, "each kill leaves an intact checkpoint", f"after steps {steps}")
    with start(words) as job:
        status = job.wait()
    check(status == 0, "the same command then runs to the end", f"status {status}")
    check(curve(killed) == curve(alone) and len(curve(alone)) == EPOCHS * 17, "the curve equals that of an undisturbed run",
          f"{len(curve(killed))} lines and {len(curve(alone))}; killed after steps {steps}, SEED={SEED}")
    left = sorted(os.listdir(folder))
    check(left == [".lock", *(f"step-{step:06}" for step in (EPOCHS * 16 - 1, EPOCHS * 16))], "nothing half-written is left", str(left))


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
    main(place)
