#!/usr/bin/env python3
"""make model: its counts equal the program's, its formulas have the right limits, and its weak
scaling is close to the published one."""
import dataclasses
import functools
import json
import os
import re
import subprocess
import unittest.mock

import measuring
from measuring import BUILD, check
import clusters
import cost
import dry
import model
import pace
import steps

refused = functools.partial(measuring.refused, "common/bench/model.py", silent=False)


def said(**given):
    return measuring.run("common/bench/model.py", BUILD, **given)


def fits(done):
    """Does every line fit a terminal?"""
    return all(len(line) <= 80 for line in done.stdout.splitlines())


refused("an unknown model is refused", "no prediction for MODEL=huge", MODEL="huge")
refused("the published BERT, whose biases are not counted, is refused", "no prediction for MODEL=bert", MODEL="bert")
refused("and so is its pretraining", "no prediction for MODEL=bert", MODEL="bert", TASK="mlm")
refused("heads that do not divide the hidden size are refused", "HEADS=7", HEADS="7")
refused("NTASKS that is not a number is refused", "'four'", NTASKS="four")
refused("a missing file of a cluster is refused", "none.json describes no cluster: No such file", CLUSTER="none.json")
refused("an unknown cluster is refused, with the names of the known ones", "there is no cluster 'dgx-3'\n  HINT: CLUSTER is one of dgx-2h, dgx-h100, dgx-h200", CLUSTER="dgx-3")
refused("an unknown backend is refused", "'gpu'", BACKEND="gpu")
refused("an AMP that does not exist on a CPU is refused", "'tf32'", AMP="tf32")
refused("a WEAK that is not 1 is refused", "'yes'", WEAK="yes")
refused("a task that does not exist is refused", "TASK=sums", TASK="sums")
refused("a GPT-2 of hidden tokens is refused", "MODEL=gpt2", TASK="mlm", MODEL="gpt2")
refused("the weak scaling of a LLaMA is refused", "WEAK=1", MODEL="llama", WEAK="1")
refused("a LLaMA whose feed-forward layers cannot be split is refused", "columns of the feed-forward", NTASKS="3", TP="3", MODEL="llama", HEADS="6",
        HIDDEN_DIM="96", CLUSTER="dgx-2h")
refused("an unknown schedule is refused", "SCHEDULE cannot be 'gpip'", SCHEDULE="gpip")
refused("an AVERAGE of no steps is refused", "AVERAGE cannot be '0'", AVERAGE="0")
refused("averages with a sharded optimiser are refused", "ZERO=1 cannot be combined with AVERAGE=4", ZERO="1", AVERAGE="4")
refused("a layout that does not fit is refused", "no layout of 4 ranks", NTASKS="4", TP="3", CLUSTER="dgx-2h")
refused("so is one of a large prime number, at once", "no layout of 999999937 ranks", NTASKS="999999937", CLUSTER="dgx-2h")
refused("also before this machine is measured", "no layout of 7 ranks", NTASKS="7")

refused("more stages than LAYERS are refused", "PP=3", NTASKS="6", PP="3", LAYERS="2", CLUSTER="dgx-2h")
run = said(NTASKS="6", PP="3", MICRO="3", CLUSTER="dgx-2h")
check("without LAYERS and BATCH_SIZE, there is a block for each stage, and rows for each micro-batch",
      run.returncode == 0 and "model     3 layers" in run.stdout and "BATCH_SIZE 12," in run.stdout and "tp=1 dp=2 pp=3 micro=3" in run.stdout, run.stdout + run.stderr)

first = str(min(os.sched_getaffinity(0)))
run = measuring.run("taskset", "-c", first, "python3", "-c", "import sys; sys.path.insert(0, 'common/bench'); import steps; print(steps.cores())")
check("under taskset, the cores of this machine are those that the process may use", run.stdout == "1\n" and steps.cores() == len(os.sched_getaffinity(0)), run.stdout + run.stderr)

work = os.path.join(BUILD, "model-test")
steps.write_data(work)
small = cost.Model(3, 96, 4, 16, 8, steps.VOCABULARY, "gpt2")
reader = cost.Model(*small.sizes(), steps.VOCABULARY)


