#!/usr/bin/env python3
"""compute.py FOLDER START: writes the slides' numbers, matrices and code to FOLDER: numbers.tex,
matrices.tex, the same in French (numbers.fr.tex, matrices.fr.tex), code/.
compute.py FOLDER: only the matrices and their numbers, which need neither build/grade nor MPI.

On a slide, \\N{key} is one of these numbers. No slide hard-codes a number that a formula gives.
"""
import dataclasses
import math
import pathlib
import re
import sys

import excerpts
import formulas
import matrices
import recorded
from formulas import STATE, WIDTH, cost, dry, pace
import clusters  # formulas.py has put its folder on the path

SMALL = cost.Model(2, 128, 4, 64, 8, 968)  # the model that the labs train
SMALL_LAYOUTS = ((2, 1), (1, 2), (4, 1), (1, 4), (2, 2))
CLUSTER, RANKS, BATCH, SEQ = "dgx-h100", 64, 512, 512
GPT3 = cost.Model(96, 12288, 96, 2048, 1, 51200, "gpt2")  # arXiv:2005.14165, table 2.1; the vocabulary as in arXiv:2104.04473
GPT2, GPT2_RANKS = cost.Model(12, 768, 12, 1024, 8, 50257, "gpt2"), 8  # the smallest GPT-2, as in the text of lab 21
GRID_BATCH = 64  # of BERT-Large on the grid of matrices.py
# Megabytes of activations on each stage, as make train prints them: the runs of lab 13's text with 20 steps.
ALIVE = {"gpipe": (18.5, 18.5, 18.0), "1f1b": (10.5, 8.3, 4.5)}
ALIVE_MICRO = 6
BUBBLE_STAGES, BUBBLE_MICROS = 4, (1, 2, 4, 8, 16, 32)


def grouped(number):
    return f"{number:,.0f}".replace(",", "\\,")


def short(number):
    """A number with three significant digits: 0.535, 4.46, 44.6, 446."""
    return f"{number:.{max(0, 2 - max(0, math.floor(math.log10(number))))}f}" if number else "0"


def of_preset(name, model):
    hidden, tokens = model.hidden, model.batch * model.seq
    found = {"L": model.layers, "H": hidden, "A": model.heads, "D": hidden // model.heads, "F": 4 * hidden, "V": grouped(model.vocabulary),
             "B": model.batch, "S": model.seq, "tokens": grouped(tokens),
             "P": f"{dry.parameters(model) / 1e6:.1f}", "embedding": f"{model.vocabulary * hidden / 1e6:.1f}",
             "block": short(12 * hidden ** 2 / 1e6), "norms": short(4 * model.layers * hidden / 1e3),
             "blocks": f"{12 * model.layers * hidden ** 2 / 1e6:.1f}", "gflop": grouped(dry.useful(model) / 1e9),
             "state.GB": f"{STATE * dry.parameters(model) / 1e9:.2f}",
             "equal": grouped(round(formulas.equal_at(model), -2))}
    for tp in (1, 2, 4, 8):
        if model.heads % tp:
            continue
        state, held = STATE * dry.parameters(model, tp), formulas.memory(model, tp)
        sent = formulas.sent_over_tp(model, tp, 1)
        found.update({f"P.{tp}": f"{dry.parameters(model, tp) / 1e6:.1f}", f"state.{tp}": f"{state / 1e9:.2f}",
                      f"weights.{tp}": f"{WIDTH * dry.parameters(model, tp) / 1e9:.2f}",
                      f"rest.{tp}": f"{(held - state) / 1e9:.2f}", f"memory.{tp}": f"{held / 1e9:.2f}",
                      f"gflop.{tp}": grouped(dry.useful(model) / tp / 1e9),
                      f"sent.{tp}": grouped(sent / 1e6), f"sent.rank.{tp}": grouped(sent / tp / 1e6),
                      f"kept.whole.{tp}": f"{100 * whole_activations(model) / formulas.activations(model, 1):.1f}",
                      f"kept.cut.{tp}": f"{100 * (formulas.activations(model, tp) - whole_activations(model)) / formulas.activations(model, 1):.1f}",
                      f"whole.share.{tp}": f"{100 * whole_activations(model) / formulas.activations(model, tp):.0f}"})
    return {f"{name}.{key}": text for key, text in found.items()}


