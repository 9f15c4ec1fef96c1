#!/usr/bin/python3
"""lab.py begin OUT: may the page be written there?  lab.py PICTURE OUT: the page of one case of a lab, out of what build/grade --report has written."""
import json
import sys
from itertools import groupby

from page import count, escape, give_up, make_room, matrix, table, timeline_figure, write

KINDS = {"collective": ["collective", "orange", "rising"], "message": ["message", "pink", "falling"], "wait": ["end of what was started", "green", "upright"],
         "stuck": ["call that did not return", "yellow", "dots"]}
ENDINGS = {"complete": "The case came to its end.", "crashed": "A rank crashed.", "hung": "The ranks wait for what never comes.", "looped": "A rank computes without an end.",
           "stopped": "The case was stopped.", "not run": "The case was not run."}


def product(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total


def rectangles_of(part):
    """Of a matrix of which a rank holds begin..end along one dimension: rows of what has more dimensions are all but the last."""
    sizes, dim, begin, end = part["undivided"] or [1], part["dim"], part["begin"], part["end"]
    rows, columns = product(sizes[:-1]), sizes[-1]
    if part["placement"] != "shard":
        return [[0, 0, rows, columns]]
    if dim == len(sizes) - 1:
        return [[0, begin, rows, end - begin]]
    inner = product(sizes[dim + 1:-1])
    return [[(outer * sizes[dim] + begin) * inner, 0, (end - begin) * inner, columns] for outer in range(product(sizes[:dim]))]


def index_text(at, sizes):
    index = []
    for size in reversed(sizes or [1]):
        index.append(at % size)
        at //= size
    return "[" + ", ".join(map(str, reversed(index))) + "]"


def wrong_texts(part):
    return [(one["at"], f"rank {part['rank']} {index_text(one['at'], part['undivided'])}: is {one['is']}, expected {one['expected']}") for one in part.get("first", [])]


def is_partial(part):
    return part["placement"] != "shard" and part["called"] == "partial"


def sheet(title, parts):
    """Parts of one matrix on one sheet; those of several ranks that hold the same are one block."""
    sizes = parts[0]["undivided"] or [1]
    blocks = []
    key = lambda part: (part["dim"], part["begin"], part["end"]) if part["placement"] == "shard" else ()
    for _, group in groupby(sorted(parts, key=key), key):
        group = list(group)
        blocks.append({"ranks": [part["rank"] for part in group], "rectangles": [r for r in rectangles_of(group[0]) if r[2] and r[3]]})
    return {"title": title, "stack": sum(map(is_partial, parts)), "rows": product(sizes[:-1]), "columns": sizes[-1], "blocks": blocks, "runs": [run for part in parts for run in part.get("runs", [])],
            "told": [list(told) for part in parts for told in wrong_texts(part)]}


def ranks_text(ranks):
    return ("ranks " if len(ranks) > 1 else "rank ") + ", ".join(map(str, ranks))


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
        return [sheet(f"cut by {dimension_text(group[0]['dim'], len(group[0]['undivided']))}", group) for group in by_dimension] + [sheet(f"whole on rank {p['rank']}", [p]) for p in full]
    if any(map(is_partial, parts)):
        return [{**sheet(f"rank {part['rank']}{': an addend of a sum' if is_partial(part) else ''}", [part]), "stack": len(parts) if is_partial(part) else 0} for part in parts]
    if alike and len(parts) == len(one["parts"]) and not any(part["wrong"] for part in parts):
        return [sheet("a copy" if len(parts) == 1 else "a copy on each rank", parts)]
    return [sheet(f"{'the copy of ' if alike else ''}rank {part['rank']}", [part]) for part in parts]


def dimension_text(dim, rank):
    return ("rows", "columns")[dim] if rank == 2 else f"elements of dimension {dim}" if rank > 1 else "elements"


def held_text(part):
    if not part["there"]:
        return "nothing: not reached"
    if not part["fits"]:
        return f"{part['count']} numbers, of a shape {'×'.join(map(str, part['shape'])) or '1'} that does not fit"
    if part["placement"] == "shard":
        along = dimension_text(part["dim"], len(part["undivided"]))
        return f"{along} {part['begin']} to {part['end'] - 1}" if part["end"] > part["begin"] else f"none of the {along}"
    return "a partial sum, one addend of it" if is_partial(part) else "all of it"


def state_text(one):
    wrong = [part for part in one["parts"] if part.get("wrong")]
    unfit = [part["rank"] for part in one["parts"] if part["there"] and not part["fits"]]
    texts = [f"{count(sum(part['wrong'] for part in wrong), 'wrong element')} on {ranks_text([part['rank'] for part in wrong])}"] if wrong else []
    if unfit:
        texts.append(f"of another shape on {ranks_text(unfit)}")
    return "; ".join(texts)


def lacking_text(one):
    lacking = [part["rank"] for part in one["parts"] if not part["there"]]
    return f"not reached on {ranks_text(lacking)}" if lacking else ""


def counts_text(members):
    """Of some matrices: how many are wrong, not reached, right."""
    wrong, lacking = sum(bool(state_text(one)) for one in members), sum(bool(lacking_text(one) and not state_text(one)) for one in members)
    words = [f'<span class="bad">✗ {wrong} of {len(members)} with something wrong</span>'] if wrong else []
    if lacking:
        words.append(f'<span class="soft">– {lacking} of {len(members)} not reached on some rank</span>')
    return " ".join(words) or f'<span class="soft">✓ {len(members)}, all elements right</span>'


def matrix_section(number, one):
    state = state_text(one)
    shape = "×".join(map(str, one["shape"])) or "1"
    holders = [(text, [part["rank"] for part in parts]) for text, parts in
               ((text, list(parts)) for text, parts in groupby(sorted(one["parts"], key=lambda p: (held_text(p), p["rank"])), held_text))]
    told = [text for part in one["parts"] for _, text in wrong_texts(part)]
    more = sum(part.get("wrong", 0) for part in one["parts"]) - len(told)
    listing = "".join(f"<li>{escape(text)}</li>" for text in told) + (f"<li>and {more} more</li>" if more > 0 else "")
    return f"""<div class="matrix"><h3>{escape(one['name'])} <span class="soft">{shape}</span>{f' <span class="bad">✗ {escape(state)}</span>' if state else ''}{f' <span class="soft">– {escape(lacking_text(one))}</span>' if lacking_text(one) else ''}</h3>
<p class="soft">{escape('; '.join(f'{ranks_text(ranks)}: {text}' for text, ranks in sorted(holders, key=lambda h: h[1])))}</p>
<div class="sheets" id="matrix-{number}"></div>{f'<ul class="told">{listing}</ul>' if listing else ''}</div>"""


def matrices_text(found):
    lines = []
    numbered = list(enumerate(found["matrices"]))
    groups = {}
    for number, one in numbered:
        groups.setdefault("Parameters as they begin, and who holds what of them" if one["kind"] == "parameter" else one["check"][:1].upper() + one["check"][1:], []).append((number, one))
    for i, (title, members) in enumerate(groups.items()):
        members.sort(key=lambda member: not state_text(member[1])) # what is wrong comes first, else in the order of the case
        bad = [one for _, one in members if state_text(one)]
        words = counts_text([one for _, one in members])
        if members[0][1]["kind"] == "parameter" and any(check["name"] == "sharding" and check["status"] == "wrong" for check in found["checks"]):
            words += ' <span class="bad">✗ sharding</span>'
        lines.append(f'<details{" open" if bad or i == 0 else ""}><summary>{escape(title)} {words}</summary><div class="grid">{"".join(matrix_section(number, one) for number, one in members)}</div></details>')
    return "\n".join(lines)


def timeline_of(found):
    calls = [call for rank in found["ranks"] for call in rank["calls"]]
    if not calls:
        return None
    zero, end = min(call["begin"] for call in calls), max(max(call["begin"], call["end"]) for call in calls)
    if any(call["kind"] == "stuck" for call in calls):
        end += max((end - zero) // 8, 1000) # they go on, for as long as the judge has looked
    used, names, rows = [kind for kind in KINDS if any(call["kind"] == kind for call in calls)], {}, []
    for number, rank in enumerate(found["ranks"]):
        spans = []
        for call in rank["calls"]:
            length = (call["end"] if call["end"] >= call["begin"] else end) - call["begin"]
            words = ", ".join(filter(None, (call["group"] if call["group"] != "{}" else "", call["what"], call["where"], call["line"])))
            spans.append([(call["begin"] - zero) / 1000, max(length, 1) / 1000, used.index(call["kind"]), names.setdefault(call["name"], len(names)), words])
        rows.append({"label": f"rank {number}", "spans": spans})
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
    signs = {"right": "✓ right", "wrong": "✗ wrong", "to do": "– to do", "not looked at": "– not looked at in this case"}
    why = any(check["reason"] for check in found["checks"])
    rows = [[check["name"], signs[check["status"]], *([check["reason"].split("\n")[0]] if why else [])] for check in found["checks"]]
    return table("What the judge says of this case.", ["check", "result", "why"][:3 if why else 2], rows, (1, 2))


def calls_text(found, line):
    if not line:
        return "<p>No rank called MPI.</p>"
    lost = [f"of rank {number} the first {rank['before']} calls are not kept" for number, rank in enumerate(found["ranks"]) if rank["before"]]
    return f"""<p>What lies between two calls is the lab's and the kit's own work. One clock for all ranks.{escape(' Not all is here: ' + '; '.join(lost) + '.') if lost else ''} In some cases the judge makes one
rank come late to each pass.</p>{timeline_figure("calls of MPI of each rank")}"""


def summary(found):
    bad = [one for one in found["matrices"] if state_text(one)]
    total = len(found["matrices"])
    failed = [check["name"] for check in found["checks"] if check["status"] == "wrong"]
    words = f'<p class="bad">✗ Wrong in this case: {", ".join(failed)}.</p>' if failed else ""
    lacking = sum(bool(lacking_text(one)) for one in found["matrices"])
    if lacking:
        words += f'<p>– {lacking} of {count(total, "matrix") if total == 1 else f"{total} matrices"} were not reached on some rank.</p>'
    if lacking and not bad:
        return words
    if not bad:
        return words + (f'<p class="good">✓ All elements of {total} matrices are right on each rank.</p>' if total else "<p>This case looks at no matrix.</p>")
    ranks = sorted({part["rank"] for one in bad for part in one["parts"] if part.get("wrong")})
    return words + f'<p class="bad">✗ {len(bad)} of {total} matrices have something wrong{f", with wrong elements on {ranks_text(ranks)}" if ranks else ""}.</p>'


def body_of(found, line):
    story = "\n".join(filter(None, (f"The case ends at {found['todo']}; what comes after it was not run." if found["todo"] else "", found["story"] if found["ending"] != "complete" else "")))
    author = {"solution": "the reference solution", "mine": "your lab, on your own earlier ones"}.get(found["author"], "your lab")
    again = f"make report LAB={found['lab']} SEED={found['seed']} CASE={found['case']}" + (" SOLUTION=1" if found["author"] == "solution" else " STACK=mine" if found["author"] == "mine" else "")
    file = found["file"].replace("labs/", "solutions/", 1) if found["author"] == "solution" else found["file"]
    groups = found["world"] // found["tp"]
    layout = count(found["world"], "rank") + (f" in {groups} groups of {found['tp']}" if groups > 1 else "")
    return f"""<h1>Lab {found['lab']} {escape(found['title'])}: one case on {layout}</h1>
<p>{escape(found['sizes'])}. It is {author}, {escape(file)}. Again: <code>{escape(again)}</code></p>
<p>{ENDINGS[found['ending']]}</p>{f'<pre>{escape(story)}</pre>' if story else ''}
{summary(found)}
{checks_table(found)}
<h2>Who holds which part of each matrix</h2>
<p>As the ranks hold them. A number in a block is the rank that has it; of a tensor with more than two dimensions all but the last are rows. {"What is not cut is a copy on each rank, and all copies must be alike."
 if found['alike'] else "What is not cut is each rank's own, and need not be alike."} What is wrong is so by more than the judge allows for rounding.</p>
<p class="needs-script">The blocks are drawn by JavaScript, which is off here.</p>
<ul class="legend" id="ranks"></ul>
{matrices_text(found)}
<h2>Calls of MPI</h2>
{calls_text(found, line)}
<h2>Who sends to whom</h2>
<p>Of an exchange each part is told with its receiver. A reduction says how much each rank brings, and not to whom it goes: the least that has to be sent is given to the other ranks of the group alike. A call that did not return counts nothing.</p>
{matrix("Bytes of this case.", amounts_of(found))}"""


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "begin":
        make_room(arguments[1])
        return
    try:
        with open(arguments[0], encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        give_up(f"{arguments[0]}: {error}", "make report LAB=6 writes it")
    line = timeline_of(found)
    data = {"matrices": [sheets_of(one, found["alike"]) for one in found["matrices"]], "ranks": found["world"], **({"timeline": line} if line else {})}
    write(arguments[1], f"Lab {found['lab']} {found['title']}", body_of(found, line), data, ["timeline.js", "curves.js", "blocks.js", "start.js"])


main(sys.argv[1:])