def work_of(model, tp=1, pp=1, stage=0):
    """{kind: what a stage's passes take}"""
    return pace.work_of(model, dry.stages(model, tp, 1, pp)[stage], tp, pp)[0]


for pp in (2, 3):
    ranks = steps.train(BUILD, work, pp, 1, 1, (3, 96, 4, 16, 8, 1), *steps.data_in(work), "--pp", pp, "--micro", 4, "--schedule", "gpipe")["ranks"]
    peaks = [(rank["peak_bytes"], played["peak_bytes"]) for rank, played in zip(ranks, dry.stages(reader, 1, 1, pp, 4, "gpipe"))]
    check(f"at pp={pp} with GPipe, the peak of each stage is within 1 % of the predicted one", all(abs(paper / peak - 1) < 0.01 for peak, paper in peaks), peaks)

link = pace.Link(1e-5, 1e9)
slow = pace.Cluster(1e12, 1e12, 1e11, 1e11, link, link)
check("one rank exchanges nothing", pace.all_reduce(link, 1, 1e6) == 0 and pace.step(slow, small, 1, 1)["over tp"] == 0
      and pace.step(slow, small, 1, 1)["over dp"] == 0)
check("a large all-reduce takes 2 (n-1)/n of its size over the bandwidth, a small one its latencies",
      abs(pace.all_reduce(link, 8, 1e12) / (2 * 7 / 8 * 1e3) - 1) < 1e-3 and abs(pace.all_reduce(link, 8, 4) / (2 * 3 * 1e-5) - 1) < 1e-3)
products = 2 * 8 * 16 * 12 * 96 ** 2  # of a block's forward pass
found = work_of(reader)
check("if only the first position is read, the last block's backward pass has only the products of keys and values",
      abs(found["GEMM"][1] / products - (4 + 1 / 3)) < 1e-2 and found["attention"] == [3 * 4 * 8 * 16 * 16 * 96, 4 * 4 * 8 * 16 * 16 * 96], found)
held, idle = dry.parameters(reader), (steps.VOCABULARY - 8 * 16) * 96
check("of rows that never had a gradient, AdamW reads gradient and weight, and writes the weight",
      abs(pace.step(slow, reader, 1, 1)["optimiser"] * 1e11 - 28 * (held - idle) - 12 * idle) < 16 * 40 * 28)
check("with one replica, ZERO=1 changes nothing", pace.step(slow, dataclasses.replace(reader, zero=True), 1, 1) == pace.step(slow, reader, 1, 1))
apart = pace.step(dataclasses.replace(slow, hides=1.0), dataclasses.replace(small, average=4), 1, 4)["over dp"]
check("an average of the weights after every fourth step takes a quarter of its time, and nothing hides it",
      1 <= 4 * apart / pace.all_reduce(link, 4, 4 * dry.parameters(small)) < 1.05, apart)
fewer = dataclasses.replace(reader, batch=1)
given = pace.Cluster(2e11, 1e99, 1.0, 1.0, link, link, moves=1e10)
check("the rates of products follow from those of two batches", all(abs(found / rate - 1) < 1e-9 for found, rate in zip(steps.rates_of_products(
    (reader, fewer), [sum(pace.stage_seconds(given, one, dry.stages(one)[0], 1, 1, 1).compute) for one in (reader, fewer)]).values(), (2e11, 1e10))))
check("if fewer rows take no less time, the rate of products is that of operations",
      steps.rates_of_products((reader, fewer), [1.0, 1.0]) == {"gemm": sum(work_of(reader)["GEMM"])})
check("steps with and without an average count as often as they occur",
      [model.time_of_step(dataclasses.replace(small, average=h), {"seconds": [9, 9, 0.01, 0.03, 0.01, 0.03]}) for h in (1, 2, 4)] == [20, 20, 15])
stories = cost.Model(6, 288, 6, 256, 4, 32000, "llama")
# A block has 4 H^2 + 3 H F weights, with F = 768. The products of a step need 6 operations per
# weight and token, the head included. The causal mask hides half of the scores.
block, found = 4 * 288 ** 2 + 3 * 288 * 768, work_of(stories)
check("a step of the course's LLaMA has the operations counted by hand", (sum(found["GEMM"]), sum(found["attention"])) ==
      (6 * 1024 * (6 * block + 32000 * 288), 12 * 6 * 1024 * 257 / 2 * 288) and 2 * found["GEMM"][0] == found["GEMM"][1], found)
