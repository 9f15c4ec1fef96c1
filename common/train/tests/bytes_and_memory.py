#!/usr/bin/python3
"""A step sends exactly the bytes of the formulas, and replicas need no more memory per rank.
Language models have the bytes and memory that make model predicts."""
import dataclasses
import os
import sys

from runs import check, lacks_bf16, metrics_of

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../bench"))
import cost
import language_cost
import pace

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
            cost.Model(L, H, HEADS, seq, 12, 0, classifies=True).useful())


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

link = pace.Link(0.0, 1e9)
rates = pace.Cluster(1.0, 1.0, 1.0, 1.0, link, link)
for tp, seq in ((1, 128), (2, 128), (4, 256)):
    lines = metrics_of(tp, "--layers", 2, "--hidden-dim", 256, "--heads", 4, "--seq", seq, "--samples", 64, "--steps", 1, "--test", "",
                       "--threads", 1, "--check", 0, "--batch-size", 8, "--tp", tp)
    held = lines[-1]["ranks"][0]
    vocabulary = round((held["parameters"] - 2 * 4 * 256) * tp / 256 - 2 * 12 * 256 - 258)
    paper = cost.memory(rates, cost.Model(2, 256, 4, seq, 8, vocabulary, classifies=True), tp, 1)
    check(abs(held["peak_bytes"] / paper - 1) < 0.02, f"at tp {tp} and {seq} positions a rank's peak is within 2 % of that of make model",
          f"{held['peak_bytes']} bytes, {paper:.0f} on paper")


def stages_of(options, tp, dp, pp, micro):
    """Runs a small language model. Returns the summary of one rank per stage with its bytes of a
    step, and the operations of a step."""
    last = metrics_of(tp * dp * pp, *options, "--layers", 4, "--hidden-dim", H, "--heads", 6, "--seq", 64, "--batch-size", 8, "--steps", 2, "--test", "",
                       "--threads", 1, "--check", 0, "--tp", tp, "--pp", pp, "--micro", micro)[-1]
    return [(rank, [rank[f"comm_bytes_{over}"] / 2 for over in ("tp", "dp", "pp")]) for rank in last["ranks"][::tp * dp]], last["model_flops"]


for kind, vocabulary, *options in (("llama", 708, "--model", "llama"), ("gpt2", 657, "--model", "gpt2"), ("mlm", 968, "--task", "mlm")):
    model = language_cost.LanguageModel(4, H, 6, 64, 8, vocabulary, kind=kind)
    for tp, dp, pp, micro in ((1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 3, 4), (2, 2, 2, 2)):
        stages, its = stages_of(options, tp, dp, pp, micro)
        check(abs(its / model.useful() - 1) < 1e-8,
              f"{kind} at tp {tp}, dp {dp}, pp {pp}: a step has the operations of make model", f"{its}, on paper {model.useful()}")
        for stage, (rank, sent) in enumerate(stages):
            paper, at = cost.memory_of_stage(rates, model, tp, dp, pp, micro, stage), f"{kind} at tp {tp}, dp {dp}, stage {stage} of {pp}"
            apart = max(abs(a - b) / max(b, 1) for a, b in zip(sent, cost.sent(rates, model, tp, dp, pp, stage)))
            # The prediction uses the mean number of hidden tokens; a run draws them.
            check(rank["parameters"] == model.held(tp, pp, stage) and apart <= (0.005 if kind == "mlm" else 0),
                  f"{at}: a rank holds the parameters and sends the bytes of make model", f"{rank['parameters']}, {sent}; on paper "
                  f"{model.held(tp, pp, stage)}, {cost.sent(rates, model, tp, dp, pp, stage)}")
            check(abs(rank["peak_bytes"] / paper - 1) < 0.01, f"{at}: its peak is within 1 % of that of make model",
                  f"{rank['peak_bytes']} bytes, {paper:.0f} on paper")

