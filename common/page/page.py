"""A page in a single file: it contains everything that it needs and loads nothing. Names of files
and operations are escaped."""
import html
import json
import os
import re
import string
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../base"))
import output  # pylint: disable=wrong-import-position
from language import LANGUAGE, _, give_up  # pylint: disable=wrong-import-position

PAGE = output.Kind(_("a page of make report, make board or REPORT=1"), b'<meta name="generator" content="Balise">')


def make_room(path, others=(), remove=False):
    output.make_room(path, PAGE, others, remove)


def given(arguments, hint):
    """The contents of the JSON file arguments[0]. If the arguments are `begin PATH`, only makes room
    for a page there, and ends the program."""
    if len(arguments) == 2 and arguments[0] == "begin":
        sys.exit(make_room(arguments[1]))
    try:
        with open(arguments[0], encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        return give_up(f"{arguments[0]}: {error}", hint)


def text_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def words_of(scripts):
    """{sentence: its translation} of the scripts' messages, marked as say("SENTENCE", ...); empty
    in English."""
    return {sentence: _(sentence) for sentence in re.findall(r'\bsay\("([^"]+)"', scripts) if _(sentence) != sentence}


def spaced(text):
    """Prevents line breaks before punctuation that French separates by a blank."""
    return re.sub(" (?=[:;?!»])|(?<=«) ", "\u00a0", text) if LANGUAGE == "fr" else text


def write(path, title, body, data, scripts):
    js = "\n".join(map(text_of, scripts))
    embedded = json.dumps({**data, "words": words_of(js)}, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    page = string.Template(text_of("page.html")).substitute(lang=LANGUAGE, title=html.escape(title), css=text_of("page.css"), body=spaced(body), data=embedded, js=js)
    output.write(path, PAGE, page.encode())
    print(_("page      {path}").format(path=path))


escape = html.escape


def paragraph(text, kind=""):
    return (f'<p class="{kind}">' if kind else "<p>") + escape(text, quote=False) + "</p>"


def table(caption, head, rows, texts=()):
    """A table as HTML. Cells are texts; the first cell names the row.

    @param texts the columns that hold words"""
    kind = [' class="text"' if i in texts or i == 0 else "" for i in range(len(head))]
    lines = ['<div class="scrolls" tabindex="0"><table class="list">', f"<caption>{escape(caption)}</caption>",
             "<thead><tr>" + "".join(f'<th scope="col"{k}>{escape(h)}</th>' for h, k in zip(head, kind)) + "</tr></thead><tbody>"]
    for row in rows:
        lines.append(f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f'<td{k} data-label="{escape(h)}">{escape(cell)}</td>' for cell, k, h in zip(row[1:], kind[1:], head[1:])) + "</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def size_text(amount):
    for limit, unit in ((1e9, _("GB")), (1e6, _("MB")), (1e3, _("kB"))):
        if amount >= limit:
            return f"{amount / limit:.3g} {unit}" if amount < 999.5 * limit else f"{amount / limit:.0f} {unit}"
    return f"{amount:.0f} " + _("B")


def matrix(caption, amounts):
    """A table as HTML of who sends to whom: amounts[from][to] in bytes, each with a bar relative to
    the largest."""
    most = max(map(max, amounts)) or 1
    ranks, corner, to_rank, rank = range(len(amounts)), _("from, to rank"), _("to {rank}"), _("rank {rank}")
    lines = ['<div class="scrolls" tabindex="0"><table class="matrix-of-ranks">', f"<caption>{escape(caption)}</caption>",
             '<thead><tr><th scope="col" class="text">' + corner + "</th>" + "".join(f'<th scope="col">{to_rank.format(rank=r)}</th>' for r in ranks) + "</tr></thead><tbody>"]
    for r in ranks:
        cells = [f'<td class="self">{"·" if r == to else "0"}</td>' if not amounts[r][to] else
                 f'<td class="heat" style="--share:{100 * amounts[r][to] / most:.1f}%">{size_text(amounts[r][to])}</td>' for to in ranks]
        lines.append(f'<tr><th scope="row">{rank.format(rank=r)}</th>' + "".join(cells) + "</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def timeline_figure(label, name="timeline", strip=True):
    """A timeline, which start.js draws from data[name].

    @param strip whether there are marks above its rows"""
    keys = _("plus and minus zoom, the left and right arrows move, up and down choose a rank, n and p the next and the previous span")
    off, point = _("JavaScript draws the timeline, and it is off here."), _("Point at a span, or press n, to see its details here.")
    zoom = _("Zoom: + and −, or the wheel after clicking the picture (or with Ctrl). Move: drag, ← and →. Span by span: n, p, ↑, ↓. Home shows all.")
    above = _("The strip above the rows is rank 0's.") if strip else ""
    return f"""<figure class="timeline" id="{name}"><p class="needs-script">{off}</p>
<ul class="legend"></ul><div class="buttons"></div>
<canvas tabindex="0" role="application" aria-label="{escape(label)}: {keys}"></canvas>
<p class="readout" aria-live="polite">{point}</p>
<figcaption>{zoom} {above}</figcaption></figure>"""
