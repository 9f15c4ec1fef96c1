#!/usr/bin/env -S python3 -EsB
"""Descriptions of clusters, and predictions of the weak scaling in Megatron-LM's paper for them.

    clusters.py     with CLUSTER MODEL LAYERS HIDDEN_DIM HEADS SEQ BATCH_SIZE in the environment

prints what the clock of make trace CLUSTER= needs (grader/judge/report/on_cluster.c): ranks per
node; latency and bandwidth of a rank within a node and between nodes; seconds of a step's passes on
one rank; bytes of activations between two blocks, and of gradients that replicas sum; and a text
that describes all this.
"""
import dataclasses
import json
import math
import os

import cost
import dry
import pace
from rows import _, either, give_up, number, paragraph, refuse, table, whole_number, why_invalid

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clusters")
# The configurations of Shoeybi et al. 2019 (arXiv:1909.08053), table 1: name, tp, layers, hidden,
# heads. Each replica takes 8 rows.
MEGATRON = (("1.2 G parameters", 1, 40, 1536, 16), ("2.5 G parameters", 2, 54, 1920, 20), ("4.2 G parameters", 4, 64, 2304, 24),
            ("8.3 G parameters", 8, 72, 3072, 32))
ROWS, SEQ, VOCABULARY, REPLICAS = 8, 1024, 51200, 64
PRESETS = {"base": (12, 768, 12), "large": (24, 1024, 16)}


def kind_asked_for(name, languages):
    """The kind of language model that the environment's MODEL and TASK name, or None.

    @param languages whether the caller can use language models"""
    task = os.environ.get("TASK") or ""
    if task and (task != "mlm" or name in cost.AUTHORS):
        give_up((_("there is no TASK={task} of MODEL={model}") if name else _("there is no TASK={task}")).format(task=task, model=name),
                _("TASK=mlm pretrains the BERT: without MODEL, or with base or large"))
    if name and name not in PRESETS and not (languages and name in cost.AUTHORS):
        give_up(_("there is no prediction for MODEL={model}").format(model=name),
                either("MODEL", (*PRESETS, *(cost.AUTHORS if languages else ()))) + _(", or LAYERS= HIDDEN_DIM= HEADS="))
    return "mlm" if task else name if name in cost.AUTHORS else None


def flag(name, hint):
    """Is this setting 1? Without it, it is 0."""
    value = os.environ.get(name) or "0"
    if value not in ("0", "1"):
        refuse(name, value, hint)
    return value == "1"


def take_settings(model, name, kind):
    """Sets a model's fields from RECOMPUTE, ZERO, SP and AVERAGE, or ends with an error."""
    model.recompute = os.environ.get("RECOMPUTE") or ""
    if model.recompute not in ("", "block", "attention"):
        refuse("RECOMPUTE", model.recompute, either("RECOMPUTE", ("block", "attention")))
    model.zero = flag("ZERO", _("ZERO=1: the replicas share out the optimiser's state"))
    model.sequence_parallel = flag("SP", _("SP=1, or leave it out"))
    if model.sequence_parallel and kind not in (None, "mlm"):
        give_up(_("SP=1 splits the positions of the labs' BERT, not those of MODEL={model}").format(model=name), _("leave out SP or MODEL"))
    model.average = whole_number("AVERAGE", 4) if os.environ.get("AVERAGE") else 0
    if model.average and model.zero:
        give_up(_("ZERO=1 cannot be combined with AVERAGE={steps}").format(steps=model.average), _("leave out one: with AVERAGE, replicas step alone"))


def model_asked_for(usual, leaves_out, batch=8, languages=False):
    """The model that the environment's MODEL names, or a model with the sizes LAYERS, HIDDEN_DIM
    and HEADS, whose defaults are `usual`. `batch` is the default of BATCH_SIZE. RECOMPUTE, ZERO, SP
    and AVERAGE mean the same as for make train."""
    name = os.environ.get("MODEL") or ""
    kind = kind_asked_for(name, languages)
    layers, hidden, heads = PRESETS.get(name, cost.LLAMA[:3] if kind == "llama" else usual)
    sizes = [whole_number(*one) for one in (("LAYERS", layers), ("HIDDEN_DIM", hidden), ("HEADS", heads),
                                            ("SEQ", cost.LLAMA[3] if kind == "llama" else 128), ("BATCH_SIZE", batch))]
    model = cost.Model(*sizes, cost.AUTHORS[kind][1] if kind else cost.VOCABULARY, kind or "bert", leaves_out=leaves_out)
    take_settings(model, name, kind)
    if model.hidden % model.heads:
        give_up(_("HIDDEN_DIM={hidden} is not divisible by HEADS={heads}").format(hidden=model.hidden, heads=model.heads), _("choose HIDDEN_DIM as a multiple of HEADS"))
    return model


