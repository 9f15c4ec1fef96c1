#!/usr/bin/python3 -EsB
"""make solution LAB=6 [ASK=1]: shows how the reference differs from the student's file, after full
marks or with ASK=1."""
import difflib
import os

from labs import _, bad, give_up, good, quiet, text_of, the_lab

lab = the_lab("solution")
if not os.path.exists(lab.solution):
    give_up(_("the handout contains no solutions"), _("make hint LAB={lab}, or ask your instructor").format(lab=lab.number))
if not lab.is_done() and not os.environ.get("ASK"):
    found = lab.verdict()
    so_far = _("it has {points} of {of} points").format(points=found["points"], of=found["of"]) if found else _("it has not been graded yet")
    give_up(_("lab {lab} has to be graded again: {why}").format(lab=lab.number, why=found["old"]) if found and found["old"] else
            _("lab {lab} does not have full marks: {so_far}").format(lab=lab.number, so_far=so_far),
            _("make grade LAB={lab} first (make hint helps); ASK=1 shows the reference anyway").format(lab=lab.number))

mine, reference = ((text_of(file) or "").splitlines() for file in (lab.file, lab.solution))
changes = list(difflib.unified_diff(mine, reference, lab.file, lab.solution, n=2, lineterm=""))
for line in changes:
    print(quiet(line) if line.startswith(("---", "+++", "@@")) else good(line) if line.startswith("+") else bad(line) if line.startswith("-") else line)
if not changes:
    print(_("{file} is identical to the reference").format(file=lab.file))
