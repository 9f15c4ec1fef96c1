#!/usr/bin/python3
"""lab.py begin OUT: can the page be written there?  lab.py PICTURE OUT: makes the page of one case
of a lab from the output of build/grade --report."""
import json
import os
import shlex
import sys
from itertools import groupby
from math import prod

from schedules import cluster_text, on_cluster, schedule_text, slots_of
from page import escape, give_up, make_room, matrix, paragraph, table, timeline_figure, write
from language import _, counted

KINDS = {"collective": [_("collective"), "orange", "rising"], "message": [_("message"), "pink", "falling"], "wait": [_("wait for a started exchange"), "green", "upright"],
         "stuck": [_("call that did not return"), "yellow", "dots"]}
ENDINGS = {"complete": _("The case ran to completion."), "refused": _("The case ended with an error."), "crashed": _("A rank crashed."), "hung": _("The ranks wait for something that never comes."),
           "looped": _("A rank computes for ever."), "stopped": _("The case was stopped."), "not run": _("The case was not run.")}
# Texts for a dimension of a matrix, of a vector, or of a tensor with more dimensions: split along
# it, a part of it, an empty part.
ROWS = _("split by rows"), _("rows {begin} to {last}"), _("none of the rows")
COLUMNS = _("split by columns"), _("columns {begin} to {last}"), _("none of the columns")
ELEMENTS = _("split by elements"), _("elements {begin} to {last}"), _("none of the elements")
OF_MORE = _("split by elements of dimension {dim}"), _("elements of dimension {dim} {begin} to {last}"), _("none of the elements of dimension {dim}")


def rectangles_of(part):
    """The rectangles of a part begin..end along one dimension. In a tensor with more than two
    dimensions, all dimensions except the last count as rows."""
    sizes, dim, begin, end = part["undivided"] or [1], part["dim"], part["begin"], part["end"]
    rows, columns = prod(sizes[:-1]), sizes[-1]
    if part["placement"] != "shard":
        return [[0, 0, rows, columns]]
    if dim == len(sizes) - 1:
        return [[0, begin, rows, end - begin]]
    inner = prod(sizes[dim + 1:-1])
    return [[(outer * sizes[dim] + begin) * inner, 0, (end - begin) * inner, columns]
            for outer in range(prod(sizes[:dim]))]


def index_text(at, sizes):
    index = []
    for size in reversed(sizes or [1]):
        index.append(at % size)
        at //= size
    return "[" + ", ".join(map(str, reversed(index))) + "]"


def wrong_texts(part):
    return [(one["at"], _("rank {rank} {index}: is {found}, expected {expected}").format(rank=part["rank"], index=index_text(one["at"], part["undivided"]), found=one["is"], expected=one["expected"])) for one in part.get("first", [])]


def is_partial(part):
    return part["placement"] != "shard" and part["called"] == "partial"


def sheet(title, parts):
    """Puts the parts of a matrix on one sheet; ranks that hold the same part share a block."""
    sizes = parts[0]["undivided"] or [1]
    blocks = []
    key = lambda part: (part["dim"], part["begin"], part["end"]) if part["placement"] == "shard" else ()
    for _, group in groupby(sorted(parts, key=key), key):
        group = list(group)
        blocks.append({"ranks": [part["rank"] for part in group], "rectangles": [r for r in rectangles_of(group[0]) if r[2] and r[3]]})
    return {"title": title, "stack": sum(map(is_partial, parts)), "blocks": blocks,
            "rows": prod(sizes[:-1]), "columns": sizes[-1],
            "runs": [run for part in parts for run in part.get("runs", [])],
            "told": [list(told) for part in parts for told in wrong_texts(part)]}


def ranks_text(ranks):
    return (_("ranks {ranks}") if len(ranks) > 1 else _("rank {ranks}")).format(ranks=", ".join(map(str, ranks)))


def is_sound(part):
    """Can it be drawn? A rank may have declared another shape, or a part that does not exist."""
    return part["there"] and part["fits"]


