#!/usr/bin/python3 -EsB
"""board.py begin OUT: checks that the page can be written to OUT.  board.py BOARD OUT: makes the
page of a class from the output of build/gradebook --board, and prints who has solved which lab, in
80 columns. With NAMES=1 in the environment, both show the students' names."""
import os
import re
import sys
import textwrap
import time
from itertools import groupby

from page import escape, given, paragraph, size_text, table, write
from language import _

# Marks of a cell that has no points to show, by the state of the lab.
STATES = {"does not build": ("✗", _("does not compile")), "refused": ("⊘", _("refused: it calls or includes what a lab may not")), "not started": ("–", _("not started")),
          "not handed in": ("·", _("not handed in")), "no result": ("?", _("the grader has no result"))}
FULL = "✓"
WIDTH = 80  # of the terminal's table
# The losses of runs with right labs differ by rounding only.
ROUNDING = 1e-3


def ranges_of(numbers):
    """Texts such as 3, 4, 6-11 for ascending numbers."""
    groups = [[number for place, number in group] for difference, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{group[0]}-{group[-1]}" if len(group) > 2 else ", ".join(map(str, group)) for group in groups)


def why_refused(submission):
    """Why nothing was graded, or None. What follows a colon or a semicolon may name the student."""
    return submission["refused"] and re.split(r"\s*[:;]", submission["refused"])[0]


def is_full(lab):
    return lab.get("points") is not None and lab["points"] == lab["of"]


def has_figure(training):
    return bool(training) and "tokens_per_second" in training


class Board:
    def __init__(self, found, names):
        self.labs, self.reference, self.names = found["labs"], found["reference"], names
        self.submissions = sorted(found["submissions"], key=lambda one: (one["student"].casefold(), one["alias"]) if names else one["alias"])

    def name_of(self, submission, most=None):
        """The submission's name, in at most `most` characters."""
        alias = str(submission["alias"])
        return f"{submission['student'][:most and most - len(alias) - 3]} ({alias})" if self.names else alias

    def trusted(self, submission):
        """Has its training been timed, and did it reach the reference's loss?"""
        training = submission["training"]
        if not has_figure(training) or not has_figure(self.reference):
            return False
        loss, right = training["loss"], self.reference["loss"]
        return loss is not None and right is not None and abs(loss - right) <= ROUNDING * abs(right)

    def list_of(self, submissions, among):
        """The names of the submissions, or of the first few; "all n" for all `among` of them."""
        shown = 3
        if len(submissions) == among > shown:
            return _("all {n}").format(n=among)
        names = ", ".join(one["student"] if self.names else str(one["alias"]) for one in submissions[:shown])
        return _("{names} and {n} more").format(names=names, n=len(submissions) - shown) if len(submissions) > shown else names


def cell(lab, label):
    mark, words = STATES.get(lab["state"], ("", ""))
    small, kind = "", "none"
    if lab["state"] == "graded":
        kind = "full" if is_full(lab) else "part"
        mark = FULL if is_full(lab) else f"{lab['points']}/{lab['of']}"
        words = _("full marks") if is_full(lab) else _("points")
        if is_full(lab) and lab["sent"] is not None:
            small = f"<small>{escape(size_text(lab['sent']))}</small>"
    return f'<td class="{kind}" data-label="{escape(label)}" title="{escape(words)}"><b>{escape(mark)}</b><span class="unseen"> {escape(words)}</span>{small}</td>'


def speed_text(board, submission):
    return f"{submission['training']['tokens_per_second']:,.0f}" if board.trusted(submission) else "—"


def class_table(board):
    """A row per submission, a column per lab."""
    all_points, in_all, tokens, who = sum(lab["of"] for lab in board.labs), _("points"), _("tokens/s"), _("Who has which lab.")
    labels = [_("lab {n}").format(n=lab["number"]) for lab in board.labs]
    numbers = "".join(f'<th scope="col" title="{escape(_(lab["title"]))}">{lab["number"]}</th>' for lab in board.labs)
    lines = [f'<div class="scrolls" tabindex="0" role="region" aria-labelledby="who"><table class="list board"><caption id="who">{escape(who)}</caption>',
             f'<thead><tr><th scope="col" class="text" rowspan="2">{escape(_("submission"))}</th><th scope="colgroup" colspan="{len(labels)}">{escape(_("lab"))}</th>'
             f'<th scope="col" rowspan="2">{escape(in_all)}</th><th scope="col" rowspan="2">{escape(tokens)}</th></tr><tr>{numbers}</tr></thead><tbody>']
    for submission in board.submissions:
        points = "—" if submission["refused"] else sum(lab.get("points") or 0 for lab in submission["labs"])
        cells = f'<td class="text" colspan="{len(labels)}">{escape(why_refused(submission))}</td>' if submission["refused"] else "".join(cell(lab, label) for lab, label in zip(submission["labs"], labels))
        lines.append(f'<tr><th scope="row">{escape(board.name_of(submission))}</th>{cells}<td data-label="{escape(in_all)}">{points}{"" if submission["refused"] else f"/{all_points}"}</td>'
                     f'<td data-label="{escape(tokens)}">{speed_text(board, submission)}</td></tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def legend():
    marks = [(FULL, _("full marks, with the bytes that its ranks sent")), ("3/9", _("points so far")), *STATES.values()]
    return '<ul class="legend">' + "".join(f"<li><b>{escape(mark)}</b> {escape(words)}</li>" for mark, words in marks) + "</ul>"


def fewest(board, index, key):
    """The fewest bytes of a lab among submissions with full marks, and the submissions that have
    them."""
    full = [one for one in board.submissions if is_full(one["labs"][index]) and one["labs"][index][key] is not None]
    if not full:
        return ["—", ""]
    least = min(one["labs"][index][key] for one in full)
    return [size_text(least), board.list_of([one for one in full if one["labs"][index][key] == least], len(full))]


def bytes_table(board):
    rows = [[f"{lab['number']}  {_(lab['title'])}", *fewest(board, index, "sent"), *fewest(board, index, "kept")] for index, lab in enumerate(board.labs)]
    rows = [row for row in rows if row[1:] != ["—", "", "—", ""]]
    if not rows:
        return paragraph(_("No lab has full marks yet."))
    return table(_("Sent: by all ranks, in all cases of the lab. Kept: the most that a rank keeps after a pass. All submissions run the same cases."),
                 [_("lab"), _("bytes sent"), _("by"), _("bytes kept"), _("by")], rows, (2, 4))


def why_not(board, submission):
    training = submission["training"]
    return training["reason"] if not has_figure(training) else _("its loss is not the reference's")


def speed_table(board):
    trained = [lab["number"] for lab in board.labs if lab["trained"]]
    told = _("A submission with full marks in labs {labs} trains a small BERT on 4 ranks (tp = 2, dp = 2) on this machine, in the sandbox in which labs are graded. "
             "The grader records its calls meanwhile, so make train is faster.").format(labs=ranges_of(trained))
    timed = [one for one in board.submissions if one["training"]]
    if not timed:
        return paragraph(told) + paragraph(_("No submission has full marks in all of these labs yet."))
    right = sorted((one for one in timed if board.trusted(one)), key=lambda one: -one["training"]["tokens_per_second"])
    rows = [[board.name_of(one), f"{one['training']['tokens_per_second']:,.0f}"] for one in right]
    if has_figure(board.reference):
        rows.append([_("the reference"), f"{board.reference['tokens_per_second']:,.0f}"])
    elif board.reference:
        told += " " + _("The reference was not timed: {why}.").format(why=board.reference["reason"])
    shown = table(_("The fastest first."), [_("submission"), _("tokens/s")], rows) if rows else ""
    return paragraph(told) + shown + "".join(paragraph(_("{name} was not timed: {why}.").format(name=board.name_of(one), why=why_not(board, one)))
                                             for one in timed if not board.trusted(one) and has_figure(board.reference))


def body_of(board):
    made = _("Made on {day} at {time}; the page shows a newer version within a minute.").format(day=time.strftime("%Y-%m-%d"), time=time.strftime("%H:%M"))
    alias = "" if board.names else _("A number stands for a submission; make board NAMES=1 shows the names.")
    heading, bytes_heading, speed_heading = _("The class"), _("Fewest bytes with full marks"), _("Fastest training")
    return f"""<h1>{escape(heading)}</h1>
{paragraph(" ".join(filter(None, (made, alias))), "soft")}
{class_table(board)}
{legend()}
<div class="side"><section><h2>{escape(bytes_heading)}</h2>
{bytes_table(board)}</section>
<section><h2>{escape(speed_heading)}</h2>
{speed_table(board)}</section></div>"""


def letter(lab):
    """A lab in a column of the terminal's table."""
    if lab["state"] != "graded":
        return STATES[lab["state"]][0]
    return FULL if is_full(lab) else str(10 * lab["points"] // lab["of"])


def print_class(board):
    """The table of the class, without bytes and speeds."""
    widths = [len(str(lab["number"])) + 1 for lab in board.labs]
    left, all_points = WIDTH - sum(widths) - len(" 200/200"), sum(lab["of"] for lab in board.labs)

    def row(name, cells, points):
        return f"{name:<{left}}" + "".join(f"{one:>{width}}" for one, width in zip(cells, widths)) + points
    print(row(_("submission"), [lab["number"] for lab in board.labs], ""))
    for one in board.submissions:
        points = f"{sum(lab.get('points') or 0 for lab in one['labs']):>4}/{all_points}"
        print(f"{board.name_of(one, left):<{left}} {why_refused(one)}" if one["refused"] else row(board.name_of(one, left), map(letter, one["labs"]), points))
    found = {lab["state"] for one in board.submissions for lab in one["labs"]}
    marks = [f"{FULL} " + _("full marks"), "0-9 " + _("tenths of the points"), *(f"{mark} {words}" for state, (mark, words) in STATES.items() if state in found)]
    print("\n".join(textwrap.wrap("; ".join(marks), WIDTH)))


def main(arguments):
    board = Board(given(arguments, _("make board DIR=submissions writes it")), bool(os.environ.get("NAMES")))
    print_class(board)
    write(arguments[1], _("The class"), body_of(board), {}, ["board.js"])


main(sys.argv[1:])