def whole_activations(model):
    """Numbers kept for the backward pass that tp does not divide: the minimum over all tp."""
    return formulas.activations(model, 1 << 40)


def of_pair():
    """What a feed-forward block sends as two column splits and as a pair, in units of (n-1)N."""
    letters = {"n": 2, "B": 1, "S": 1, "H": 1, "F": 4, "OUT": 1}
    found = {f"{name}.{key}": formulas.budget(lab, direction, **letters) for name, lab in (("attention", 4), ("columns", 5), ("pair", 6))
             for key, direction in (("forward", "FORWARD"), ("backward", "BACKWARD"))}
    for name in ("attention", "columns", "pair"):
        found[f"{name}.both"] = found[f"{name}.forward"] + found[f"{name}.backward"]
    found["pair.ratio"] = f"{found['columns.both'] / found['pair.both']:.2f}"
    letters = {**formulas.letters_of(SMALL, 2, 1), "PART": 0}
    a_block = formulas.both(7, **letters) // (SMALL.batch * SMALL.seq * SMALL.hidden)
    with_columns = (formulas.both(4, **letters) + formulas.both(5, **letters)) // (SMALL.batch * SMALL.seq * SMALL.hidden)
    found.update({"block.both": a_block, "block.columns": with_columns,
                  "stage.ratio": f"{formulas.sent_over_tp(SMALL, 2, 1, 5) / formulas.sent_over_tp(SMALL, 2, 1, 7):.1f}"})
    base = formulas.preset("base")
    letters = {"n": 2, "B": base.batch, "S": base.seq, "H": base.hidden, "OUT": 4 * base.hidden}
    sent = [formulas.budget(2, direction, **letters) for direction in ("FORWARD", "BACKWARD")]
    return {**found, "wide.forward": f"{sent[0] / 1e6:.1f}", "wide.backward": f"{sent[1] / 1e6:.1f}", "wide.MB": f"{WIDTH * sum(sent) / 1e6:.0f}"}


def of_sync_points():
    """What a feed-forward block of lab 20's layers sends, in units of (n-1)N: a gather sends a
    tensor once, a sum sends it twice. In the backward pass, f sums and a scatter gathers."""
    ways = {"none": (2, 2), "gather": (4 + 2, 4 + 2), "sum": (2 * 4 + 1, 2 * 4 + 1)}
    found = {f"sync.{name}.{key}": sent for name, way in ways.items() for key, sent in zip(("forward", "backward"), way)}
    return {**found, **{f"sync.{name}.both": sum(way) for name, way in ways.items()}}


def of_layouts():
    found = {"small.L": SMALL.layers, "small.H": SMALL.hidden, "small.B": SMALL.batch, "small.S": SMALL.seq, "small.V": SMALL.vocabulary,
             "small.P": short(dry.parameters(SMALL) / 1e6), "small.tokens": SMALL.batch * SMALL.seq,
             "small.equal": grouped(round(formulas.equal_at(SMALL), -1))}
    for tp, dp in SMALL_LAYOUTS:
        parts = [formulas.sent_over_tp(SMALL, tp, dp) / 1e6, formulas.sent_over_dp(SMALL, tp, dp) / 1e6]
        for key, value in zip(("tp", "dp", "sum"), (*parts, sum(parts))):
            found[f"small.{tp}x{dp}.{key}"] = f"{value:.2f}" if value else "0"
    return found


