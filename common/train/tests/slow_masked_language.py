#!/usr/bin/python3
"""TASK=mlm on SQuAD's paragraphs (REAL_DATA): the loss falls below the entropy of single tokens, so
the model uses more than how frequent each token is; and one loss at tp 1, tp 2 and dp 2."""
import collections
import math
import os
import subprocess

from layouts_apart import deviation
from runs import BUILD, check, losses_of

REAL = os.environ.get("REAL_DATA", "")
TEXT, VOCABULARY = f"{REAL}/squad/contexts.txt", f"{REAL}/bert-base-uncased/vocab.txt"
if not os.path.exists(TEXT):
    print("skip - masked tokens of SQuAD's paragraphs: REAL_DATA names no folder with squad/contexts.txt")
    raise SystemExit
REAL_TEXT = ["--task", "mlm", "--data", TEXT, "--vocab", VOCABULARY, "--test", "", "--epochs", 8, "--threads", 1, "--layers", 2,
             "--hidden-dim", 64, "--heads", 4, "--positions", 1, "--seq", 64, "--batch-size", 64, "--dropout", 0, "--lr", 8e-3,
             "--warmup", 20, "--decay", 320, "--clip", 1]

with open(TEXT, "rb") as file:
    said = subprocess.run([f"{BUILD}/tokenize", "--vocab", VOCABULARY, "--text"], stdin=file, capture_output=True, check=True)
counts = collections.Counter(said.stdout.split())
entropy = -sum(n / counts.total() * math.log(n / counts.total()) for n in counts.values())

losses = losses_of(2, *REAL_TEXT, "--steps", 300)
reached = sum(losses[-30:]) / 30
check(len(losses) == 300 and reached < entropy, "in 300 steps, the loss of masked tokens falls below the entropy of single tokens",
      f"{reached} at the end, the entropy is {entropy}")
print(f"# the last 30 steps have the loss {reached:.3f}; the entropy is {entropy:.3f}")

FEW = [*REAL_TEXT, "--steps", 10]
whole = losses_of(1, *FEW)
moved = max(2**-20, *(deviation(whole, losses_of(1, *FEW, "--perturb", k)) for k in (1, 2, 3)))
for layout in (("--tp", 2), ("--tp", 1, "--dp", 2)):
    parts = losses_of(2, *FEW, *layout)
    check(deviation(whole, parts) <= 8 * moved, f"the losses with {' '.join(map(str, layout))} are those of one rank",
          f"{deviation(whole, parts)} apart, {8 * moved} allowed")
