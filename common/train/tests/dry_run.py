#!/usr/bin/python3
"""make check: large layouts need little memory, and what is wrong is one error, before or after the
table. bytes_and_memory.py compares it with runs."""
import os
import resource
import subprocess
import tempfile

from runs import BUILD, ROOT, check

SEVEN_BILLION = ("--model", "llama", "--hidden-dim", 4096, "--layers", 32, "--heads", 32, "--seq", 2048, "--vocab-size", 32000, "--batch-size", 1024)


def played(ranks, *options):
    words = ["common/train/dry_run.sh", ranks, "solutions", 21, f"{BUILD}/check", *options]
    return subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True)


def rows(done):
    """The words of the rows of both tables: each begins with a rank."""
    return [line.split() for line in done.stdout.splitlines() if line[:4].strip().isdigit()]


done = played(1024, *SEVEN_BILLION, "--tp", 8, "--pp", 16, "--micro", 32)
check(done.returncode == 0 and "6582.18 M parameters" in done.stdout and [int(row[0]) for row in rows(done)] == 2 * list(range(0, 1024, 64)),
      "a LLaMA of 7 billion parameters on 1024 ranks has a row for each stage", done.stdout + done.stderr)
check(all(len(line) <= 80 for line in done.stdout.splitlines()), "every line fits 80 columns", done.stdout)
large = played(1024, "--model", "large", "--batch-size", 1024, "--zero", 1, "--vocab-size", 30522)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
check(large.returncode == 0 and most < 1000, "a dry run of the largest models takes less than 1 GB", f"{most} MB\n{large.stderr}")
whole, shared = (float(rows(played(1024, "--model", "large", "--batch-size", 1024, "--zero", zero))[1][4]) for zero in (0, 1))
check(0 < shared < whole / 500, "with ZERO=1, each of 1024 replicas has its part of the optimiser's state", f"{shared} MB, {whole} MB without")

gpipe, other = (rows(played(4, "--pp", 4, "--micro", 8, "--layers", 4, "--schedule", schedule)) for schedule in ("gpipe", "1f1b"))
check([row[3] for row in gpipe[:4]] == 4 * ["8"] and [row[3] for row in other[:4]] == ["4", "3", "2", "1"],
      "GPipe has all micro-batches in flight, 1F1B as many as there are stages from this one to the last", f"{gpipe}\n{other}")
check([row[0] for row in rows(played(8, "--tp", 2, "--pp", 2, "--rank", 7))[:3]] == ["0", "4", "7"], "RANK=7 is a row of its own")
few, all_rows = (float(rows(played(2, "--vocab-size", 30522, "--seq", seq))[0][6]) for seq in (16, 2048))
check(0 < few < all_rows / 4, "replicas send no more rows of a large table than there are tokens in a step", f"{few} MB, {all_rows} MB")

done = played(4, "--tp", 2, "--mem", "2M")
check(done.returncode == 2 and len(rows(done)) == 2 and "rank 0 needs" in done.stderr and "and MEM allows 2.1 MB" in done.stderr and "RECOMPUTE=block" in done.stderr,
      "a rank that needs more than MEM is an error below the table, with the settings that reduce what it has most of", done.stdout + done.stderr)
check("ZERO=1" in played(4, "--model", "base", "--seq", 16, "--batch-size", 4, "--mem", "2M").stderr, "if that is the model, other settings reduce it")
for options, words in ((("--tp", 3), "NTASKS=4 cannot be split by TP=3"), (("--tp", 4, "--heads", 2), "2 heads cannot be split"), (("--rank", 4), "RANK=4, but the last rank is 3"),
                       (("--vocab", "/none"), "the tokenizer cannot be opened"), (("--pp", 4, "--layers", 2), "PP=4")):
    done = played(4, *options)
    check(done.returncode == 2 and done.stderr.count("error:") == 1 and words in done.stderr and "HINT" in done.stderr and not rows(done),
          f"{' '.join(map(str, options))} is one error, with a hint", done.stdout + done.stderr)
for options in (("--trace", "/tmp/t.json"), ("--profile", 1), ("--save", "/none"), ("--data", "/none")):
    done = played(2, *options)
    check(done.returncode == 0 and len(rows(done)) == 2, f"{' '.join(map(str, options))} changes nothing", done.stdout + done.stderr)
check(played(100000, "--batch-size", 100000).returncode == 0, "a layout may have more ranks than any cluster has")
done = played("none")
check(done.returncode == 2 and "NTASKS cannot be 'none'" in done.stderr, "NTASKS that is no number is refused", done.stderr)
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/run.jsonl", "w", encoding="utf-8") as file:
        file.write('{"step":1,"comm_bytes":0}\n')
    played(1, "--metrics", file.name)
    with open(file.name, encoding="utf-8") as file:
        check(file.read() == '{"step":1,"comm_bytes":0}\n', "the metrics of a run stay as they are")
    full = subprocess.run(["bash", "-c", f"ulimit -f 0; exec common/train/dry_run.sh 1 solutions 21 {BUILD}/check --counts {folder}/a.jsonl"], cwd=ROOT,
                          capture_output=True, text=True)
    check(full.returncode == 2 and "metrics" in full.stderr, "metrics that cannot be written are an error", full.stderr)
