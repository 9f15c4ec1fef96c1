#!/usr/bin/python3
"""The main task on real input: tensor-parallel BERT on IMDb reviews (REAL_DATA), and BERT-Base's
memory on one and two ranks."""
import os

from runs import check, losses_of, metrics_of

REAL = os.environ.get("REAL_DATA", "")
if not os.path.exists(f"{REAL}/imdb/train.csv"):
    print("skip - training on real reviews: REAL_DATA names no folder with imdb/train.csv")
    raise SystemExit
DATA = ["--data", f"{REAL}/imdb/train.csv", "--vocab", f"{REAL}/bert-base-uncased/vocab.txt"]
TEST = ["--test", f"{REAL}/imdb/test.csv"]
SMALL = [*DATA, "--layers", 2, "--hidden-dim", 128, "--heads", 4, "--seq", 128, "--batch-size", 32, "--lr", 1e-3]

lines = metrics_of(2, *SMALL, *TEST, "--epochs", 1, "--warmup", 12, "--decay", 156)
reached = [line["test_accuracy"] for line in lines if "test_accuracy" in line][-1]
check(reached >= 0.77, "two ranks reach a test accuracy of 0.77 on real reviews", f"{reached}")

FEW = [*SMALL, "--test", "", "--steps", 40, "--threads", 1]
serial = losses_of(1, *FEW)


def apart(losses):
    return max(abs(x - y) for x, y in zip(serial, losses))


moved = max(apart(losses_of(1, *FEW, "--perturb", k)) for k in (1, 2, 3))
two_ranks = apart(losses_of(2, *FEW))
check(len(serial) == 40 and 0 < moved and two_ranks <= 8 * moved, "the loss of each step equals that of one rank",
      f"{two_ranks} apart, {8 * moved} allowed")

BASE = [*DATA, "--test", "", "--model", "base", "--seq", 512, "--batch-size", 8, "--steps", 2]
one, two = [metrics_of(ranks, *BASE)[-1]["ranks"][0]["peak_bytes"] for ranks in (1, 2)]
check(two < 0.62 * one, "BERT-Base at SEQ 512 trains on one rank, and on two that need little more than half the memory each",
      f"{one / 1e6:.0f} MB and {two / 1e6:.0f} MB")
