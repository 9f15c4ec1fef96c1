#!/usr/bin/python3
"""make solution LAB=6 [ASK=1]: what the reference does otherwise than the student's file; after full marks, or if it is asked for."""
import difflib
import os

from labs import bad, give_up, good, quiet, the_lab

lab = the_lab("solution")
if not os.path.exists(lab.solution):
    give_up("there are no solutions in what you were handed out", f"make hint LAB={lab.number}, or ask your instructor")
if not lab.is_done() and not os.environ.get("ASK"):
    found = lab.verdict()
    so_far = f"as it was graded: {found['old']}" if found and found["old"] else \
        f"it has {found['points']} of {found['of']} points" if found else "it was not graded yet"
    give_up(f"lab {lab.number} has not full marks: {so_far}", f"make grade LAB={lab.number} first, make hint LAB={lab.number} helps; or ASK=1 shows it all the same")


def read(file):
    try:
        with open(file) as text:
            return [line.rstrip("\n") for line in text if not line.strip().startswith("///")]
    except OSError:
        return []


changes = list(difflib.unified_diff(read(lab.file), read(lab.solution), lab.file, lab.solution, n=2, lineterm=""))
for line in changes:
    print(quiet(line) if line.startswith(("---", "+++", "@@")) else good(line) if line.startswith("+") else bad(line) if line.startswith("-") else line)
if not changes:
    print(f"{lab.file} is the reference, word for word")
