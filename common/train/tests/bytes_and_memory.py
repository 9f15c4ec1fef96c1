#!/usr/bin/python3
"""A step sends exactly the bytes of the formulas, and replicas need no more memory per rank. Every
rank holds, sends and multiplies what make check says, to the byte, except what depends on the data:
hidden tokens, and rows of padding."""
import os
import sys

from runs import as_in_dry_run, check, lacks_bf16, metrics_of

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../bench"))
import cost
import dry

L, H, HEADS, S, CLASSES = 2, 96, 12, 32, 2  # parts are multiples of 16 numbers, so the arena has no padding
SIZES = ["--layers", L, "--hidden-dim", H, "--heads", HEADS, "--seq", S, "--samples", 64, "--steps", 2, "--test", "",
         "--threads", 1, "--check", 0]
FP32 = 4


def sums(tp, dp, batch, *more):
    """The bytes of a step over tp and over dp, summed over all ranks; a rank's parameters; the
    largest peak memory of a rank."""
    lines = metrics_of(tp * dp, *SIZES, "--batch-size", batch, "--tp", tp, *more)
    ranks = lines[-1]["ranks"]
    steps = sum("step" in line for line in lines)
    return (sum(r["comm_bytes_tp"] for r in ranks) / steps, sum(r["comm_bytes_dp"] for r in ranks) / steps,
            ranks[0]["parameters"], max(r["peak_bytes"] for r in ranks))


def formula(tp, dp, batch, parameters):
    """The bytes of a step by formula. Over tp: per block, 4 all-reduces of B·S·H; the embedding's
    gather; the classifier's two all-reduces. Over dp: each rank's gradients, once."""
    n = batch * S * H
    over_tp = (tp - 1) * (2 * 4 * L * n + n + 2 * batch * CLASSES + 2 * batch * H)
    return FP32 * over_tp, FP32 * tp * 2 * (dp - 1) * parameters


for tp, dp in ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2), (4, 2), (2, 3), (3, 2)):
    *sent, parameters, _ = sums(tp, dp, 12)
    check(tuple(sent) == formula(tp, dp, 12, parameters), f"tp {tp}, dp {dp} sends in a step what the formulas say",
          f"{sent} counted, {formula(tp, dp, 12, parameters)} by formula")

tp_bytes, dp_bytes, parameters, _ = sums(2, 2, 12, "--micro", 3)
check((tp_bytes, dp_bytes) == formula(2, 2, 12, parameters), "with three micro-batches, a step sends no more: one reduction",
      f"{tp_bytes}, {dp_bytes}")

tp_bytes, dp_bytes, parameters, _ = sums(2, 3, 12, "--allreduce", "ring")
check((tp_bytes, dp_bytes) == formula(2, 3, 12, parameters), "the ring of lab 15 sends over the replicas what the formula says",
      f"{tp_bytes}, {dp_bytes}")

alone, replicas = sums(2, 1, 6)[3], sums(2, 2, 12)[3]
check(replicas <= 1.001 * alone, "with the same rows per replica, a rank needs no more memory with two replicas than with one",
      f"{alone} bytes at tp 2, {replicas} at tp 2, dp 2")


def operations(ranks, seq, *more):
    """The operations of a step, and those that make model counts, without padding."""
    return (metrics_of(ranks, *SIZES, "--seq", seq, "--batch-size", 12, *more)[-1]["model_flops"],
            dry.useful(cost.Model(L, H, HEADS, seq, 12, 968)))


counted = [operations(*one) for one in ((1, 8), (4, 8, "--tp", 2), (4, 8, "--tp", 2, "--pp", 2, "--micro", 3, "--recompute", "block"))]
check(all(abs(its / useful - 1) < 1e-8 for its, useful in counted), "at every layout, a step has the operations of make model, and recomputation adds none", str(counted))
its, useful = operations(1, S)
check(0.8 * useful < its < useful, "padding needs no operations", f"{its}, without padding {useful}")


def activations(layers, seq, tp):
    """The bytes of activations that rank 0 holds at its peak."""
    sizes = ["--layers", layers, "--hidden-dim", H, "--heads", HEADS, "--seq", seq, "--samples", 64, "--steps", 1, "--test", "",
             "--threads", 1, "--check", 0, "--batch-size", 6]
    return metrics_of(tp, *sizes, "--tp", tp)[-1]["ranks"][0]["peak"]["activations"]