def sheets_of(one, alike):
    parts = [part for part in one["parts"] if is_sound(part)]
    if not parts:
        return []
    if any(part["placement"] == "shard" for part in parts):
        cut, full = [p for p in parts if p["placement"] == "shard"], [p for p in parts if p["placement"] != "shard"]
        by_dimension = [list(group) for _, group in groupby(sorted(cut, key=lambda p: p["dim"]), lambda p: p["dim"])]
        return [sheet(dimension_words(group[0])[0].format(dim=group[0]["dim"]), group) for group in by_dimension] + [sheet(_("whole on rank {rank}").format(rank=p["rank"]), [p]) for p in full]
    if any(map(is_partial, parts)):
        return [{**sheet((_("rank {rank}: a term of a sum") if is_partial(part) else _("rank {rank}")).format(rank=part["rank"]), [part]),
                 "stack": len(parts) if is_partial(part) else 0} for part in parts]
    if alike and len(parts) == len(one["parts"]) and not any(part["wrong"] for part in parts):
        return [sheet(_("a copy") if len(parts) == 1 else _("a copy on each rank"), parts)]
    return [sheet((_("the copy of rank {rank}") if alike else _("rank {rank}")).format(rank=part["rank"]), [part]) for part in parts]


def dimension_words(part):
    dimensions = len(part["undivided"])
    return (ROWS, COLUMNS)[part["dim"]] if dimensions == 2 else OF_MORE if dimensions > 1 else ELEMENTS


def held_text(part):
    if not part["there"]:
        return _("nothing: not reached")
    if not part["fits"]:
        return _("{n} numbers, of a shape {shape} that does not fit").format(n=part["count"], shape="×".join(map(str, part["shape"])) or "1")
    if part["placement"] == "shard":
        return dimension_words(part)[1 if part["end"] > part["begin"] else 2].format(dim=part["dim"], begin=part["begin"], last=part["end"] - 1)
    return _("a partial sum, one term of it") if is_partial(part) else _("all of it")


def state_text(one):
    wrong = [part for part in one["parts"] if part.get("wrong")]
    unfit = [part["rank"] for part in one["parts"] if part["there"] and not part["fits"]]
    texts = []
    if wrong:
        texts.append(_("{elements} on {ranks}").format(elements=counted("{n} wrong element", "{n} wrong elements", sum(part["wrong"] for part in wrong)),
                                                       ranks=ranks_text([part["rank"] for part in wrong])))
    if unfit:
        texts.append(_("of another shape on {ranks}").format(ranks=ranks_text(unfit)))
    return _("; ").join(texts)


def lacking_text(one):
    lacking = [part["rank"] for part in one["parts"] if not part["there"]]
    return _("not reached on {ranks}").format(ranks=ranks_text(lacking)) if lacking else ""


def counts_text(members):
    """Text for several matrices: how many are wrong, not reached, right."""
    wrong, lacking = sum(bool(state_text(one)) for one in members), sum(bool(lacking_text(one) and not state_text(one)) for one in members)
    words = ['<span class="bad">✗ ' + _("{n} of {all} with errors").format(n=wrong, all=len(members)) + "</span>"] if wrong else []
    if lacking:
        words.append('<span class="soft">– ' + _("{n} of {all} not reached on some rank").format(n=lacking, all=len(members)) + "</span>")
    return " ".join(words) or '<span class="soft">✓ ' + _("{n}, all elements right").format(n=len(members)) + "</span>"


def matrix_section(number, one):
    state = state_text(one)
    shape = "×".join(map(str, one["shape"])) or "1"
    holders = [(text, [part["rank"] for part in parts]) for text, parts in
               ((text, list(parts)) for text, parts in groupby(sorted(one["parts"], key=lambda p: (held_text(p), p["rank"])), held_text))]
    held = _("; ").join(_("{ranks}: {parts}").format(ranks=ranks_text(ranks), parts=text) for text, ranks in sorted(holders, key=lambda h: h[1]))
    told = [text for part in one["parts"] for _, text in wrong_texts(part)]
    more = sum(part.get("wrong", 0) for part in one["parts"]) - len(told)
    listing = "".join(f"<li>{escape(text)}</li>" for text in told) + ("<li>" + _("and {n} more").format(n=more) + "</li>" if more > 0 else "")
    return f"""<div class="matrix"><h3>{escape(one['name'])} <span class="soft">{shape}</span>{f' <span class="bad">✗ {escape(state)}</span>' if state else ''}{f' <span class="soft">– {escape(lacking_text(one))}</span>' if lacking_text(one) else ''}</h3>
<p class="soft">{escape(held)}</p>
<div class="sheets" id="matrix-{number}"></div>{f'<ul class="told">{listing}</ul>' if listing else ''}</div>"""