def sizes_text(model):
    return f"{model.name()}{model.layers} layers, hidden {model.hidden}, {model.heads} heads, SEQ {model.seq}, BATCH_SIZE {model.batch}"


def checked(described, kind, given=()):
    """Returns a section of a file if it has every required field, with a valid number, and no other
    field; otherwise raises ValueError.

    @param given the fields of `kind` that other sections define"""
    fields = {one.name: one for one in dataclasses.fields(kind) if one.name not in given}
    for name, value in described.items():
        if name not in fields:
            raise ValueError(_("there is no field '{name}'").format(name=name))
        least = 0 if name in ("hides", "latency") else 1e-9
        good = not isinstance(value, bool) and isinstance(value, (int, float)) and least <= value < math.inf
        if not good or (name == "hides" and value > 1) or (name in ("node", "cores") and value != int(value)):
            raise ValueError(_("'{name}' cannot be {value}").format(name=name, value=json.dumps(value)))
    for name, one in fields.items():
        if one.default is dataclasses.MISSING and name not in described:
            raise ValueError(_("{what} is missing").format(what=f"'{name}'"))
    return described


def published_of(published):
    """Returns {(name, replicas): per cent of linear scaling}, and the headline: TFLOP/s of one GPU,
    PFLOP/s of all, per cent of linear scaling."""
    found = {(sizes[0], dp): 0 + published["weak_scaling"][sizes[0]][published["replicas"].index(dp)] for sizes in MEGATRON for dp in (1, REPLICAS)}
    return found, (0 + published["one_gpu_tflops"], 0 + published["pflops"], 0 + published["linear"])


def read(name):
    """Returns the contents of a cluster's file, and its Cluster; ends the program if the file is
    invalid.

    @param name a .json file, or the name of a cluster that comes with the kit"""
    path = name if name.endswith(".json") else f"{FOLDER}/{name}.json"
    try:
        with open(path, encoding="utf-8") as file:
            described = json.load(file)
        links = {one: pace.Link(**checked(described[one], pace.Link)) for one in ("near", "far")}
        cluster = pace.Cluster(**checked(described["rates"], pace.Cluster, links), **links)
        if "published" in described:
            published_of(described["published"])
        if not all(isinstance(text, str) for text in (described["source"], *described["assumed"])):
            raise ValueError(_("'source' must be a text, and 'assumed' a list of texts"))
        return described, cluster
    except IndexError:
        why = _("'weak_scaling' has fewer figures than 'replicas'")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = why_invalid(error)
    there = ", ".join(sorted(one[:-5] for one in os.listdir(FOLDER)))
    return give_up(_("there is no cluster '{name}'").format(name=name) if path != name and not os.path.exists(path)
                   else _("{path} describes no cluster: {why}").format(path=path, why=why),
                   _("CLUSTER is one of {names}, or a file.json like common/bench/clusters/dgx-h200.json, whose fields are those of pace.py").format(names=there))


def show_assumptions(described, cluster):
    paragraph("source", described["source"])
    for i, text in enumerate(described["assumed"]):
        paragraph("" if i else "assumed", text)
    table("so a rank has", ["", "rate", ""], [
        ["products", number(cluster.gemm / 1e12), "TFLOP/s"], ["attention", number(cluster.attention / 1e12), "TFLOP/s"],
        ["element-wise", number(cluster.stream / 1e9), "GB/s"], ["optimiser", number(cluster.optimiser / 1e9), "GB/s"],
        [f"links among the {cluster.node} of a node", number(cluster.near.bandwidth / 1e9), "GB/s per rank"],
        ["and for a message", number(cluster.near.latency * 1e6), "us"],
        ["links between nodes", number(cluster.far.bandwidth / 1e9), "GB/s per node"], ["and for a message", number(cluster.far.latency * 1e6), "us"]])