check("the last stage has the head's operations, the first none", [sum(work_of(stories, 1, 2, stage)["GEMM"]) for stage in (0, 1)]
      == [6 * 1024 * 3 * block, 6 * 1024 * (3 * block + 32000 * 288)])
again = work_of(dataclasses.replace(stories, recompute="block"))["GEMM"]
check("recomputation is a forward pass of the blocks within the backward pass", again == [found["GEMM"][0], found["GEMM"][1] + 2 * 1024 * 6 * block], again)
over_tp = pace.step(slow, stories, 2, 1)["over tp"]
check("a LLaMA sums four tensors per block over tp, two at its ends, and three numbers per token in its loss", abs(
    over_tp - 26 * pace.all_reduce(link, 2, 4 * 1024 * 288) - 3 * pace.all_reduce(link, 2, 4 * 1024)) < 1e-9, over_tp)
check("a LLaMA exchanges its table between the first and the last stage", pace.step(slow, stories, 1, 1, 2)["over pp"] > 2 * pace.message(link, 4 * 32000 * 288))

nodes = dataclasses.replace(slow, near=pace.Link(1e-6, 2e9), far=pace.Link(1e-5, 1e9), node=8)
check("a tp group that fills whole nodes has their uplinks to itself, two groups share one that both cross, and one within a node uses none",
      pace.link_of_tp(nodes, 16, 32) == nodes.far and pace.link_of_tp(nodes, 12, 24) == pace.Link(1e-5, 5e8)
      and pace.link_of_tp(nodes, 8, 32) == pace.link_of_tp(nodes, 3, 6) == nodes.near != pace.link_of_tp(nodes, 3, 9))
check("a tp group that fills nodes is no faster than the links inside a node", pace.link_of_tp(dataclasses.replace(nodes, far=pace.Link(1e-5, 9e9)), 16, 16).bandwidth == 2e9)

split, whole = pace.step(slow, small, 4, 1), pace.step(slow, small, 1, 1)
check("tp divides the products, and leaves the norms whole", abs(4 * split["compute"] / whole["compute"] - 1) < 1e-4
      and split["element-wise"] > whole["element-wise"] / 4)
check("replicas divide the batch, not the optimiser", abs(4 * pace.step(slow, small, 1, 4)["compute"] / whole["compute"] - 1) < 1e-9
      and pace.step(slow, small, 1, 4)["optimiser"] == whole["optimiser"])
check("without a pipeline there is no bubble, not even an error of rounding",
      {pace.step(dataclasses.replace(slow, gemm=rate * 1e9), small, tp, dp, 1, 4)["bubble"] for rate in range(1, 99) for tp in (1, 2, 4) for dp in (1, 2)} == {0})
with unittest.mock.patch.dict(os.environ, MICRO="4"):
    check("layouts whose rows MICRO does not divide are neither predicted nor run", [layout[:3] for layout in model.fitting(small, 4)]
          == [layout for layout in cost.layouts(4, small) if layout[1] <= 2] != cost.layouts(4, small), model.fitting(small, 4))
equal = dataclasses.replace(reader, leaves_out=False)
piped, whole = (pace.step(slow, equal, 1, 1, pp) for pp in (3, 1))
check("a batch in one piece takes as long through three stages as on one rank, and crosses four boundaries",
      abs(sum(piped[kind] for kind in ("compute", "element-wise", "bubble")) / sum(whole[kind] for kind in ("compute", "element-wise")) - 1) < 1e-2
      and abs(piped["over pp"] / (4 * (1e-5 + 8 * 16 * 96 * 4 / 1e9)) - 1) < 1e-9, piped)