def capitalised(text):
    return text[:1].upper() + text[1:]


def matrices_text(found):
    """One section per check; those with errors are open, or else the first."""
    sections = []
    numbered = list(enumerate(found["matrices"]))
    groups = {}
    for number, one in numbered:
        groups.setdefault(_("Initial parameters and how they are distributed") if one["kind"] == "parameter" else capitalised(_(one["check"])), []).append((number, one))
    for title, members in groups.items():
        members.sort(key=lambda member: not state_text(member[1])) # wrong ones come first; otherwise in the order of the case
        bad = [one for _, one in members if state_text(one)]
        words, marked = counts_text([one for _, one in members]), bool(bad)
        if members[0][1]["kind"] == "parameter" and any(check["name"] == "sharding" and check["status"] == "wrong" for check in found["checks"]):
            words, marked = words + ' <span class="bad">✗ ' + _("sharding") + "</span>", True
        sections.append((marked, f'><summary>{escape(title)} {words}</summary><div class="grid">{"".join(matrix_section(number, one) for number, one in members)}</div></details>'))
    shown = [marked for marked, _ in sections] if any(marked for marked, _ in sections) else [i == 0 for i in range(len(sections))]
    return "\n".join(("<details open" if one else "<details") + text for one, (_, text) in zip(shown, sections))


def timeline_of(found):
    calls = [call for rank in found["ranks"] for call in rank["calls"]]
    if not calls:
        return None
    zero, end = min(call["begin"] for call in calls), max(max(call["begin"], call["end"]) for call in calls)
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


def checks_table(found):
    signs = {"right": "✓ " + _("right"), "wrong": "✗ " + _("wrong"), "to do": "– " + _("to do"), "not looked at": "– " + _("not checked in this case")}
    why = any(check["reason"] for check in found["checks"])
    rows = [[_(check["name"]), signs[check["status"]], *([check["reason"].split("\n")[0]] if why else [])] for check in found["checks"]]
    return table(_("The judge's result for this case."), [_("check"), _("result"), _("why")][:3 if why else 2], rows, (1, 2))


def calls_text(found, line):
    if not line:
        return paragraph(_("No rank called MPI."))
    lost = [_("the first {n} calls of rank {rank} were not kept").format(rank=number, n=rank["before"]) for number, rank in enumerate(found["ranks"]) if rank["before"]]
    words = [_("Between two calls the lab or the kit is working. All ranks share one clock."), _("This page is incomplete: {what}.").format(what=_("; ").join(lost)) if lost else "",
             _("In some cases the judge delays one rank at the start of each pass.")]
    return paragraph(" ".join(filter(None, words))) + timeline_figure(_("MPI calls of each rank"))


def summary(found):
    bad = [one for one in found["matrices"] if state_text(one)]
    total = len(found["matrices"])
    failed = [_(check["name"]) for check in found["checks"] if check["status"] == "wrong"]
    words = paragraph("✗ " + _("Wrong in this case: {checks}.").format(checks=", ".join(failed)), "bad") if failed else ""
    lacking = sum(bool(lacking_text(one)) for one in found["matrices"])
    if lacking:
        words += paragraph("– " + _("{n} of {matrices} were not reached on some rank.").format(n=lacking, matrices=counted("{n} matrix", "{n} matrices", total)))
    if lacking and not bad:
        return words
    if not bad:
        good = "✓ " + _("All elements of {n} matrices are right on every rank.").format(n=total)
        return words + (paragraph(good, "good") if total else paragraph(_("This case checks no matrix.")))
    ranks = sorted({part["rank"] for one in bad for part in one["parts"] if part.get("wrong")})
    text = _("{n} of {all} matrices have errors, with wrong elements on {ranks}.") if ranks else _("{n} of {all} matrices have errors.")
    return words + paragraph("✗ " + text.format(n=len(bad), all=total, ranks=ranks_text(ranks)), "bad")


