"""The slides' numbers of bytes, operations and memory: the kit's own formulas, evaluated.

Times come from common/bench (pace.py), and sizes, operations and memory from make check (dry.py);
traffic is the budget in grader/labs, which the grader enforces.
"""
import functools
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GRADE = os.path.join(os.environ.get("BUILD") or os.path.join(ROOT, "build"), "grade")
sys.path.insert(0, os.path.join(ROOT, "common/bench"))
import cost
import dry
import pace
from clusters import PRESETS
from cost import VOCABULARY

CLASSES = 2
WIDTH = pace.Cluster.width  # bytes per number
STATE = pace.Cluster.state  # bytes per parameter in training


@functools.cache
def labs():
    """{number: what grader/labs knows of the lab}, as build/grade lists it."""
    text = subprocess.run([GRADE, "--list"], check=True, capture_output=True, text=True).stdout
    return {lab["number"]: lab for lab in json.loads(text)}


@functools.cache
def may_send(lab, sizes):
    text = subprocess.run([GRADE, "--lab", str(lab), "--may-send", sizes], check=True, capture_output=True, text=True).stdout
    return [int(number) for number in text.split()]


def budget(lab, passes, **letters):
    """How many numbers a lab may send at most in a pass, over all ranks of its group."""
    return may_send(lab, " ".join(f"{name}={int(value)}" for name, value in letters.items()))[passes == "BACKWARD"]


def both(lab, **letters):
    return budget(lab, "FORWARD", **letters) + budget(lab, "BACKWARD", **letters)


def preset(name, seq=128, batch=8):
    layers, hidden, heads = PRESETS[name]
    return cost.Model(layers, hidden, heads, seq, batch, VOCABULARY)


def letters_of(model, tp, dp):
    return {"n": tp, "B": model.batch // dp, "S": model.seq, "H": model.hidden, "F": 4 * model.hidden, "OUT": model.hidden, "C": CLASSES,
            "VOCABULARY": 0, "PART": 0}


def sent_over_tp(model, tp, dp, stage=11):
    """The bytes that a training step sends over tp, summed over all ranks, by the budgets of the
    labs in the model at this stage."""
    letters = letters_of(model, tp, dp)
    if stage >= 7:
        block, head = both(7, **letters), both(7, **{**letters, "PART": 1})
    else:
        block, head = both(4, **letters) + both(5, **letters), 0
    return WIDTH * dp * (model.layers * block + both(3, **letters) + head)


def sent_over_dp(model, tp, dp):
    """The bytes that a training step sends over dp: each dp group sums what its ranks hold."""
    return WIDTH * tp * budget(11, "BACKWARD", n=dp, N=dry.summed(model, tp))


def sent_over_pp(model, tp, dp, pp):
    """The bytes that a training step sends over pp: each of the tp ranks of a stage sends all that
    crosses a boundary."""
    return WIDTH * dp * tp * budget(12, "BACKWARD", n=pp, STAGES=pp, B=model.batch // dp, S=model.seq, H=model.hidden)


def memory(model, tp, dp=1):
    return dry.memory(pace.UNIT, model, tp, dp)


def kept(model, tp):
    """Numbers of 32 bits per token that a block of a BERT keeps from its forward to its backward
    pass: its two residual sums, whole (with SP=1, split by positions). Split over tp: q, k, v, the output
    of attention and the inner layer before GELU, which are in 16 bits with AMP=bf16; two numbers per row
    of scores; and one bit per number of the inner layer for dropout."""
    read_next = (4 if model.rounds else 8) * model.hidden
    return 2 * model.hidden / (tp if model.sequence_parallel else 1) + (read_next + model.hidden / 8 + 2 * model.heads) / tp


def activations(model, tp):
    """The numbers that all blocks keep."""
    return model.batch * model.seq * model.layers * kept(model, tp)


def equal_at(model):
    """The number of positions in a batch at which all-tp and all-dp send the same, if dp sums every
    parameter."""
    letters = {**letters_of(model, 2, 1), "B": 1, "S": 1}
    a_position = (model.layers * both(7, **letters) + both(3, **letters)) / model.hidden
    return 2 * dry.parameters(model) / (a_position * model.hidden)
