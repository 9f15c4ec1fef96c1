"""Which rank holds which part of each matrix: drawn as sheets, listed, and compared with the
expected parts."""
from itertools import groupby
from math import prod

from page import escape, paragraph, table
from language import _, counted

# Texts for a dimension of a matrix, of a vector, or of a tensor with more dimensions: split along
# it, a part of it, an empty part.
ROWS = _("split by rows"), _("rows {begin} to {last}"), _("none of the rows")
COLUMNS = _("split by columns"), _("columns {begin} to {last}"), _("none of the columns")
ELEMENTS = _("split by elements"), _("elements {begin} to {last}"), _("none of the elements")
OF_MORE = _("split along dimension {dim}"), _("elements {begin} to {last} of dimension {dim}"), _("none of the elements of dimension {dim}")


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
    """Can this part be drawn? A rank may have declared another shape, or a part that does not
    exist."""
    return part["there"] and part["fits"]


def sheets_of(one, alike):
    parts = [part for part in one["parts"] if is_sound(part)]
    if not parts:
        return []
    if any(part["placement"] == "shard" for part in parts):
        cut, full = [p for p in parts if p["placement"] == "shard"], [p for p in parts if p["placement"] != "shard"]
        by_dimension = [list(group) for _, group in groupby(sorted(cut, key=lambda p: p["dim"]), lambda p: p["dim"])]
        return [sheet(dimension_words(group[0])[0].format(dim=group[0]["dim"]), group) for group in by_dimension] + [sheet(_("whole on rank {rank}").format(rank=p["rank"]), [p]) for p in full]
    if has_addends(one):
        return [{**sheet(_("rank {rank}: a term of a sum").format(rank=part["rank"]), [part]), "addend": True, "runs": [], "told": []} for part in parts]
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
    """A text about the part that a rank holds."""
    if not part["there"]:
        return _("nothing: the rank did not reach it")
    if not part["fits"]:
        return _("{n} numbers of shape {shape}, which does not fit").format(n=part["count"], shape="×".join(map(str, part["shape"])) or "1")
    if part["placement"] == "shard":
        return dimension_words(part)[1 if part["end"] > part["begin"] else 2].format(dim=part["dim"], begin=part["begin"], last=part["end"] - 1)
    return _("a partial sum: one term of the sum") if is_partial(part) or part.get("addend") else _("all of it")


def state_text(one):
    wrong = [part for part in one["parts"] if part.get("wrong")]
    unfit = [part["rank"] for part in one["parts"] if part["there"] and not part["fits"]]
    texts = []
    if wrong:
        texts.append(_("{elements} on {ranks}").format(elements=counted("{n} wrong element", "{n} wrong elements", sum(part["wrong"] for part in wrong)),
                                                       ranks=ranks_text([part["rank"] for part in wrong])))
    cut = [part["rank"] for part in one["parts"] if "wanted" in part]
    if cut:
        texts.append(_("not split as expected on {ranks}").format(ranks=ranks_text(cut)))
    if unfit:
        texts.append(_("of a different shape on {ranks}").format(ranks=ranks_text(unfit)))
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


def has_addends(one):
    return any(part.get("addend") for part in one["parts"])


def expected_parts(one):
    """The parts that the ranks should hold."""
    as_expected = {"there": True, "fits": True, "addend": [], "wrong": 0, "runs": [], "first": []}
    return [{"dim": 0, "begin": 0, "end": 0, **part, **as_expected, **(part["wanted"] if "wanted" in part else {} if part.get("placement") == "shard" and part["fits"] else {"placement": "whole"}), "called": "whole"}
            for part in one["parts"]]


def expected_of(found):
    """The sheets of the expected parts, by the number of each matrix with errors."""
    return {number: sheets_of({"parts": expected_parts(one)}, found["alike"]) for number, one in enumerate(found["matrices"]) if state_text(one)}


def held_by_whom(parts):
    holders = [(text, [part["rank"] for part in group]) for text, group in
               ((text, list(group)) for text, group in groupby(sorted(parts, key=lambda p: (held_text(p), p["rank"])), held_text))]
    return _("; ").join(_("{ranks}: {parts}").format(ranks=ranks_text(ranks), parts=text) for text, ranks in sorted(holders, key=lambda h: h[1]))


def elements_text(one):
    """The first wrong elements. If the ranks hold the terms of a sum, shows the terms, the part of
    the gradient that does not come through the layer (if the case uses x around the layer, too), and
    their sum, which is the expected number."""
    added = next((part for part in one["parts"] if part.get("addend") and part["first"]), None)
    if added:
        past = len(added["first"][0]["terms"]) > len(added["addend"])
        caption = _("The first wrong elements, and the worst. The case also uses x around the layer, as a residual connection does: each rank has this part of the gradient.") if past else _("The first wrong elements, and the worst.")
        head = [_("element"), *(_("rank {rank}").format(rank=rank) for rank in added["addend"]), *([_("around the layer")] if past else []), _("expected sum")]
        return table(caption, head, [[index_text(first["at"], added["undivided"]), *first["terms"], f"{float(first['expected']):.4g}"] for first in added["first"]])
    told = [text for part in one["parts"] for _, text in wrong_texts(part)]
    more = sum(part.get("wrong", 0) for part in one["parts"]) - len(told)
    listing = "".join(f"<li>{escape(text)}</li>" for text in told) + ("<li>" + _("and {n} more").format(n=more) + "</li>" if more > 0 else "")
    return f'<ul class="told">{listing}</ul>' if listing else ""


