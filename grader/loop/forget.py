#!/usr/bin/python3
"""For make reset LAB=6: forgets which hints were shown and how the lab was last graded."""
import json
import os

from labs import BUILD, HINTS, hints_taken, keep, text_of, the_lab

lab = the_lab("reset")
taken = hints_taken()
if taken.pop(lab.number, None):
    keep(HINTS, taken)
for file in (f"{BUILD}/verdicts/{lab.number}.json", f"{BUILD}/verdicts/all.json"):
    try:
        verdict, of = json.loads(text_of(file) or ""), os.stat(file)
    except (OSError, ValueError):
        continue
    kept = [each for each in verdict["labs"] if each["number"] != lab.number]
    if len(kept) < len(verdict["labs"]):  # what it says about the other labs keeps its age
        keep(file, {**verdict, "labs": kept}, (of.st_atime, of.st_mtime))
