#!/usr/bin/python3 -EsB
"""lab.py begin OUT: checks that the page can be written to OUT. lab.py PICTURE OUT: makes the page
for one case of a lab from the output of build/grade --report."""
import os
import shlex
import sys
from itertools import groupby

from matrices import expected_of, has_errors, matrices_text, sheets_of, summary
from schedules import cluster_text, on_cluster, schedule_text, slots_of
from page import escape, given, matrix, paragraph, timeline_figure, write
from tapes import tapes_text
from verdicts import checks_text, reasons_text
from language import _, counted

KINDS = {"collective": [_("collective"), "orange", "rising"], "message": [_("message"), "pink", "falling"], "wait": [_("wait for a started exchange"), "green", "upright"],
         "stuck": [_("call that did not return"), "yellow", "dots"]}
ENDINGS = {"complete": _("The case ran to completion."), "refused": _("The case ended with an error."), "crashed": _("A rank crashed."), "hung": _("The ranks wait for something that never comes."),
           "looped": _("A rank computes forever."), "stopped": _("The case was stopped."), "not run": _("The case was not run.")}


def timeline_of(found):
    calls = [call for rank in found["ranks"] for call in rank["calls"]]
    if not calls:
        return None
    # Time 0 is the beginning of the first pass; groups are made before it.
    passes = [call for call in calls if call["where"] != _("creation of the groups")]
    zero, end = min(call["begin"] for call in passes or calls), max(max(call["begin"], call["end"]) for call in calls)
    if any(call["kind"] == "stuck" for call in calls):
        end += max((end - zero) // 8, 1000) # stuck calls end after the others
    used, names, rows = [kind for kind in KINDS if any(call["kind"] == kind for call in calls)], {}, []
    for number, rank in enumerate(found["ranks"]):
        spans = []
        for call in rank["calls"]:
            length = (call["end"] if call["end"] >= call["begin"] else end) - call["begin"]
            words = ", ".join(filter(None, (call["group"] if call["group"] != "{}" else "", call["what"], call["where"], call["line"])))
            spans.append([(call["begin"] - zero) / 1000, max(length, 1) / 1000, used.index(call["kind"]), names.setdefault(call["name"], len(names)), words])
        rows.append({"label": _("rank {rank}").format(rank=number), "spans": spans})
    marks = []
    for where, group in groupby(found["ranks"][0]["calls"], lambda call: call["where"]):
        group = list(group)
        marks.append([(group[0]["begin"] - zero) / 1000, (max(group[-1]["end"], group[-1]["begin"]) - zero) / 1000, where])
    return {"kinds": [KINDS[kind] for kind in used], "names": list(names), "rows": rows, "marks": marks, "all": True}


def amounts_of(found):
    amounts = [[0] * found["world"] for _ in range(found["world"])]
    for number, rank in enumerate(found["ranks"]):
        for call in rank["calls"]:
            for other, sent in enumerate(call["to"] if call["kind"] != "stuck" else ()):
                amounts[number][other] += sent
    return amounts


def calls_text(found, line):
    if not line:
        return paragraph(_("No rank called MPI."))
    lost = [_("the first {n} calls of rank {rank} were not kept").format(rank=number, n=rank["before"]) for number, rank in enumerate(found["ranks"]) if rank["before"]]
    words = [_("Between two calls the lab or the kit is working. All ranks share one clock."), _("This page is incomplete: {what}.").format(what=_("; ").join(lost)) if lost else "",
             _("In some cases the judge delays one rank at the start of each pass.")]
    return paragraph(" ".join(filter(None, words))) + timeline_figure(_("MPI calls of each rank"))


def command_of(found):
    """The command that makes this page again. It names the model's sizes only on a cluster, where
    they matter."""
    words = [f"make report LAB={found['lab']} SEED={found['seed']} CASE={found['case']}", *{"solution": ["SOLUTION=1"], "mine": ["STACK=mine"]}.get(found["author"], [])]
    sizes = ["CLUSTER", "MODEL", "LAYERS", "HIDDEN_DIM", "HEADS", "SEQ", "BATCH_SIZE"] if os.environ.get("CLUSTER") else []
    values = {name: os.environ.get(name) for name in [*sizes, "BACKEND"]}
    return " ".join([*words, *(f"{name}={shlex.quote(value)}" for name, value in values.items() if value)])


def body_of(found, line, schedule):
    diagnosis = "\n".join(filter(None, (_("The case stops at {todo}; the rest of it was not run.").format(todo=found["todo"]) if found["todo"] else "", found["diagnosis"] if found["ending"] != "complete" and not any("cause" in check for check in found["checks"]) else "")))
    of = {"solution": _("The code is the reference solution, {file}."), "mine": _("The code is your lab, {file}, built on your own earlier labs.")}.get(found["author"], _("The code is your lab, {file}."))
    file = found["file"].replace("labs/", "solutions/", 1) if found["author"] == "solution" else found["file"]
    groups = found["world"] // found["tp"]
    ranks = counted("{n} rank", "{n} ranks", found["world"])
    layout = _("{ranks} in {n} stages").format(ranks=ranks, n=found["pp"]) if found["pp"] > 1 else \
        _("{ranks} in {n} groups of {tp}").format(ranks=ranks, n=groups, tp=found["tp"]) if groups > 1 else ranks
    run_again, holding, calls, sending = _("Again:"), _("Which rank holds which part of each matrix"), _("MPI calls"), _("Who sends to whom")
    off, beyond = _("JavaScript draws the blocks, and it is off here."), _("Elements marked wrong differ by more than the judge allows for rounding.")
    what_is_held = _("Matrices as the ranks hold them. The number in a block is the rank that holds it. In a tensor of more than two dimensions, all dimensions but the last are rows.")
    copies = _("A matrix that is not split is copied on every rank, and all copies must be equal.") if found["alike"] else _("Each rank has its own copy of a matrix that is not split; the copies need not be equal.")
    heading = _("Lab {lab} {title}: one case on {layout}").format(lab=found["lab"], title=_(found["title"]), layout=layout)
    amount = _("Bytes sent in this case.")
    to_whom = _("Each part of an exchange is listed with its receiver. A reduction defines how much each rank contributes, but not who receives it: the "
                "least that must be sent is split evenly over the other ranks of the group. Calls that did not return are not counted.")
    held = f"""<h2>{holding}</h2>
<p>{what_is_held} {copies} {beyond}</p>
<p class="needs-script">{off}</p>
<ul class="legend" id="ranks"></ul>
{matrices_text(found)}
{tapes_text(found)}"""
    made = f"""{schedule_text() if schedule else ""}
<h2>{calls}</h2>
{calls_text(found, line)}
{cluster_text(found["cluster"])}
<h2>{sending}</h2>
<p>{to_whom}</p>
{matrix(amount, amounts_of(found))}"""
    # What failed stands first: without a wrong matrix, it is in the calls and their order.
    parts = [made, held] if any("cause" in check for check in found["checks"]) and not has_errors(found) else [held, made]
    return f"""<h1>{escape(heading)}</h1>
<p>{escape(found['sizes'])}. {escape(of.format(file=file))} {run_again} <code>{escape(command_of(found))}</code></p>
{"" if found["todo"] else paragraph(ENDINGS[found["ending"]])}{f'<pre>{escape(diagnosis)}</pre>' if diagnosis else ''}
{reasons_text(found)}
{summary(found)}
{checks_text(found)}
{parts[0]}
{parts[1]}"""


def main(arguments):
    found = given(arguments, _("make report LAB=6 writes it"))
    line, schedule, cluster = timeline_of(found), slots_of(found), on_cluster(found)
    data = {"matrices": [sheets_of(one, found["alike"]) for one in found["matrices"]], "expected": expected_of(found), "ranks": found["world"], **({"timeline": line} if line else {}), **({"schedule": schedule} if schedule else {}), **({"cluster": cluster} if cluster else {})}
    write(arguments[1], _("Lab {lab} {title}").format(lab=found["lab"], title=_(found["title"])), body_of(found, line, schedule), data, ["timeline.js", "curves.js", "blocks.js", "start.js"])


main(sys.argv[1:])
