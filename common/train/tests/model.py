#!/usr/bin/env python3
"""make model: counts are those of the program, laws of the formulas hold, and the published weak scaling has its shape."""
import dataclasses
import json
import os
import re
import subprocess
import sys

ROOT, BUILD = os.environ["ROOT"], os.environ["BUILD"]
sys.path.insert(0, os.path.join(ROOT, "common/train/bench"))
import cost
import steps

os.chdir(ROOT)
failed = 0


def check(sentence, good, seen=""):
    global failed
    print(("ok - " if good else "not ok - ") + sentence)
    if not good:
        failed += 1
        print("    " + str(seen).replace("\n", "\n    "))


def said(**given):
    names = ("NTASKS", "TP", "MODEL", "LAYERS", "HIDDEN_DIM", "HEADS", "SEQ", "BATCH_SIZE", "CLUSTER")
    clean = {key: value for key, value in os.environ.items() if key not in names}
    return subprocess.run(["common/train/bench/model.py", BUILD], env=dict(clean, **given), capture_output=True, text=True, check=False)


def refused(sentence, word, **given):
    run = said(**given)
    check(sentence, run.returncode == 2 and run.stderr.startswith("error: ") and "HINT: " in run.stderr and word in run.stderr, run.stderr)


refused("a model that is not known is refused", "'huge'", MODEL="huge")
refused("heads that do not divide the hidden size are refused", "HEADS=7", HEADS="7")
refused("a number of ranks that is none is refused", "'four'", NTASKS="four")
refused("a cluster that nobody describes is refused", "No such file", CLUSTER="none.json")
refused("a layout that does not fit is refused", "no layout of 4 ranks", NTASKS="4", TP="3", CLUSTER="dgx-2h")

work = os.path.join(BUILD, "model-test")
steps.write_data(work)
small = cost.Model(3, 96, 4, 16, 8, steps.VOCABULARY)
for tp in (1, 2, 4):
    lines = steps.train(BUILD, work, tp, tp, 1, (3, 96, 4, 16, 8, 1), *steps.data_in(work))
    held = lines[-1]["ranks"][0]["parameters"]
    check(f"at tp={tp} a rank holds as many parameters as predicted, but for the arena's padding", 0 <= held - small.parameters(tp) < 16 * 40,
          (held, small.parameters(tp)))

link = cost.Link(1e-5, 1e9)
slow = cost.Cluster(1e12, 1e12, 1e11, 1e11, link, link)
check("one rank exchanges nothing", cost.all_reduce(link, 1, 1e6) == 0 and cost.step(slow, small, 1, 1)["over tp"] == 0
      and cost.step(slow, small, 1, 1)["over dp"] == 0)
check("a large all-reduce takes 2 (n-1)/n of its size over the bandwidth, a small one its latencies",
      abs(cost.all_reduce(link, 8, 1e12) / (2 * 7 / 8 * 1e3) - 1) < 1e-3 and abs(cost.all_reduce(link, 8, 4) / (2 * 3 * 1e-5) - 1) < 1e-3)
reader = dataclasses.replace(small, classifies=True)
check("where the first position alone is read, the last block's backward pass has the products of keys and values only",
      small.products(3) == (3 * 12 * 3, 9) and reader.products(3) == (12 * 7 + 4, 7), (small.products(3), reader.products(3)))
check("replicas sum the rows of a table that were used, and all of one that is used by half",
      reader.parameters(1) - reader.reduced(1) == (steps.VOCABULARY - 8 * 16) * 96
      and dataclasses.replace(reader, vocabulary=200).reduced(1) == dataclasses.replace(reader, vocabulary=200).parameters(1)
      and small.reduced(1) == small.parameters(1), reader.reduced(1))
split, whole = cost.step(slow, small, 4, 1), cost.step(slow, small, 1, 1)
check("tp divides the products, and leaves the norms whole", abs(4 * split["compute"] / whole["compute"] - 1) < 1e-9
      and split["element-wise"] > whole["element-wise"] / 4)
check("replicas divide the batch, not the optimiser", abs(4 * cost.step(slow, small, 1, 4)["compute"] / whole["compute"] - 1) < 1e-9
      and cost.step(slow, small, 1, 4)["optimiser"] == whole["optimiser"])
crowded = dataclasses.replace(slow, cores=2)
check("four ranks on two cores compute half as fast", cost.step(crowded, small, 4, 1)["compute"] == 2 * split["compute"])
hidden = dataclasses.replace(slow, hides=1.0)
check("what the backward pass hides is not waited for", cost.step(hidden, small, 1, 4)["over dp"] < cost.step(slow, small, 1, 4)["over dp"])

run = said(CLUSTER="dgx-2h", NTASKS="64", LAYERS="24", HIDDEN_DIM="2304", HEADS="24", SEQ="1024", BATCH_SIZE="64")
apart = [int(x) for x in re.findall(r"%\s+([+-]\d+)$", run.stdout, re.M)]
check("the weak scaling of Megatron-LM's paper is predicted within 12 points, on one node within 6",
      run.returncode == 0 and len(apart) == 8 and max(map(abs, apart)) <= 12 and max(map(abs, apart[:4])) <= 6, run.stdout + run.stderr)
with open("common/train/bench/clusters/dgx-2h.json", encoding="utf-8") as file:
    published = json.load(file)["one_gpu_tflops"]
one = re.search(r"one GPU: ([\d.]+) TFLOP/s", run.stdout)
check("and one GPU within 3 % of what it sustained", one and abs(float(one.group(1)) / published - 1) < 0.03, run.stdout)
check("the fastest of the layouts that fit is named", "fastest: tp=" in run.stdout, run.stdout)
sys.exit(failed > 0)