def kept(seq, tp):
    """The bytes that a layer keeps for the backward pass. Whole: its two residual sums, and two
    numbers per row for each of its two norms. Split over tp: q, k, v, the output of attention, the
    inner layer before GELU with one bit per number for dropout, and two numbers per row of
    scores."""
    return FP32 * 6 * seq * (2 * H + (4 * H + 4 * H + 4 * H // 32 + 2 * HEADS) // tp + 2 * 2)


for seq, tp in ((32, 1), (32, 2), (256, 1)):
    grown = activations(5, seq, tp) - activations(3, seq, tp)
    check(grown == 2 * kept(seq, tp), f"at {seq} positions, tp {tp}, a layer keeps what the formula says, and nothing that grows with the square of the positions",
          f"{grown / 2} bytes, {kept(seq, tp)} by formula")

STEP = ["--steps", 1, "--test", "", "--threads", 1, "--check", 0]
for tp, seq in ((1, 128), (2, 128), (4, 256)):
    as_in_dry_run(f"at tp {tp} and {seq} positions a rank's peak is within 2 % of that of make check", tp, "--layers", 2, "--hidden-dim", 256, "--heads", 4,
                  "--seq", seq, "--samples", 64, "--batch-size", 8, "--tp", tp, *STEP, apart=0.02)

for kind, vocabulary, *options in (("llama", 708, "--model", "llama"), ("gpt2", 657, "--model", "gpt2"), ("mlm", 968, "--task", "mlm")):
    apart = 0.02 if kind == "mlm" else 0
    for tp, dp, pp, micro in ((1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 3, 4), (2, 2, 2, 2)):
        last, multiplied = as_in_dry_run(
            f"{kind} at tp {tp}, dp {dp}, pp {pp}: each rank holds and sends what make check says", tp * dp * pp, *options, "--layers", 4, "--hidden-dim", H,
            "--heads", 6, "--seq", 64, "--batch-size", 8, "--tp", tp, "--pp", pp, "--micro", micro, *STEP, apart=apart, sums_apart=apart)
        its = last["model_flops"]
        check(abs(2 * multiplied / its - 1) <= (0.01 if kind == "mlm" else 1e-8), f"{kind} at tp {tp}, dp {dp}, pp {pp}: a step has the operations of make check",
              f"{its}; in the dry run {2 * multiplied}")

for tp, again in ((4, "attention"), (8, "attention"), (8, "block")):
    as_in_dry_run(f"mlm with SP=1 and RECOMPUTE={again} at tp {tp}: its peak is within 0.5 % of that of make check", tp, "--task", "mlm", "--layers", 3,
                  "--hidden-dim", 256, "--heads", 8, "--seq", 128, "--batch-size", 8, "--tp", tp, "--sp", 1, "--recompute", again, *STEP, apart=0.005, sums_apart=0.01)


def in_bf16(kind, tp, pp, micro, *options):
    """The activations of the first stage with AMP=bf16, relative to AMP=off. Checks the peaks with
    AMP=bf16."""
    sizes = [*(["--model", kind] if kind == "llama" else ["--task", kind]), "--layers", 8, "--hidden-dim", 256, "--heads", 4, "--seq", 128, "--batch-size", 8,
             "--tp", tp, "--pp", pp, "--micro", micro, *STEP, *options]
    apart = 0 if kind == "llama" else 0.01
    on = as_in_dry_run(f"{kind} in bf16 at tp {tp}, pp {pp}, {' '.join(map(str, options))}: each rank holds and sends what make check says", tp * pp, *sizes,
                       "--amp", "bf16", apart=apart, sums_apart=apart)[0]
    off = metrics_of(tp * pp, *sizes)[-1]
    return on["ranks"][0]["peak"]["activations"] / off["ranks"][0]["peak"]["activations"]


if why := lacks_bf16():
    print(f"skip - AMP=bf16 takes the memory of make check: {why}")
else:
    for kind, tp, pp, micro, *options in (("mlm", 1, 1, 1), ("mlm", 2, 1, 1), ("mlm", 1, 2, 2), ("llama", 1, 1, 1), ("llama", 2, 1, 1),
                                          ("mlm", 2, 1, 1, "--sp", 1), ("mlm", 1, 1, 1, "--recompute", "block")):
        less = in_bf16(kind, tp, pp, micro, *options)
        check(options or less < (0.98 if kind == "llama" else 0.95), f"{kind} in bf16 at tp {tp}, pp {pp}: activations take less than in single precision", f"{less}")


def in_stages(schedule):
    """The summaries of three ranks, each a stage of one block; six micro-batches of two rows."""
    return metrics_of(3, *SIZES, "--layers", 3, "--batch-size", 12, "--tp", 1, "--pp", 3, "--micro", 6, "--schedule", schedule)[-1]["ranks"]


gpipe, one_f_one_b = in_stages("gpipe"), in_stages("1f1b")
in_flight = [[row["micro_batches_in_flight"] for row in rows] for rows in (gpipe, one_f_one_b)]
check(in_flight == [[6, 6, 6], [3, 2, 1]], "GPipe holds all micro-batches, 1F1B as many as there are stages from this one to the last", str(in_flight))
less = [(many["peak"]["activations"] - few["peak"]["activations"]) / (kept(S, 1) / 3) for many, few in zip(gpipe, one_f_one_b)]
check(all(0.8 * n < x < 1.5 * n for n, x in zip((3, 4, 5), less)), "1F1B saves the activations of each micro-batch that it does not hold",
      f"{less} micro-batches of the formula's size")