for tp, again in ((4, "attention"), (8, "attention"), (8, "block")):
    rank = metrics_of(tp, "--task", "mlm", "--layers", 3, "--hidden-dim", 256, "--heads", 8, "--seq", 128, "--batch-size", 8, "--steps", 1, "--test", "",
                      "--threads", 1, "--check", 0, "--tp", tp, "--sp", 1, "--recompute", again)[-1]["ranks"][0]
    model = language_cost.LanguageModel(3, 256, 8, 128, 8, 968, kind="mlm", recompute=again, sequence_parallel=True)
    paper = cost.memory(rates, model, tp, 1)
    check(abs(rank["peak_bytes"] / paper - 1) < 0.005, f"mlm with SP=1 and RECOMPUTE={again} at tp {tp}: its peak is within 0.5 % of that of make model",
          f"{rank['peak_bytes']} bytes, {paper:.0f} on paper")


def in_bf16(kind, tp, pp, micro, *options, **settings):
    """The peak of a rank of each stage, measured and on paper, with AMP=bf16; and the activations of
    the first stage, relative to AMP=off."""
    sizes = ["--layers", 8, "--hidden-dim", 256, "--heads", 4, "--seq", 128, "--batch-size", 8, "--steps", 1, "--test", "", "--threads", 1, "--check", 0]
    name = ["--model", kind] if kind == "llama" else ["--task", kind]
    vocabulary = {"llama": 708, "mlm": 968}[kind]
    off, on = (metrics_of(tp * pp, *name, *sizes, "--tp", tp, "--pp", pp, "--micro", micro, *options, "--amp", amp)[-1]["ranks"][::tp] for amp in ("off", "bf16"))
    model = language_cost.LanguageModel(8, 256, 4, 128, 8, vocabulary, kind=kind, rounds=True, **settings)
    paper = [cost.memory_of_stage(dataclasses.replace(rates, state=18), model, tp, 1, pp, micro, stage) for stage in range(pp)]
    return [(rank["peak_bytes"], its) for rank, its in zip(on, paper)], on[0]["peak"]["activations"] / off[0]["peak"]["activations"]


if why := lacks_bf16():
    print(f"skip - AMP=bf16 takes the memory of make model: {why}")
else:
    for kind, tp, pp, micro, *more in (("mlm", 1, 1, 1), ("mlm", 2, 1, 1), ("mlm", 1, 2, 2), ("llama", 1, 1, 1), ("llama", 2, 1, 1),
                                       ("mlm", 2, 1, 1, ("--sp", 1), {"sequence_parallel": True}),
                                       ("mlm", 1, 1, 1, ("--recompute", "block"), {"recompute": "block"})):
        options, settings = more or ((), {})
        stages, less = in_bf16(kind, tp, pp, micro, *options, **settings)
        at = f"{kind} in bf16 at tp {tp}, pp {pp}{''.join(f', {key}={value}' for key, value in settings.items())}"
        check(all(abs(its / paper - 1) < 0.01 for its, paper in stages), f"{at}: a rank's peak is within 1 % of that of make model", str(stages))
        check(settings or less < (0.98 if kind == "llama" else 0.95), f"{at}: activations take less than in single precision", f"{less}")


def in_stages(schedule):
    """The summaries of three ranks, each a stage of one block; six micro-batches of two rows."""
    return metrics_of(3, *SIZES, "--layers", 3, "--batch-size", 12, "--tp", 1, "--pp", 3, "--micro", 6, "--schedule", schedule)[-1]["ranks"]


gpipe, one_f_one_b = in_stages("gpipe"), in_stages("1f1b")
in_flight = [[row["micro_batches_in_flight"] for row in rows] for rows in (gpipe, one_f_one_b)]
check(in_flight == [[6, 6, 6], [3, 2, 1]], "GPipe holds all micro-batches, 1F1B as many as there are stages from this one to the last", str(in_flight))
less = [(many["peak"]["activations"] - few["peak"]["activations"]) / (kept(S, 1) / 3) for many, few in zip(gpipe, one_f_one_b)]
check(all(0.8 * n < x < 1.5 * n for n, x in zip((3, 4, 5), less)), "1F1B saves the activations of each micro-batch that it does not hold",
      f"{less} micro-batches of the formula's size")