def command_of(found):
    """Makes this page again. The model's sizes matter only on a cluster."""
    words = [f"make report LAB={found['lab']} SEED={found['seed']} CASE={found['case']}", *{"solution": ["SOLUTION=1"], "mine": ["STACK=mine"]}.get(found["author"], [])]
    sizes = ["CLUSTER", "MODEL", "LAYERS", "HIDDEN_DIM", "HEADS", "SEQ", "BATCH_SIZE"] if os.environ.get("CLUSTER") else []
    values = {name: os.environ.get(name) for name in [*sizes, "BACKEND"]}
    return " ".join([*words, *(f"{name}={shlex.quote(value)}" for name, value in values.items() if value)])


def body_of(found, line, schedule):
    diagnosis = "\n".join(filter(None, (_("The case stops at {todo}; the rest of it was not run.").format(todo=found["todo"]) if found["todo"] else "", found["diagnosis"] if found["ending"] != "complete" else "")))
    of = {"solution": _("It is the reference solution, {file}."), "mine": _("It is your lab, on your own earlier ones, {file}.")}.get(found["author"], _("It is your lab, {file}."))
    file = found["file"].replace("labs/", "solutions/", 1) if found["author"] == "solution" else found["file"]
    groups = found["world"] // found["tp"]
    ranks = counted("{n} rank", "{n} ranks", found["world"])
    layout = _("{ranks} in {n} stages").format(ranks=ranks, n=found["pp"]) if found["pp"] > 1 else \
        _("{ranks} in {n} groups of {tp}").format(ranks=ranks, n=groups, tp=found["tp"]) if groups > 1 else ranks
    run_again, holding, calls, sending = _("Again:"), _("Which rank holds which part of each matrix"), _("MPI calls"), _("Who sends to whom")
    off, beyond = _("The blocks are drawn by JavaScript, which is off here."), _("Elements marked wrong differ by more than the judge allows for rounding.")
    what_is_held = _("Matrices as the ranks hold them. The number in a block is the rank that holds it. In a tensor of more than two dimensions, all but the last are rows.")
    copies = _("A matrix that is not split is copied on every rank, and all copies must be equal.") if found["alike"] else _("Each rank has its own copy of a matrix that is not split; the copies need not be equal.")
    heading = _("Lab {lab} {title}: one case on {layout}").format(lab=found["lab"], title=_(found["title"]), layout=layout)
    amount = _("Bytes of this case.")
    to_whom = _("Each part of an exchange is listed with its receiver. A reduction defines how much each rank contributes, but not who receives it: the "
                "least that must be sent is split evenly over the other ranks of the group. Calls that did not return are not counted.")
    return f"""<h1>{escape(heading)}</h1>
<p>{escape(found['sizes'])}. {escape(of.format(file=file))} {run_again} <code>{escape(command_of(found))}</code></p>
<p>{ENDINGS[found['ending']]}</p>{f'<pre>{escape(diagnosis)}</pre>' if diagnosis else ''}
{summary(found)}
{checks_table(found)}
<h2>{holding}</h2>
<p>{what_is_held} {copies} {beyond}</p>
<p class="needs-script">{off}</p>
<ul class="legend" id="ranks"></ul>
{matrices_text(found)}
<h2>{calls}</h2>
{calls_text(found, line)}
{schedule_text() if schedule else ""}
{cluster_text(found["cluster"])}
<h2>{sending}</h2>
<p>{to_whom}</p>
{matrix(amount, amounts_of(found))}"""


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "begin":
        make_room(arguments[1])
        return
    try:
        with open(arguments[0], encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        give_up(f"{arguments[0]}: {error}", _("make report LAB=6 writes it"))
    line, schedule, cluster = timeline_of(found), slots_of(found), on_cluster(found)
    data = {"matrices": [sheets_of(one, found["alike"]) for one in found["matrices"]], "ranks": found["world"], **({"timeline": line} if line else {}), **({"schedule": schedule} if schedule else {}), **({"cluster": cluster} if cluster else {})}
    write(arguments[1], _("Lab {lab} {title}").format(lab=found["lab"], title=_(found["title"])), body_of(found, line, schedule), data, ["timeline.js", "curves.js", "blocks.js", "start.js"])


main(sys.argv[1:])