def model_of(sizes, published, dp):
    """The paper's language model if `published`; otherwise the kit's classifier with the same
    layers."""
    _, _, layers, hidden, heads = sizes
    return cost.Model(layers, hidden, heads, SEQ, ROWS * dp, VOCABULARY, "gpt2" if published else "bert", recompute="block" if published else "",
                      leaves_out=False, published=published)


def weak_scaling(described, cluster):
    """Yields (name, tp, dp, seconds of a step by kind, operations per second and rank, per cent of
    linear scaling, bytes per rank) for each model, alone and in replicas."""
    published = "published" in described
    one = pace.rate(cluster, model_of(MEGATRON[0], published, 1), 1, 1)
    for dp in (1, REPLICAS):
        for sizes in MEGATRON:
            model, tp = dataclasses.replace(model_of(sizes, published, dp), rounds=cluster.rounds()), sizes[1]
            rate = pace.rate(cluster, model, tp, dp)
            yield sizes[0], tp, dp, pace.step(cluster, model, tp, dp), rate, 100 * rate / one, dry.memory(cluster, model, tp, dp)


def show_parts(title, heads, lines, cell):
    """Prints a table of the parts of a step's time.

    @param lines (the first cells, the seconds of pace.step()) of each line
    @param cell returns the cell for a part and the sum of all parts"""
    kinds = [kind.replace("-", "-\n").replace(" ", "\n") for kind in lines[0][1]]
    table(title, [*heads, *kinds], [[*first, *(cell(part, sum(parts.values())) for part in parts.values())] for first, parts in lines])


def show_weak_scaling(described, cluster):
    its, headline = published_of(described["published"]) if "published" in described else ({}, ())
    lines, times = [], []
    for name, tp, dp, parts, rate, linear, held in weak_scaling(described, cluster):
        beside = [f"{its[name, dp]} %", f"{linear - its[name, dp]:+.0f}"] if its else []
        whole = sum(parts.values())
        size = name.removesuffix(" parameters")
        lines.append([size, tp * dp, tp, dp, f"{linear:.0f} %", *beside, number(rate / 1e12), number(1e3 * whole), number(held / 1e9), "*" if held > cluster.memory else ""])
        times.append(([size, tp * dp], parts))
    table("weak scaling on paper: the configurations of Megatron-LM, " + ("its pattern" if its else "the kit's pattern")
          + f";\n{ROWS} rows of {SEQ} tokens per replica",
          ["parameters", "GPUs", "tp", "dp", "of\nlinear", *(["published", "points\napart"] if its else []), "TFLOP/s\na GPU", "ms a\nstep", "GB\na GPU", ""], lines)
    if any(line[-1] for line in lines):
        print(f"  * more than the {number(cluster.memory / 1e9)} GB of a GPU")
    show_parts("where the time of a step goes", ["parameters", "GPUs"], times, lambda part, whole: f"{100 * part / whole:.1f} %")
    gpus, one = tp * dp, rate / linear * 100 / 1e12
    print(f"  one GPU: {one:.1f} TFLOP/s predicted" + (f", {headline[0]} published" if its else ""))
    print(f"  {gpus} GPUs: {gpus * rate / 1e15:.1f} PFLOP/s, {linear:.0f} % of linear predicted" + (f", {headline[1]} and {headline[2]} % published" if its else ""))


def main():
    name, model = os.environ["CLUSTER"], model_asked_for(PRESETS["base"], leaves_out=True)
    _, cluster = read(name)
    dry.STACK = "serial", 0  # a handout has no solutions
    parts = pace.step(cluster, model, 1, 1)
    print(cluster.node, cluster.near.latency, cluster.near.bandwidth, cluster.far.latency, cluster.far.bandwidth / cluster.node,
          parts["compute"] + parts["element-wise"], model.batch * model.seq * model.hidden * cluster.width, (dry.parameters(model) - model.idle(1)) * cluster.width,
          f"{os.path.basename(name)}, {sizes_text(model)}")


if __name__ == "__main__":
    main()
