#!/usr/bin/python3
"""A run's output and files, and how it ends on request."""
import glob
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import tempfile
import time

from runs import BUILD, ROOT, check, command, metrics_of, run

SMALL = ["--layers", 2, "--hidden-dim", 32, "--heads", 4, "--batch-size", 8, "--seq", 32]

lines = metrics_of(2, *SMALL, "--samples", 80, "--epochs", 2)
steps = [line for line in lines if "step" in line]
keys = {"step", "epoch", "loss", "accuracy", "lr", "step_s", "tokens_per_s", "comm_bytes", "comm_s"}
check(len(steps) == 20 and all(keys <= set(line) for line in steps), "there is a metrics line for each step with its nine keys",
      str(lines[:1]))
check([line["step"] for line in steps] == list(range(1, 21)) and [line["epoch"] for line in steps] == [1] * 10 + [2] * 10,
      "steps and epochs are counted from 1")
tests = [line for line in lines if "test_accuracy" in line]
check(len(tests) == 2 and all(line["test_rows"] == 400 for line in tests), "every epoch ends with an evaluation on all rows of the test set")
ranks = lines[-1].get("ranks", [])
check(len(ranks) == 2 and all({"rank", "loss", "accuracy", "parameters", "peak_bytes", "step_s", "comm_bytes", "comm_s"} <=
                              set(rank) for rank in ranks), "the last line has a summary for each rank", str(lines[-1]))

spoken = run(2, "--tp", 2, *SMALL, "--steps", 1, LANG="fr_FR.UTF-8", TEXTDOMAINDIR=f"{BUILD}/locale").stdout
check("époques" in spoken and max(map(len, spoken.splitlines())) <= 80, "in French, too, what a run prints has at most 80 columns", spoken)