for passes, micro, message, schedule, times in (
        # Stage 1 is faster: stage 0 never waits.
        ([(2, 3), (1, 1)], 3, 0, "1f1b", [(0, 15), (2, 11)]), ([(2, 3), (1, 1)], 2, 0, "gpipe", [(0, 12), (2, 7)]),
        # Stage 1 is slower: stage 0 waits from 4 to 8, from 12 to 14 and from 16 to 20.
        ([(2, 2), (3, 3)], 3, 0, "1f1b", [(0, 22), (2, 20)]), ([(2, 2), (3, 3)], 3, 1, "1f1b", [(0, 26), (3, 23)])):
    check(f"{schedule} with passes of {passes} and messages of {message} takes the time drawn by hand", pace.run(passes, micro, message, schedule) == times,
          pace.run(passes, micro, message, schedule))
check("equal stages take (m + p - 1)/m times their work, and GPipe 2 (m + p - 2) messages", all(
    max(end for _, end in pace.run([(1, 2)] * p, m)) == 3 * (m + p - 1)
    and max(end for _, end in pace.run([(1, 2)] * p, m, 0.25, "gpipe")) == 3 * (m + p - 1) + (p > 1) * (m + p - 2) / 2 for p in range(1, 5) for m in range(1, 9)))
short, long = pace.StageSeconds([6, 9], [0, 0], [0, 0], 1, 0), pace.StageSeconds([3, 3], [0, 0], [0, 0], 20, 0)
check("the last stage's optimiser decides a step if it takes longer than the first stage's backward passes",
      pace.longest([short, long], 3, 0, "1f1b") == (29, 1) and pace.longest([short, short], 3, 0, "1f1b")[1] == 0, pace.longest([short, long], 3, 0, "1f1b"))
piped = [pace.stage_seconds(slow, reader, rank, 1, 1, 3) for rank in dry.stages(reader, 1, 1, 3, 8)]
first, last = piped[0], piped[2]
piped = pace.step(slow, reader, 1, 1, 3, 8)
check("if the last stage has less work, the step has that of the others, and waits for less", sum(last.compute) < sum(first.compute)
      and piped["compute"] == sum(first.compute) and piped["bubble"] < sum(map(sum, (first.compute, first.stream))) * 2 / 8, piped)
check("all but one block of the last stage has a forward and two backward passes", abs(first.compute[1] / first.compute[0] - 2) < 1e-9
      and last.compute[1] < last.compute[0], (first, last))
shared = dataclasses.replace(slow, cores=1, near=pace.ALONE, far=pace.ALONE)
check("stages that share a core take the time of all their work", abs(sum(pace.step(shared, reader, 1, 1, 3, 8).values()) / sum(
    8 * sum(one.passes(8)) + one.after() for one in (pace.stage_seconds(shared, reader, rank, 1, 1, 3) for rank in dry.stages(reader, 1, 1, 3, 8))) - 1) < 1e-9)