def of_clusters():
    """Published figures, from the kit's files; and the kit's prediction for a cluster, which no
    measurement confirms."""
    published = clusters.read("dgx-2h")[0]["published"]
    found = {"megatron.tflops": published["one_gpu_tflops"], "megatron.pflops": published["pflops"], "megatron.linear": published["linear"],
             "megatron.replicas": published["replicas"][1], "megatron.gpus": 8 * published["replicas"][1]}
    for i, (alone, replicas) in enumerate(published["weak_scaling"].values()):
        found.update({f"megatron.{2 ** i}.alone": alone, f"megatron.{2 ** i}.replicas": replicas})
    cluster = clusters.read(CLUSTER)[1]
    near, far = cluster.near, cluster.far
    large = dataclasses.replace(formulas.preset("large", SEQ, BATCH), rounds=cluster.rounds())
    per_rank = formulas.preset("large", SEQ, BATCH * 8 // RANKS)
    size = WIDTH * per_rank.batch * per_rank.seq * per_rank.hidden
    shared = pace.Link(far.latency, far.bandwidth / cluster.node)
    found.update({"links.size": short(size / 1e6),
                  "links.near.ms": short(1e3 * pace.all_reduce(near, 8, size)),
                  "links.far.ms": short(1e3 * pace.all_reduce(shared, 8, size)),
                  "plan.ranks": RANKS, "plan.B": BATCH, "plan.S": SEQ})
    for tp in (1, 2, 4, 8, 16):
        dp, parts = RANKS // tp, pace.step(cluster, large, tp, RANKS // tp)
        found.update({f"plan.{tp}.dp": dp, f"plan.{tp}.step": short(1e3 * sum(parts.values())),
                      f"plan.{tp}.compute": short(1e3 * (parts["compute"] + parts["element-wise"] + parts["optimiser"])),
                      f"plan.{tp}.tp": short(1e3 * parts["over tp"]), f"plan.{tp}.dp.ms": short(1e3 * parts["over dp"]),
                      f"plan.{tp}.GB": short(dry.memory(cluster, large, tp, dp) / 1e9)})
    return found


def of_pipelines():
    base, cluster = formulas.preset("base"), clusters.read(CLUSTER)[1]
    found = {"gpt.L": GPT3.layers, "gpt.H": grouped(GPT3.hidden), "gpt.P": grouped(dry.parameters(GPT3) / 1e9), "gpt.most": grouped(cluster.memory / 1e9),
             "gpt.tp": cluster.node, "cross.pp": 4, "cross.tensor": grouped(formulas.sent_over_tp(base, 4, 1) / 1e6),
             "cross.stages": grouped(formulas.sent_over_pp(base, 1, 1, 4) / 1e6), "bubble.p": BUBBLE_STAGES,
             "alive.p": matrices.STAGES, "alive.m": ALIVE_MICRO}
    for pp in (1, 2, 4, 8):
        found[f"gpt.{pp}"] = grouped(STATE * dry.parameters(GPT3, cluster.node, 1, pp) / 1e9)
    for m in BUBBLE_MICROS:
        found[f"bubble.{m}"] = f"{100 * (BUBBLE_STAGES - 1) / (m + BUBBLE_STAGES - 1):.0f}"
    for name, held in ALIVE.items():
        queues = matrices.schedule(matrices.STAGES, ALIVE_MICRO, gpipe=name == "gpipe")
        found.update({f"alive.{name}.{k}": matrices.alive(queue) for k, queue in enumerate(queues)})
        found.update({f"alive.{name}.{k}.MB": megabytes for k, megabytes in enumerate(held)})
    large, (tp, dp, pp) = formulas.preset("large", SEQ, GRID_BATCH), matrices.GRID.values()
    sent = {"tp": formulas.sent_over_tp(large, tp, dp), "dp": formulas.sent_over_dp(large, tp, dp), "pp": formulas.sent_over_pp(large, tp, dp, pp)}
    return {**found, "grid.B": GRID_BATCH, "grid.S": SEQ, **{f"grid.{key}": short(value / 1e9) for key, value in sent.items()}}


def of_vocabulary():
    """The logits of a language model, and what its loss sends if it gathers or reduces them."""
    tokens, others = GPT2.batch * GPT2.seq, GPT2_RANKS - 1
    gathered, reduced = others * tokens * GPT2.vocabulary, 3 * 2 * others * tokens
    return {"lm.B": GPT2.batch, "lm.S": grouped(GPT2.seq), "lm.H": GPT2.hidden, "lm.V": grouped(GPT2.vocabulary), "lm.n": GPT2_RANKS,
            "lm.logits": grouped(tokens * GPT2.vocabulary / 1e6), "lm.logits.GB": f"{WIDTH * tokens * GPT2.vocabulary / 1e9:.1f}",
            "lm.inner": grouped(4 * tokens * GPT2.hidden / 1e6), "lm.hidden": grouped(tokens * GPT2.hidden / 1e6),
            "lm.tied": f"{GPT2.vocabulary * GPT2.hidden / 1e6:.1f}", "lm.gathered": f"{WIDTH * gathered / 1e9:.1f}",
            "lm.reduced": f"{WIDTH * reduced / 1e6:.1f}", "lm.times": grouped(gathered / reduced)}


def of_averages(large):
    """Averages of a model's weights between sites that a slow link connects."""
    places, seconds, gigabits = 4, 2, 1
    sent = WIDTH * 2 * (places - 1) / places * dry.parameters(large)
    found = {"average.n": places, "average.step": seconds, "average.line": gigabits, "average.GB": f"{sent / 1e9:.1f}"}
    for name, every in (("1", 1), ("few", 8), ("many", 64)):
        average = 8 * sent / (gigabits * 1e9) / every
        found.update({f"average.{name}": every, f"average.s.{name}": short(average), f"average.all.{name}": short(seconds + average)})
    return found


def of_sharded_optimiser(large):
    """ZeRO stage 1: weights and gradients stay on each replica, the rest of the state is divided by dp. In half precision, the
    rest includes the weights in single precision. The paper's example: arXiv:1910.02054, figure 1."""
    stays, half_stays, paper, gpus = 2 * WIDTH, WIDTH, 7.5, 64
    found = {"zero.stays": stays, "zero.divided": STATE - stays, "zero.half.stays": half_stays, "zero.half.divided": STATE - half_stays,
             "zero.plain": f"{STATE * dry.parameters(large) / 1e9:.2f}", "zero.paper.P": paper, "zero.paper.dp": gpus,
             "zero.paper.plain": f"{STATE * paper:.0f}", "zero.paper.GB": f"{(half_stays + (STATE - half_stays) / gpus) * paper:.1f}"}
    for dp in (1, 2, 4, 8):
        found.update({f"zero.{dp}": dp, f"zero.GB.{dp}": f"{(stays + (STATE - stays) / dp) * dry.parameters(large) / 1e9:.2f}"})
    return found


def of_sequence(large):
    """What the two halves of an all-reduce send, in units of (n-1)·B·S·H; what a block keeps, in
    units of B·S·H numbers; and, with sequence parallelism, the activations that tp alone does not
    divide, in per cent of what one rank keeps without tp."""
    reduce_scatter = all_gather = 1
    attention, inner, whole = 4, 4, 2
    pairs, all_positions = 2, 16  # of a block; the label of a whole pass in grader/labs/sequence.h
    sent = formulas.both(18, n=2, B=1, S=2, H=1, N=pairs, PART=all_positions) // 2
    found = {"sequence.half": all_gather, "sequence.sum": reduce_scatter + all_gather, "sequence.block": sent,
             "sequence.whole": whole, "sequence.cut": attention + inner, "sequence.all": whole + attention + inner}
    by_rows = dataclasses.replace(large, sequence_parallel=True)
    for tp in (1, 2, 4, 8):
        rows = formulas.activations(by_rows, tp) - formulas.activations(large, tp) + whole_activations(large)
        found[f"sequence.rows.{tp}"] = f"{100 * rows / formulas.activations(large, 1):.1f}"
    return found


def of_recomputation():
    """What a block keeps, in units of B·S·H numbers: two inputs of norms; q, k, v and the result of attention; the input of GELU. Its
    products, in units of a forward pass: attention has 4 of the 12 H² weights."""
    attention, inner, blocks = 4, 4, 24
    each = 2 + attention + inner
    return {"recompute.all": each, "recompute.rest": each - 1, "recompute.attention": each - attention,
            "recompute.attention.products": f"{3 + attention / 12:.2f}", "recompute.without": blocks * each, "recompute.with": blocks + each - 1}


def of_roofline(large):
    """Operations per byte, and the operations per second that a GPU's rates allow: log10 of both, for the figure. Numbers have two
    bytes. The points are the first product of a block's pair, the same on eight ranks, the same for
    one token, and a residual sum, which reads two numbers and writes one."""
    cluster, half, tokens, (width, inner) = clusters.read(CLUSTER)[1], 2, large.batch * large.seq, (large.hidden, 4 * large.hidden)

    def product(rows, outputs):
        return 2 * rows * width * outputs / (half * (rows * width + width * outputs + rows * outputs))
    points = {"product": product(tokens, inner), "split": product(tokens, inner // cluster.node), "token": product(1, inner), "sum": 1 / (3 * half),
              "ridge": cluster.gemm / cluster.stream, "left": 0.1, "right": 1e4}
    found = {"tokens": grouped(tokens), "tp": cluster.node, "peak": grouped(cluster.gemm / 1e12), "stream": f"{cluster.stream / 1e12:.1f}",
             "link": grouped(round(cluster.gemm / cluster.near.bandwidth, -2)), "far": grouped(round(cluster.gemm * cluster.node / cluster.far.bandwidth, -3))}
    for name, each in points.items():
        through = min(cluster.gemm, each * cluster.stream)
        found.update({name: short(each) if each < 1000 else grouped(each), f"{name}.x": f"{math.log10(each):.3f}", f"{name}.y": f"{math.log10(through / 1e12):.3f}",
                      f"{name}.share": short(100 * through / cluster.gemm)})
    return {f"roof.{key}": value for key, value in found.items()}


def of_formats(large):
    """Floating-point formats: bits of exponent and fraction, the largest number, the smallest normal
    one, the relative step. And how much less a block keeps with AMP=bf16, in per cent."""
    found = {"amp.state": clusters.read(CLUSTER)[1].state,
             "amp.less": f"{100 * (1 - formulas.kept(dataclasses.replace(large, rounds=True), 1) / formulas.kept(large, 1)):.0f}"}
    with open(f"{formulas.ROOT}/common/optim/optim.h", encoding="utf-8") as file:
        found["amp.scale"] = re.search(r"SCALE_AT_FIRST = 1 << (\d+)", file.read())[1]
    for name, exponent, fraction in (("fp32", 8, 23), ("bf16", 8, 7), ("fp16", 5, 10)):
        bias = 2 ** (exponent - 1) - 1
        found.update({f"{name}.exponent": exponent, f"{name}.fraction": fraction, f"{name}.most": recorded.in_tens((2 - 2.0 ** -fraction) * 2.0 ** bias),
                      f"{name}.least": recorded.in_tens(2.0 ** (1 - bias)), f"{name}.step": recorded.in_tens(2.0 ** -fraction)})
    return found


def of_checkpoints(large):
    """A checkpoint has the weights and AdamW's two moments. How often to write one: J. W. Young, CACM 17(9), 1974."""
    seconds, hours = 30, 24  # to write one; between failures
    return {"save.GB": f"{3 * WIDTH * dry.parameters(large) / 1e9:.1f}", "save.P": f"{dry.parameters(large) / 1e6:.0f}", "save.seconds": seconds, "save.hours": hours,
            "save.minutes": f"{math.sqrt(2 * seconds * hours * 3600) / 60:.0f}"}


def all_numbers():
    base, large = formulas.preset("base"), formulas.preset("large")
    ring = {f"ring.{n}": f"{2 * (n - 1) / n:.2f}" for n in (2, 4, 8)}
    return {"width": WIDTH, "state": STATE, "labs": len(formulas.labs()), **of_preset("base", base),
            **of_preset("large", large), **of_pair(), **of_sync_points(), **of_layouts(), **of_clusters(), **of_pipelines(), **of_vocabulary(), **of_averages(large),
            **of_sharded_optimiser(large), **of_sequence(large),
            **of_recomputation(), **of_roofline(large), **of_formats(large), **of_checkpoints(large), **recorded.numbers(), **ring}


def french(number):
    """A number with the French decimal comma, in braces so that mathematics puts no space after it."""
    return re.sub(r"(?<=\d)\.(?=\d)", "{,}", str(number))


def french_cells(drawing):
    """A matrix of matrices.drawn with French numbers; coordinates stay as they are."""
    return re.sub(r"\\C\{\d+\}\{\d+\}\{[^}]*", lambda cell: french(cell[0]), drawing)


def main():
    folder, start = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    (folder / "code").mkdir(parents=True, exist_ok=True)
    numbers, drawings = {**(all_numbers() if start else {}), **matrices.numbers()}, {**matrices.drawings(), **recorded.drawings()}
    for lang, number, drawing in (("", str, str), (".fr", french, french_cells)):
        of_numbers = (rf"\Number{{{key}}}{{{number(text)}}}" for key, text in numbers.items())
        of_matrices = (rf"\expandafter\def\csname M@{key}\endcsname{{{drawing(text)}}}" for key, text in drawings.items())
        for name, lines in (("numbers", of_numbers), ("matrices", of_matrices)):
            (folder / f"{name}{lang}.tex").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, text in excerpts.excerpts(start).items() if start else ():
        (folder / "code" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