def missing_text(one):
    """Says which sum is missing between the parts that the ranks hold and the expected ones."""
    groups = sorted({tuple(part["addend"]) for part in one["parts"] if part.get("addend")})
    missing = _("missing: the sum over {ranks}").format(ranks=_("; ").join(map(ranks_text, groups)))
    return f'<div class="missing"><span aria-hidden="true">Σ</span> {escape(missing)}</div>' if groups else ""


def matrix_section(number, one):
    state, lacking, yours, expected = state_text(one), lacking_text(one), _("yours"), _("expected")
    shape = "×".join(map(str, one["shape"])) or "1"
    heading = f"""<h3>{escape(one['name'])} <span class="soft">{shape}</span>{f' <span class="bad">✗ {escape(state)}</span>' if state else ''}{f' <span class="soft">– {escape(lacking)}</span>' if lacking else ''}</h3>"""
    held, sheets = f'<p class="soft">{escape(held_by_whom(one["parts"]))}</p>', f'<div class="sheets" id="matrix-{number}"></div>'
    if not state:
        return f'<div class="matrix">{heading}{held}{sheets}</div>'
    wanted = f'<p class="soft">{escape(held_by_whom(expected_parts(one)))}</p><div class="sheets" id="expected-{number}"></div>'
    return f"""<div class="matrix wrong-one">{heading}
<div class="compared"><div><h4>{yours}</h4>{held}{sheets}</div>{missing_text(one)}<div><h4>{expected}</h4>{wanted}</div></div>{elements_text(one)}</div>"""


def folded(title, members):
    """A folded section for each member, below a title that opens them; an empty text without
    members."""
    if not members:
        return ""
    return f'<details class="more"><summary>{escape(title)}</summary><div class="grid">{"".join(matrix_section(number, one) for number, one in members)}</div></details>'


def check_section(members):
    """Shows the first matrix with errors; folds the other ones with errors, those that some rank did
    not reach, and those without errors. Those that no rank reached are one line."""
    nowhere = [one["name"] for _, one in members if not any(part["there"] for part in one["parts"])]
    members = [(number, one) for number, one in members if any(part["there"] for part in one["parts"])]
    names = ", ".join(nowhere[:3])
    names = _("{names} and {n} more").format(names=names, n=len(nowhere) - 3) if len(nowhere) > 3 else names
    line = paragraph(_("no rank reached: {names}").format(names=names), "soft") if nowhere else ""
    bad, other = [member for member in members if state_text(member[1])], [member for member in members if not state_text(member[1])]
    lacking, good = [member for member in other if lacking_text(member[1])], [member for member in other if not lacking_text(member[1])]
    if not bad:
        return line + f'<div class="grid">{"".join(matrix_section(number, one) for number, one in other)}</div>'
    return line + matrix_section(*bad[0]) + folded(_("{n} more with errors").format(n=len(bad) - 1), bad[1:]) + folded(_("{n} not reached on some rank").format(n=len(lacking)), lacking) + folded(_("{n} without errors").format(n=len(good)), good)


def capitalised(text):
    return text[:1].upper() + text[1:]


def has_errors(found):
    """Is any matrix wrong on some rank?"""
    return any(state_text(one) for one in found["matrices"])


def matrices_text(found):
    """One section per check. Sections with errors are open. If all checks pass, the first one is."""
    sections = []
    numbered = list(enumerate(found["matrices"]))
    groups = {}
    for number, one in numbered:
        groups.setdefault(_("Initial parameters and how they are distributed") if one["kind"] == "parameter" else capitalised(_(one["check"])), []).append((number, one))
    for title, members in groups.items():
        bad = [one for _, one in members if state_text(one)]
        words, marked = counts_text([one for _, one in members]), bool(bad)
        sections.append((marked, f'><summary>{escape(title)} {words}</summary>{check_section(members)}</details>'))
    all_pass = not any("cause" in check for check in found["checks"])
    shown = [marked or all_pass and i == 0 for i, (marked, _) in enumerate(sections)]
    return "\n".join(("<details open" if one else "<details") + text for one, (_, text) in zip(shown, sections))


def summary(found):
    bad = [one for one in found["matrices"] if state_text(one)]
    total = len(found["matrices"])
    words = ""
    lacking = sum(bool(lacking_text(one)) for one in found["matrices"])
    if lacking:
        words += paragraph("– " + _("Not reached on some rank: {n} of {matrices}.").format(n=lacking, matrices=counted("{n} matrix", "{n} matrices", total)))
    if lacking and not bad:
        return words
    if not bad:
        good = "✓ " + _("Matrices checked: {n}. All elements are right on every rank.").format(n=total)
        return words + (paragraph(good, "good") if total else paragraph(_("This case checks no matrix.")))
    ranks = sorted({part["rank"] for one in bad for part in one["parts"] if part.get("wrong")})
    text = _("Matrices with errors: {n} of {all}, with wrong elements on {ranks}.") if ranks else _("Matrices with errors: {n} of {all}.")
    return words + paragraph("✗ " + text.format(n=len(bad), all=total, ranks=ranks_text(ranks)), "bad")
