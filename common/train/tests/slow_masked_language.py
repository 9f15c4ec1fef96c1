#!/usr/bin/python3
"""TASK=mlm on SQuAD's paragraphs (REAL_DATA): the loss falls below the entropy of single tokens.
That shows that the model recognises visible tokens, not that it uses the context."""
import collections
import math
import os
import subprocess

from runs import BUILD, check, losses_of

REAL = os.environ.get("REAL_DATA", "")
TEXT, VOCABULARY = f"{REAL}/squad/contexts.txt", f"{REAL}/bert-base-uncased/vocab.txt"
if not os.path.exists(TEXT):
    print("skip - masked tokens of SQuAD's paragraphs: REAL_DATA names no folder with squad/contexts.txt")
    raise SystemExit

with open(TEXT, "rb") as file:
    said = subprocess.run([f"{BUILD}/tokenize", "--vocab", VOCABULARY, "--text"], stdin=file, capture_output=True, check=True)
counts = collections.Counter(said.stdout.split())
entropy = -sum(n / counts.total() * math.log(n / counts.total()) for n in counts.values())

losses = losses_of(2, "--task", "mlm", "--data", TEXT, "--vocab", VOCABULARY, "--test", "", "--epochs", 4, "--steps", 120, "--threads", 1,
                   "--layers", 2, "--hidden-dim", 64, "--heads", 4, "--positions", 1, "--seq", 64, "--batch-size", 64, "--dropout", 0,
                   "--lr", 4e-3, "--warmup", 20, "--decay", 320, "--clip", 1)
reached = sum(losses[-20:]) / 20
check(reached < entropy - 0.1, "in 120 steps, the loss of masked tokens falls below the entropy of single tokens",
      f"{reached} in the last 20 steps, the entropy is {entropy}")
print(f"# the last 20 of 120 steps have the loss {reached:.3f}; the entropy is {entropy:.3f}")
