#!/usr/bin/env python3
"""make bench: what it refuses, what SAVE keeps, what COMPARE calls a difference. No time is judged."""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys

ROOT, BUILD = os.environ["ROOT"], os.environ["BUILD"]
sys.path.insert(0, os.path.join(ROOT, "common/train/bench"))
import growth
import rows
import steps
import traffic

os.chdir(ROOT)
failed = 0


def check(sentence, good, seen=""):
    global failed
    print(("ok - " if good else "not ok - ") + sentence)
    if not good:
        failed += 1
        print("    " + str(seen).replace("\n", "\n    "))


def refused(sentence, word, **given):
    run = subprocess.run(["common/train/bench/bench.py", BUILD], env=dict(os.environ, **given), capture_output=True, text=True, check=False)
    check(sentence, run.returncode == 2 and run.stderr.startswith("error: ") and "HINT: " in run.stderr and word in run.stderr
          and not run.stdout, run.stdout + run.stderr)


refused("a section that does not exist is refused", "'kernel'", ONLY="kernel")
refused("rounds that are no number are refused", "'many'", ROUNDS="many")
refused("a peer that is not known is refused", "'jax'", VS="jax")
refused("a file to compare with that is not there is refused before anything is measured", "No such file", COMPARE="none/kept.json")

work = os.path.join(BUILD, "bench-test")
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
kept = os.path.join(work, "kept.json")


def row(name, values, lower=True):
    return rows.Row("step", name, "ms", values, lower=lower)


rows.save(kept, {"machine": "a"}, [row("slower", [10, 11]), row("faster", [10, 11]), row("noisy", [10, 15]), row("rate", [10, 11], False)])
with contextlib.redirect_stdout(io.StringIO()) as said:
    rows.compare(kept, {"machine": "a"}, [row("slower", [12, 13]), row("faster", [8, 9]), row("noisy", [14, 19]), row("rate", [12, 13], False),
                                          row("new", [1])])
lines = {line.split()[1]: line for line in said.getvalue().splitlines() if line.startswith("  step:")}
check("a figure whose range lies above is worse, below better, and one whose range overlaps neither",
      lines["slower"].endswith("worse") and lines["faster"].endswith("better") and lines["noisy"].endswith("%"), said.getvalue())
check("of a rate more is better", lines["rate"].endswith("better"), said.getvalue())
check("what was not measured before is compared with nothing", "new" not in lines, said.getvalue())
try:
    rows.save(os.path.join(work, "none", "kept.json"), {}, [])
    check("a file that cannot be written is an error", False, "nothing was said")
except SystemExit as end:
    check("a file that cannot be written is an error", end.code == 2 and os.listdir(work) == ["kept.json"], os.listdir(work))
with open(kept, encoding="utf-8") as file:
    check("SAVE keeps every value", json.load(file)["rows"][2]["values"] == [10, 15])

steps.MODELS["tiny"] = (1, 24, 2, 16, 4, 4)
steps.write_data(work)
run = steps.run_kit(BUILD, work, "tiny", "2x2")
check("a step is profiled, and its memory told", len(run["seconds"]) == 4 and run["resident_bytes"] > run["tensor_bytes"] > 0
      and {"linear", "attention", "optimiser"} <= {one["what"] for one in run["profile"]}, run)
# The cost on paper, where the measured steps are it exactly: the fit gives it back.
middle = growth.model_of(growth.BASE)
cluster = growth.cost.Cluster(gemm=2e11, attention=1e11, stream=2e10, optimiser=3e10, near=growth.cost.Link(0, 1), far=growth.cost.Link(0, 1))
tokens = middle.batch * middle.seq
in_gemm = 3 * 24 * tokens * middle.layers * middle.hidden ** 2 / cluster.gemm
parts = growth.cost.step(cluster, middle, 1, 1)
fitted = growth.calibrated(middle, [{"what": what, "forward_ms": 1e3 * seconds, "backward_ms": 0} for what, seconds in
                                    (("linear", in_gemm), ("attention", parts["compute"] - in_gemm), ("optimiser", parts["optimiser"]),
                                     ("gelu", parts["element-wise"]))])
check("rates on paper are those of the profile", all(abs(getattr(fitted, name) / getattr(cluster, name) - 1) < 1e-9
                                                    for name in ("gemm", "attention", "stream", "optimiser")), fitted)
check("what doubles when a size doubles grows with its first power, what quadruples with its second",
      growth.slope([1, 2, 4], [3, 6, 24]) == ["", "1.00", "2.00"], growth.slope([1, 2, 4], [3, 6, 24]))
spent = sum(one["forward_ms"] + one["backward_ms"] for one in run["profile"]) * 2 / 1e3
check("what the profile adds up is no more than the steps took", 0 < spent <= sum(run["seconds"][steps.WARM_UP:]), (spent, run["seconds"]))
sent = traffic.train(BUILD, work, 2, 2, 1, (2, 128, 4, 64, 12, 2))[-1]["ranks"]
check("bytes over tp are those of the formula", sum(rank["comm_bytes_tp"] for rank in sent) / 2 == traffic.formula(2, 1, 12, 0)[0])
sys.exit(failed > 0)
