#!/usr/bin/python3 -EsB
"""make predict LAB=6 IS=1.5e6: notes the student's prediction of the number that make measure LAB=6
counts."""
import math
import os
import re

from labs import PREDICTIONS, _, asked, both_numbers, give_up, in_unit, keep, kept_of_labs, the_lab

lab, text = the_lab("predict"), os.environ.get("IS", "")
if not lab.question:
    give_up(_("lab {lab} has no number to predict").format(lab=lab.number), _("a lab that has one asks for it in its text, in the box \"Predict, then measure\""))
example = f"make predict LAB={lab.number} IS=12345"
if not text:
    give_up(_("IS is missing: your answer to this question") + "\n" + asked(lab, 4), example)
number = float(text) if re.fullmatch(r"\d{1,30}(\.\d{0,30})?([eE][+-]?\d{1,3})?", text, re.ASCII) else math.inf
if math.isinf(number):
    give_up(_("'{text}' is not a number").format(text=text), _("no spaces or commas: {example}, or IS=1.5e6").format(example=example))
kept = kept_of_labs(PREDICTIONS)
mine = kept.setdefault(lab.number, {})
before = mine.get("predicted", number)
mine["predicted"], mine["late"] = number, "measured" in mine
keep(PREDICTIONS, kept)
print(asked(lab))
print(both_numbers(lab, mine))
if before != number:
    print(_("This replaces your earlier prediction: {before}.").format(before=in_unit(before, lab)))
if not mine["late"]:
    print(_("next: make measure LAB={lab} counts it, once the lab is solved.").format(lab=lab.number))