check("one stage has no bubble", whole["bubble"] == whole["over pp"] == 0, whole)
check("a rank needs what the largest stage needs; if numbers have two bytes, so have activations", dry.memory(slow, reader, 1, 1, 3, 8)
      == max(rank["peak_bytes"] for rank in dry.stages(reader, 1, 1, 3, 8)) and dry.memory(dataclasses.replace(slow, width=2, state=18), reader, 1, 1)
      == 10 * dry.stages(reader, 1, 1)[0]["parameters"] + dry.stages(reader, 1, 1)[0]["peak"]["optimiser"] + dry.stages(reader, 1, 1)[0]["peak"]["activations"] // 2)
crowded = dataclasses.replace(slow, cores=2)
check("four ranks on two cores compute half as fast", pace.step(crowded, small, 4, 1)["compute"] == 2 * split["compute"])
hidden = dataclasses.replace(slow, hides=1.0)
check("a reduction that the backward pass hides costs less", pace.step(hidden, small, 1, 4)["over dp"] < pace.step(slow, small, 1, 4)["over dp"])

# ---- files of clusters ---------------------------------------------------------------------------------------------------

with open("common/bench/clusters/dgx-h200.json", encoding="utf-8") as file:
    h200 = json.load(file)


def file_with(name, text):
    with open(os.path.join(work, f"{name}.json"), "w", encoding="utf-8") as file:
        file.write(text)
    return file.name


def changed(**rates):
    return json.dumps({**h200, "rates": {**h200["rates"], **rates}})


def without(part, name):
    return json.dumps({**h200, part: {key: value for key, value in h200[part].items() if key != name}})


for sentence, word, text in (
        ("is not JSON", "line 1 is not JSON", "gemm: 1"), ("is a list", "list indices", "[]"), ("lacks the links between nodes", "'far' is missing",
         json.dumps({key: value for key, value in h200.items() if key != "far"})), ("lacks a rate", "'gemm' is missing", without("rates", "gemm")),
        ("lacks a latency", "'latency' is missing", without("near", "latency")), ("has a rate that is a text", "'gemm' cannot be \"fast\"", changed(gemm="fast")),
        ("has a rate of zero", "'stream' cannot be 0", changed(stream=0)), ("has a rate that is infinite", "'gemm' cannot be Infinity", changed(gemm=float("inf"))),
        ("hides more than everything", "'hides' cannot be 2", changed(hides=2)), ("has an unknown field", "there is no field 'speed'", changed(speed=1)),
        ("has half a rank in a node", "'node' cannot be 7.5", changed(node=7.5)), ("lacks a published figure", "'weak_scaling' is missing",
         json.dumps({**h200, "published": {"replicas": [1, 64]}})),
        ("has an assumption that is not a text", "must be a text", json.dumps({**h200, "assumed": [1]}))):
    refused(f"a file that {sentence} describes no cluster", word, CLUSTER=file_with("bad", text), WEAK="1")

# ---- weak scaling, by hand -----------------------------------------------------------------------------------------------

paper, kit = ([clusters.model_of(sizes, published, 64) for sizes in clusters.MEGATRON] for published in (True, False))
one = clusters.model_of(clusters.MEGATRON[0], True, 1)
# 96 B S L H^2 + 6 B S V H and 16 B S^2 L H, with 8 rows of 1,024 tokens, 40 layers of 1,536, and a
# vocabulary of 51,200 (Narayanan et al., equation 3).
found = pace.work_of(one, dry.stages(one)[0], 1, 1)[0]
check("a step of the paper's smallest model has the operations of Narayanan's formula",
      (sum(found["GEMM"]), sum(found["attention"])) == (74_217_034_874_880 + 3_865_470_566_400, 8_246_337_208_320), found)
plain = pace.Link(0.0, 1e9)
counted = pace.Cluster(1e15, 1e15, 1e15, 1e15, near=plain, far=pace.Link(0.0, 8e9), node=16, width=2, state=18)
# 54 layers with 6 all-reduces each, and one each for embedding and head, of 8 · 1,024 · 1,920
# numbers of 2 bytes, at 1 GB/s over two ranks.
check("the paper's pattern over two ranks takes the time counted by hand", abs(pace.step(counted, paper[1], 2, 64)["over tp"] / (326 * 0.03145728) - 1) < 1e-5,
      pace.step(counted, paper[1], 2, 64))
# 54 layers with 4 all-reduces each, of 4 bytes per number; and a gather, half as long.
wide = dataclasses.replace(counted, width=4)
check("the kit's pattern over two ranks takes the time counted by hand", abs(pace.step(wide, kit[1], 2, 64)["over tp"] / (216.5 * 0.06291456) - 1) < 1e-5,
      pace.step(wide, kit[1], 2, 64))
# There are 32 nodes, and each of eight groups has two ranks in each node and an eighth of the
# node's uplink. A rank sends the bytes of its gradients 2 · 1/2 times within a node and 2 · 31/32 times
# between nodes, and divides them by 64, at 10^15 bytes per second.
check("sums over 64 replicas of eight ranks take the time counted by hand, first within nodes of 16, then among 32",
      abs(pace.step(counted, paper[3], 8, 64)["over dp"] / (2.081883648 * (1 + 1.9375)) - 1) < 3e-3, pace.step(counted, paper[3], 8, 64))
free = pace.Link(0.0, 1e30)
costless = pace.Cluster(1e12, 1e12, 1e30, 1e30, near=free, far=free, node=8)
check("if only products cost time, 512 GPUs scale linearly, in either pattern", all(
    abs(line[5] - 100) < 1e-6 for described in ({"published": {}}, {}) for line in clusters.weak_scaling(described, costless)))

run = said(CLUSTER="dgx-2h", WEAK="1")
apart = [int(x) for x in re.findall(r"%\s+\d+ %\s+([+-]\d+)\s", run.stdout)]
check("the weak scaling of Megatron-LM's paper is predicted within 7 points, on one node within 6",
      run.returncode == 0 and len(apart) == 8 and max(map(abs, apart)) <= 7 and max(map(abs, apart[:4])) <= 6, run.stdout + run.stderr)
with open("common/bench/clusters/dgx-2h.json", encoding="utf-8") as file:
    published = json.load(file)["published"]["one_gpu_tflops"]
one = re.search(r"one GPU: ([\d.]+) TFLOP/s", run.stdout)
check("every line of the tables of weak scaling fits 80 columns", fits(run), run.stdout)
check("the predicted rate of one GPU is within 3 % of the published one", one and abs(float(one.group(1)) / published - 1) < 0.03, run.stdout)
check("the paper's headline is printed beside the predicted one", re.search(r"512 GPUs: [\d.]+ PFLOP/s, \d+ % of linear predicted, 15.1 and 76 % published", run.stdout), run.stdout)
for name in ("dgx-h200", "dgx-h100"):
    run = said(CLUSTER=name, WEAK="1")
    check(f"the weak scaling of the kit's pattern on {name} is printed with its source and all that is assumed",
          run.returncode == 0 and "\nsource    NVIDIA's data sheets" in run.stdout and "512 GPUs: " in run.stdout
          and all(text in " ".join(run.stdout.split()) for text in clusters.read(name)[0]["assumed"]), run.stdout + run.stderr)
    check(f"on {name} every line fits 80 columns", fits(run), run.stdout)
    check(f"on {name} no line mentions published figures", "published" not in run.stdout, run.stdout)
cluster, base = clusters.read("dgx-h200")[1], cost.Model(12, 768, 12, 128, 8, cost.VOCABULARY, rounds=True)
run = said(CLUSTER="dgx-h200", NTASKS="1", MODEL="base")
check("if products are in bf16, blocks keep copies of 2 bytes", re.search(rf"^ +1 +1 +1 +1 .* {dry.memory(cluster, base, 1, 1) / 1e6:,.0f}$", run.stdout, re.M), run.stdout + run.stderr)
run = said(CLUSTER="dgx-h200", NTASKS="8", MODEL="llama")
check("the layouts of a LLaMA are predicted, with what a rank sends", run.returncode == 0 and "LLaMA, vocabulary 32000, 6 layers" in run.stdout
      and "MB sent" in run.stdout and "fastest: tp=" in run.stdout, run.stdout + run.stderr)
run = said(CLUSTER="dgx-2h", NTASKS="64", LAYERS="24", HIDDEN_DIM="2304", HEADS="24", SEQ="1024", BATCH_SIZE="64")
check("the fastest of the layouts that fit is named", "fastest: tp=" in run.stdout, run.stdout + run.stderr)
check("the tables of 64 ranks fit 80 columns", fits(run), run.stdout)
run = said(CLUSTER="dgx-2h", NTASKS="8", LAYERS="24", HIDDEN_DIM="2304", HEADS="24", SEQ="1024", BATCH_SIZE="64")
check("the layouts that do not fit into the memory are marked", re.search(r"\d  \*$", run.stdout, re.MULTILINE) and "  * more than the 32,000 MB of a rank" in run.stdout
      and "fastest: tp=" in run.stdout, run.stdout + run.stderr)

# ---- compute of the GPU here ---------------------------------------------------------------------------------------------

clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BACKEND", "TRANSPORT")}
run = subprocess.run(["make", f"BUILD={BUILD}", "model", "BACKEND=emulated", "AMP=bf16", "CLUSTER=dgx-h200", "WEAK=1", "LAYERS=1", "HIDDEN_DIM=64", "HEADS=2",
                      "SEQ=8", "BATCH_SIZE=4"], env=dict(clean, EMULATED_GPUS="1"), capture_output=True, text=True, check=False)
rate = re.search(r"products +([\d.e-]+) +TFLOP/s", run.stdout)
check("on an emulated GPU the rates are measured, and the links are the file's", run.returncode == 0 and "measured  products" in run.stdout
      and rate and float(rate.group(1)) < 1 and re.search(r"links among the 8 of a node +360 ", run.stdout), run.stdout + run.stderr)
