#!/usr/bin/python3
"""make progress: a row a lab, from what was graded last, and what to do next."""
import os

from labs import all_labs, bad, good, hints_taken, wrapped


def state_of(lab):
    found = lab.verdict()
    if not found:
        return None, "-", "not started" if lab.is_untouched() else "not graded yet"
    wrong = [check["name"] for check in found["checks"] if check["status"] not in ("passed", "not started", "not run")]
    words = found["state"] if found["state"] != "graded" else "" if found["points"] == found["of"] else ", ".join(wrong)
    return found, f"{found['points']}/{found['of']}", "; ".join(part for part in (found["old"], words) if part)


def next_step(labs):
    done = {lab.number for lab in labs if lab.is_done()}
    for lab in labs:
        if lab.number in done:
            continue
        found = lab.verdict()
        if lab.number == 9 and not os.path.exists(lab.file):
            return f"make start LAB=9 copies your lab 1, then read {lab.folder}/README.md"
        if found and found["old"]:
            return f"make grade LAB={lab.number}"
        if not found or found["state"] == "not started":
            return f"read {lab.folder}/README.md, then edit {lab.file} (make watch LAB={lab.number} grades it whenever you save)"
        return f"{lab.file}: make grade LAB={lab.number} says what is wrong, make hint LAB={lab.number} helps"
    return "all labs have full marks: make train STACK=mine NTASKS=4 TP=2 trains with them, make hand-in NAME=\"...\" packs them"


labs, taken, total = all_labs(), hints_taken(), 0
print(f"  lab {'':28} {'points':>6}  {'hints':>5}")
for lab in labs:
    found, points, words = state_of(lab)
    total += found["points"] if found else 0
    hints = f"{taken[lab.number]}/{len(lab.hints())}" if lab.number in taken else ""
    full = found and found["points"] == found["of"]
    mark = good("✓") if full else bad("✗") if found and found["state"] != "not started" else " "
    before = 51
    lines = wrapped(words, before)
    print(f"  {lab.number:>2}  {lab.title:28} {points:>6}  {hints:>5} {mark} {lines[0]}".rstrip())
    for line in lines[1:]:
        print(" " * before + line)
print(f"\n{total} of {sum(lab.points for lab in labs if not lab.is_bonus)} points, as they were graded last")
print("next: " + "\n      ".join(wrapped(next_step(labs), 6)))
