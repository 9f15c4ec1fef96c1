#!/usr/bin/python3 -EsB
"""make hint LAB=6 [AGAIN=1]: shows the next hint of a lab; AGAIN=1: those already shown."""
import os
import re

from labs import HINTS, _, hints_taken, keep, quiet, text_of, the_lab, wrapped


def fitted(paragraph):
    """Wraps paragraphs and lists to the terminal's width; keeps code and tables."""
    if re.search(r"^( {4}|\||```)", paragraph, re.M):
        return paragraph
    items = re.split(r"\n(?=(?:-|\d+\.) )", paragraph)
    return "\n".join("\n  ".join(wrapped(" ".join(item.split()), 2)) if re.match(r"(-|\d+\.) ", item) else "\n".join(wrapped(" ".join(item.split()), 0))
                     for item in items)


def show(file, number, count):
    paragraphs = text_of(file).strip().split("\n\n")
    title = re.sub(r"^# *\w+ \d+ ?: *", _(": "), paragraphs[0])
    print(quiet(_("hint {number} of {count}").format(number=number, count=count) + title) + "".join(f"\n\n{fitted(paragraph)}" for paragraph in paragraphs[1:]) + "\n")


lab = the_lab("hint")
hints, taken = lab.hints(), hints_taken()
before = min(taken.get(lab.number, 0), len(hints))
if os.environ.get("AGAIN"):
    for n in range(before):
        show(hints[n], n + 1, len(hints))
    if before == 0:
        print(_("no hint of lab {lab} has been shown yet: make hint LAB={lab} shows the first").format(lab=lab.number))
elif before < len(hints):
    taken[lab.number] = before + 1
    keep(HINTS, taken)
    show(hints[before], before + 1, len(hints))
    left = len(hints) - before - 1
    print(quiet((_("{left} more: make hint LAB={lab}") if left else _("that was the last one; make hint LAB={lab} AGAIN=1 shows them all")).format(left=left, lab=lab.number)))
else:
    print(_("all {count} hints of lab {lab} have been shown: make hint LAB={lab} AGAIN=1 shows them again").format(count=len(hints), lab=lab.number))
    if os.path.exists(lab.solution):
        print(_("make solution LAB={lab} ASK=1 shows the reference beside your file").format(lab=lab.number))
