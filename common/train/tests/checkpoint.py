#!/usr/bin/python3
"""A run that resumes from a checkpoint continues as if it had never stopped: bit for bit in the
same layout, up to rounding in another (within the limits of layouts.py)."""
import os
import signal
import subprocess
import tempfile
import time

from checkpoints import SMALL, contents, curve, losses, newest, succeed, tool, train, undivided
from runs import ROOT, check, command

LAYOUTS = [(1, 1, 1), (2, 2, 1), (4, 4, 1), (1, 1, 1)]  # (ranks, tp, pp)
REPLICAS = [(1, 1, 1), (2, 1, 1), (4, 2, 1), (2, 2, 1)]  # some with several replicas
PIPELINES = [(2, 1, 2), (4, 2, 2), (2, 1, 1), (4, 1, 2)]


def in_pieces(folder, metrics, layouts, *options):
    """Trains to step 4, 8, ..., each piece in the next layout."""
    for piece, (ranks, tp, pp) in enumerate(layouts):
        succeed(ranks, "--tp", tp, "--pp", pp, "--test", "", *options, "--steps", 4 * (piece + 1), "--save", folder, "--resume", folder,
                "--metrics", metrics)
    return losses(metrics)


def same_layout(folder):
    """Trains three epochs of 16 steps with evaluations, in pieces: the first ends within an epoch,
    the second at the end of one, the third by Ctrl-C."""
    run = ["--tp", 2, "--epochs", 3, "--clip", 1, "--warmup", 10]
    alone, parted = f"{folder}/alone.jsonl", f"{folder}/parted.jsonl"
    one = succeed(2, *run, "--metrics", alone, "--save", f"{folder}/alone", "--every", 1)
    saved = ["--save", f"{folder}/parted", "--resume", f"{folder}/parted", "--every", 5, "--metrics", parted]
    first = succeed(2, *run, "--steps", 7, *saved)
    check("holds no checkpoint yet: starts from scratch" in first.stdout,
          "the first run with the same SAVE and RESUME says that it starts from scratch", first.stdout)
    names = sorted(os.listdir(f"{folder}/parted"))
    check(names == [".lock", "step-000005", "step-000007"], "EVERY=n saves every n steps and at the end", str(names))
    with open(parted, "a", encoding="utf-8") as file:
        file.write('{"step":8,"loss":0,"epoch":1}\n{"step":9,"lo')  # as if killed while writing
    second = succeed(2, *run, "--steps", 16, *saved)
    check("continues after step 7" in second.stdout, "a run that resumes says where", second.stdout)
    interrupt(command(2, *SMALL, *run, *saved), parted)
    last = succeed(2, *run, *saved)
    check(curve(parted) == curve(alone), "at the same layout, a run in four pieces equals one run bit for bit, evaluations included",
          f"{curve(parted)}\n{curve(alone)}")
    weights = [undivided(newest(f"{folder}/{name}"), state) for state in ("weight", "m", "v")
               for name in ("alone", "parted")]
    check(weights[0] == weights[1] and weights[2] == weights[3] and weights[4] == weights[5],
          "and ends with the same weights and the same state of AdamW")
    names = sorted(os.listdir(f"{folder}/alone"))
    check(names == [".lock", "step-000047", "step-000048"], "the last two checkpoints are kept", str(names))
    again = succeed(2, *run, *saved)
    check(table_of(again) == table_of(last) == table_of(one) and curve(parted) == curve(alone),
          "a finished run is evaluated again, and ends with the same table", again.stdout)


def epoch_in_two_pieces(folder):
    """Without a test set, the final table shows averages of the last epoch's training, so
    checkpoints have them too."""
    run = [2, "--tp", 2, "--test", "", "--epochs", 2]
    one = table_of(succeed(*run))
    succeed(*run, "--steps", 25, "--save", f"{folder}/averages")
    two = table_of(succeed(*run, "--resume", f"{folder}/averages"))
    check(one == two and len(one) == 2, "the averages of an epoch trained in two pieces equal those of the whole epoch", f"{one}\n{two}")


def table_of(done):
    return [line.split()[:3] for line in done.stdout.splitlines() if len(line.split()) == 9 and line.split()[0] in ("0", "1")]


def interrupt(words, metrics):
    before = os.path.getsize(metrics)
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          start_new_session=True) as job:
        while os.path.getsize(metrics) < before + 500 and job.poll() is None:
            time.sleep(0.01)
        os.kill(job.pid, signal.SIGINT)
        output, _ = job.communicate(timeout=300)
    check(job.returncode == 0 and "interrupted" in output, "Ctrl-C ends a run that saves", output[-600:])


def interrupted_while_evaluating(folder):
    """Trains on 8 rows and evaluates on 400, so nearly all time goes into evaluations."""
    words = command(2, *SMALL, "--tp", 2, "--samples", 8, "--batch-size", 8, "--epochs", 1000, "--save", f"{folder}/evaluated")
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as job:
        for line in job.stdout:
            if line.startswith("evaluating"):
                break
        os.kill(job.pid, signal.SIGINT)
        output, _ = job.communicate(timeout=300)
    check(job.returncode == 0 and "interrupted" in output and any(name.startswith("step-") for name in os.listdir(f"{folder}/evaluated")),
          "Ctrl-C during an evaluation saves too", output[-600:])


