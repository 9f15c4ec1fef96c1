#!/usr/bin/python3 -EsB
"""make measure LAB=6: shows the number that a student predicted, as the grader counts it in one
case of the lab."""
import os
import shlex
import subprocess
import sys

from labs import PREDICTIONS, _, asked, both_numbers, in_language, in_unit, keep, kept_of_labs, the_lab, wrapped

ROUNDING = 0.01  # a prediction within 1 % is right


def measured(lab):
    """The number that the judge counts. On failure, the judge prints why, and the program ends."""
    done = subprocess.run(shlex.split(os.environ["MEASURING"]), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(2)
    return float(done.stdout)


def compare(lab, predicted, number):
    if abs(predicted - number) <= ROUNDING * number:
        print(_("The prediction is right, to within 1%."))
        return
    ratio = f"{number / predicted:.3g}" if predicted else "-"
    print("\n".join(wrapped(_("measured / predicted = {ratio}: the box \"Predict, then measure\" in {readme} says what to look at.").format(
        ratio=ratio, readme=in_language(f"{lab.folder}/README.md")), 0)))


def main():
    lab = the_lab("measure")
    number = measured(lab)
    print(asked(lab))
    if os.environ["AUTHOR"] == "solution":  # the reference's number is not the student's progress
        print(_("The reference: {number}").format(number=in_unit(number, lab)))
        return
    kept = kept_of_labs(PREDICTIONS)
    mine = kept.setdefault(lab.number, {})
    mine["measured"] = number
    keep(PREDICTIONS, kept)
    print(both_numbers(lab, mine))
    if "predicted" in mine:
        compare(lab, mine["predicted"], number)


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