# A block has 4 all-reduces of B S H. The embedding has a gather of B S H, and the classifier an
# all-reduce of B 2 forward and of B H backward. A number has 4 bytes. A rank's share of an
# all-reduce of N over n ranks is 2 (n-1) N / n, of a gather (n-1) N / n.
B, S, H, L = 8, 32, 32, 2
expected = 4 * (4 * L * B * S * H + B * S * H // 2 + 2 * B + B * H)
check(steps[3]["comm_bytes"] == expected, "the bytes of a step match the formula",
      f"{steps[3]['comm_bytes']}, expected {expected}")

serial = metrics_of(1, *SMALL, "--samples", 80)[-1]["ranks"][0]
check(ranks[0]["parameters"] < 0.6 * serial["parameters"] and ranks[0]["peak_bytes"] < serial["peak_bytes"],
      "two ranks hold about half of the parameters each, and need less memory")

last = lines[-1]
check(abs(last["model_flops_per_s"] * ranks[0]["step_s"] / last["model_flops"] - 1) < 1e-6 and last["mfu"] > 0 and
      abs(2 * last["tokens_per_s_a_rank"] * ranks[0]["step_s"] / (8 * 32) - 1) < 1e-6,
      "its rates are those of the median step, and it has the share of the peak", str({**last, "ranks": "..."}))

table = run(2, "--tp", 2, *SMALL, "--steps", 2).stdout
check(all(words in table for words in ("tokens/s, ", "GFLOP/s of the model, ", "of the peak (MFU)")), "the run ends with its speed", table)
check(all(word in table for word in ("rank", "loss", "accuracy", "parameters", "peak MB", "step", "MB sent", "comm", "exposed")),
      "the run ends with a table that has one row per rank", table)
learned = metrics_of(1, "--layers", 1, "--hidden-dim", 64, "--heads", 4, "--batch-size", 16, "--seq", 48, "--lr", 2e-3,
                     "--epochs", 2)[-1]["ranks"][0]["accuracy"]
check(learned > 0.75, "the committed reviews are learnt", f"test accuracy {learned}")

untested = run(1, *SMALL, "--steps", 1, "--test", "none").stdout
check("evaluating" in table and "evaluating" not in untested, "TEST=none runs no evaluation", untested)
check(re.search("\n *test +parameters", table) and re.search("\n *training +parameters", untested), "the last table says whose its losses are", untested)

for every, terminal in ((1, {}), (1, {"BALISE_PROGRESS": "1"}), (4, {})):
    with tempfile.TemporaryDirectory() as folder:
        shown = run(2, "--tp", 2, *SMALL, "--steps", 9, "--print", every, "--metrics", f"{folder}/m.jsonl", **terminal).stdout
        with open(f"{folder}/m.jsonl", encoding="utf-8") as file:
            written = [f"{line['step']} {line['loss']:.6f}" for line in map(json.loads, file) if "step" in line]
    printed = [" ".join(found) for found in re.findall(r"^step (\d+)/9 .* loss ([\d.]+) ", shown, re.M)]
    check(printed == written[every - 1::every] and "\r" not in shown,
          f"PRINT={every} prints the loss of each step that it divides once, {'on a terminal' if terminal else 'in a pipe'}", shown)

mapped = run(4, "--tp", 2, *SMALL, "--steps", 1, "--map", 1).stdout
check(all(f"rank {r}: node" in mapped and f"tp {r % 2}, dp {r // 2}" in mapped for r in range(4)),
      "MAP=1 prints the node and the degrees of each rank", mapped[:600])
checked = run(4, "--tp", 2, *SMALL, "--steps", 4, "--check", 2)
check(checked.returncode == 0, "CHECK finds that weights that should be equal on all ranks are", checked.stderr)


def with_mpirun(script, *terminal):
    """A run whose mpirun is this shell script; with script(1), on a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "mpirun"), "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
            os.fchmod(file.fileno(), 0o755)
        path = f"{folder}:{os.environ['PATH']}"
        return subprocess.run([*terminal, shlex.join(command(1)), "/dev/null"], cwd=ROOT, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True) if terminal else run(1, PATH=path)


ended = [with_mpirun("exit 3").returncode for _ in range(10)]
check(ended == [3] * 10, "a fake mpirun that ends at once ends the run with its status", str(ended))
done = with_mpirun("echo 'mpirun noticed that process rank 1 with PID 9 on node n exited on signal 25 (File size limit exceeded).' >&2; exit 153")
check(done.returncode == 153 and done.stderr.startswith("error: rank 1 was killed by signal 25 (XFSZ)\n  HINT: ulimit -f limits"),
      "if a file is larger than ulimit -f, the hint says so", done.stderr)
done = with_mpirun("exit 137")
check(done.returncode == 137 and done.stderr.startswith("error: the run was ended by signal 9 (KILL)\n  HINT: KILL: did the machine run out of memory?"),
      "a fake mpirun that names no rank leaves the signal, with its hint", done.stderr)
done = with_mpirun(r"printf '\r[##..] 3/9\033[A\n'; exit 137", "script", "-qec")
check("3/9\033[A\n\nerror: " in done.stdout.replace("\r", ""), "on a terminal, a fake mpirun's error begins a line of its own, below the bar", repr(done.stdout[-300:]))

with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    path = os.path.join(folder, "metrics.jsonl")
    job = subprocess.Popen(command(2, "--tp", 2, *SMALL, "--epochs", 1000, "--test", "", "--metrics", path), cwd=ROOT,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    while job.poll() is None and not (os.path.exists(path) and os.path.getsize(path) > 1000):
        time.sleep(0.05)
    if job.returncode is None: # otherwise the output shows why the run has ended
        os.kill(job.pid, signal.SIGINT)
    output, _ = job.communicate(timeout=300)
    kept = []
    if os.path.exists(path):
        with open(path) as file:
            kept = [json.loads(line) for line in file]
check(job.returncode == 0 and "interrupted" in output, "Ctrl-C ends all ranks after a step, with the table", output[-600:])
check(len(kept) > 3 and kept[-1]["interrupted"] is True, "metrics written before Ctrl-C are kept, and the summary follows")



def interrupted_on_a_terminal():
    """What a run prints on a terminal on which Ctrl-C is pressed, and its status."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        words = command(2, "--tp", 2, *SMALL, "--epochs", 1000, "--test", "")
        os.execvp(words[0], words)
    shown, pressed, end = b"", False, time.time() + 120
    try:
        while time.time() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                shown += os.read(terminal, 4096)
            if not pressed and shown.count(b"tok/s") > 2:
                pressed = os.write(terminal, b"\x03")
    except OSError: # the terminal of a run that has ended
        pass
    os.close(terminal)
    return shown.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


shown, status = interrupted_on_a_terminal()
check("tok/s" in shown, "a terminal shows how far a run is", shown[-600:])
check(status == 0 and "interrupted; results so far" in shown and "peak MB" in shown, "Ctrl-C on a terminal, too", f"status {status}: {shown[-600:]}")

# Interrupts an evaluation that takes much longer than a step.
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    path, saved = os.path.join(folder, "metrics.jsonl"), os.path.join(folder, "saved")
    large = ["--layers", 4, "--hidden-dim", 256, "--heads", 4, "--batch-size", 6, "--seq", 256]
    job = subprocess.Popen(command(3, "--tp", 1, *large, "--samples", 6, "--epochs", 2, "--metrics", path, "--save", saved), cwd=ROOT,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    output = ""
    while "evaluating" not in output and (line := job.stdout.readline()):
        output += line
    time.sleep(0.2)
    os.kill(job.pid, signal.SIGTERM)
    rest, _ = job.communicate(timeout=300)
    output += rest
    with open(path) as file:
        kept = [json.loads(line) for line in file]
    check(job.returncode == 0 and "interrupted" in output and not any("test_accuracy" in line for line in kept),
          "a signal ends an evaluation between two of its batches, with the table", output[-600:])
    check(kept[-1].get("interrupted") is True and "step-000001" in os.listdir(saved), "and a checkpoint",
          str(os.listdir(saved)))


def ranks_of(job):
    """The processes of a run's ranks, by rank."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                environment = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if environment.get(b"THIS_TEST") == job.encode() and words[0].endswith(b"/train") and b"OMPI_COMM_WORLD_RANK" in environment:
            found[int(environment[b"OMPI_COMM_WORLD_RANK"])] = int(process)
    return found


def begun(name, **environment):
    """A run of two ranks that trains."""
    process = subprocess.Popen(command(2, "--tp", 2, *SMALL, "--epochs", 100000, "--test", ""), cwd=ROOT, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "THIS_TEST": name, **environment})
    while not process.stdout.readline().startswith("step "):
        pass
    return process


def shared_by(process):
    """The folder of the ranks' shared memory."""
    with open(f"/proc/{process}/maps", encoding="utf-8") as file:
        return next((line.split("/")[3] for line in file if "/dev/shm/balise-train." in line), "")


name = f"killed-{os.getpid()}"
process = begun(name)
mine = shared_by(ranks_of(name)[1])
os.kill(ranks_of(name)[1], signal.SIGKILL)
words = process.communicate(timeout=120)[1]
check(process.returncode == 137 and re.search(r"(rank 1 was killed|the run was ended) by signal 9 \(KILL\)", words) and words.count("error:") == words.count("HINT:") == 1,
      "a rank that is killed is named, with the signal", f"status {process.returncode}\n{words}")
check(mine != "" and not os.path.exists(f"/dev/shm/{mine}"), "and leaves nothing in /dev/shm", str(mine))


# A run of which every process is killed, and one that still trains when the next one begins.
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    killed, running = (begun(f"{kind}-{os.getpid()}", TMPDIR=folder) for kind in ("swept", "kept"))
    left, used = shared_by(ranks_of(f"swept-{os.getpid()}")[1]), shared_by(ranks_of(f"kept-{os.getpid()}")[1])
    os.kill(killed.pid, signal.SIGKILL)
    for rank in ranks_of(f"swept-{os.getpid()}").values():
        os.kill(rank, signal.SIGKILL)
    killed.communicate(timeout=120)
    time.sleep(1)
    paths = [f"/dev/shm/{left}", f"/dev/shm/{used}", *glob.glob(f"{folder}/balise-train.*")]
    for path in filter(os.path.exists, paths):
        os.utime(path, times=(time.time() - 120,) * 2)
    run(1, *SMALL, "--steps", 1, "--test", "", TMPDIR=folder)
    kept = [path for path in paths if os.path.exists(path)]
    check(len(kept) == 2 and kept[0].endswith(used), "a run removes the files that a killed one left, and no others", f"{paths}\n{kept}")
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=120)


def tells_stopped(stopped, watching):
    """Tests what a run prints about a stopped rank. SIGALRM to another rank replaces a minute of
    waiting."""
    name = f"stopped-{os.getpid()}-{stopped}"
    process = begun(name)
    process.stdout.readline()  # every rank has taken a step
    ranks = ranks_of(name)
    os.kill(ranks[stopped], signal.SIGSTOP)
    while subprocess.run(["ps", "-o", "stat=", str(ranks[stopped])], capture_output=True, text=True, check=False).stdout[:1] != "T":
        time.sleep(0.05)
    os.kill(ranks[watching], signal.SIGALRM)
    said = ""
    while "HINT" not in said and (line := process.stderr.readline()):
        said += line
    os.kill(ranks[stopped], signal.SIGCONT)
    os.kill(process.pid, signal.SIGINT)
    said += process.communicate(timeout=120)[1]
    check(f"rank {stopped} is stopped (process {ranks[stopped]})" in said and f"HINT: kill -CONT {ranks[stopped]} " in said and
          "deadlocked" not in said, f"a run without progress names rank {stopped}, which is stopped", said)
    check(process.returncode == 0, "and continues when that rank does", f"status {process.returncode}\n{said}")


tells_stopped(1, 0)
tells_stopped(0, 1)

if subprocess.run(["setpriv", "--pdeathsig", "TERM", "true"], capture_output=True, check=False).returncode:
    print("skip - a run ends if its make is killed: there is no setpriv --pdeathsig")
else:
    name = f"orphans-{os.getpid()}"
    parent = subprocess.Popen(["bash", "-c", '"$@" & wait', "bash", *command(2, "--tp", 2, *SMALL, "--epochs", 100000, "--test", "")],
                              cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "THIS_TEST": name})
    until = time.time() + 120
    while len(ranks_of(name)) < 2 and time.time() < until:
        time.sleep(0.1)
    time.sleep(2)
    parent.kill()
    parent.wait()
    until = time.time() + 120
    while ranks_of(name) and time.time() < until:
        time.sleep(0.2)
    check(not ranks_of(name), "a run ends if its make is killed", str(ranks_of(name)))
    for process in ranks_of(name).values():
        os.kill(process, signal.SIGKILL)
