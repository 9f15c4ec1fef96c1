#!/usr/bin/python3
"""Of make reset LAB=6: no hint of the lab was taken, and it was never graded."""
import json
import os

from labs import BUILD, hints_taken, keep_hints, the_lab

lab = the_lab("reset")
taken = hints_taken()
if taken.pop(lab.number, None):
    keep_hints(taken)
for name in (str(lab.number), "all"):
    file = f"{BUILD}/verdicts/{name}.json"
    try:
        with open(file) as text:
            verdict = json.load(text)
    except (OSError, ValueError):
        continue
    kept = [each for each in verdict["labs"] if each["number"] != lab.number]
    if len(kept) == len(verdict["labs"]):
        continue
    verdict["labs"], of = kept, os.stat(file)
    with open(f"{file}.new", "w") as text:
        json.dump(verdict, text)
    os.utime(f"{file}.new", (of.st_atime, of.st_mtime))  # what it says of the other labs is as old as it was
    os.replace(f"{file}.new", file)