def other_layouts(folder):
    for name, options in {"AdamW with eps 1e-4, dropout 0.1": ["--eps", 1e-4],
                          "SGD": ["--optimizer", "sgd", "--lr", 0.3, "--weight-decay", 0]}.items():
        def alone(*more, options=options):
            path = f"{folder}/serial.jsonl"
            succeed(1, "--test", "", *options, "--steps", 16, "--metrics", path, *more)
            return losses(path)
        serial = alone()
        moved = max(apart(serial, alone("--perturb", k)) for k in (1, 2, 3))
        for number, layouts in enumerate((LAYOUTS, REPLICAS, PIPELINES)):
            sentence = f"a run that resumes at the layouts {layouts} (ranks, tp, pp) has the losses of one rank ({name})"
            place = f"{folder}/{name[:3]}-{number}"
            parted = in_pieces(place, place + ".jsonl", layouts, *options)
            check(len(parted) == 16 and 0 < moved and apart(serial, parted) <= 8 * moved, sentence,
                  f"{apart(serial, parted):.3g} apart, {8 * moved:.3g} allowed\n{serial}\n{parted}")


def same_grid(folder):
    sentence = "at two replicas of two stages, a run in two pieces equals one run bit for bit"
    alone = f"{folder}/replicas.jsonl"
    succeed(4, "--dp", 2, "--pp", 2, "--test", "", "--steps", 8, "--metrics", alone)
    parted = in_pieces(f"{folder}/replicas", f"{folder}/replicas-parted.jsonl", [(4, 1, 2), (4, 1, 2)])
    check(parted == losses(alone) and len(parted) == 8, sentence, f"{losses(alone)}\n{parted}")


def apart(a, b):
    return max((abs(x - y) for x, y in zip(a, b)), default=float("inf"))


def partial_folders(folder):
    place = f"{folder}/left"
    succeed(2, "--tp", 2, "--test", "", "--steps", 2, "--save", place)
    half = f"{place}/.step-000003.partial"
    os.mkdir(half)
    with open(f"{half}/rank-0-of-2.safetensors", "wb") as file:
        file.write(b"half of it")
    before = contents(newest(place))
    succeed(2, "--tp", 2, "--test", "", "--steps", 3, "--save", place, "--resume", place)
    check(sorted(os.listdir(place)) == [".lock", "step-000002", "step-000003"] and before == contents(f"{place}/step-000002"),
          "a checkpoint that a killed run left half-written is removed, and the one before it is used", str(os.listdir(place)))
    info = tool("info", place).stdout
    check("step-000003" in info and "[968,64]" in info and "shard(" in info and "tensor parallel 2, pipeline parallel 1: 2 files" in info,
          "checkpoint info lists step, layout, names, shapes and placements", info)
    older = succeed(2, "--tp", 2, "--test", "", "--steps", 3, "--resume", f"{place}/step-000002")
    check("continues after step 2" in older.stdout, "RESUME may name one checkpoint of several", older.stdout)


FSYNC = """#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void note(const char *path)
{
    FILE *log = fopen(getenv("FSYNC_LOG"), "a");
    const char *folder = strrchr(path, '/');
    fprintf(log, "%s\\n", folder ? folder + 1 : path);
    fclose(log);
}
int fsync(int fd)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    readlink(link, path, sizeof path - 1);
    note(path);
    return (int)syscall(SYS_fsync, fd);
}
int linkat(int from, const char *file, int to, const char *path, int flags)
{
    note(path);
    return (int)syscall(SYS_linkat, from, file, to, path, flags);
}
"""


def on_the_disk(folder):
    """Files are synced to disk in the right order."""
    library, log = f"{folder}/fsync.so", f"{folder}/fsync.log"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=FSYNC, text=True, check=True)
    told = dict(os.environ, LD_PRELOAD=library, FSYNC_LOG=log, ASAN_OPTIONS="verify_asan_link_order=0")
    done = train(1, "--tp", 1, "--test", "", "--steps", 2, "--metrics", f"{folder}/told.jsonl", "--save", f"{folder}/told",
                 "--every", 1, env=told)
    with open(log, encoding="utf-8") as file:
        lines = file.read().splitlines()
    names = [name.partition(".json")[0] for name in lines if name == "told.jsonl" or name.startswith("index.json")]
    # If the file system supports unnamed files, the index gets its name once it is on disk.
    synced = all(before.startswith("#") for before, name in zip(lines, lines[1:]) if name.startswith("index.json")) or "#" not in str(lines)
    check(done.returncode == 0 and synced and names == ["told", "index", "told", "index", "told"],
          "the metrics are synced to disk before the checkpoint of their step, and at the end", f"{names}\n{done.stderr}")


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
    on_the_disk(temporary)
    same_layout(temporary)
    epoch_in_two_pieces(temporary)
    interrupted_while_evaluating(temporary)
    same_grid(temporary)
    other_layouts(temporary)
    partial_folders(temporary)
