#!/usr/bin/python3 -EsB
"""make progress: one row per lab, from its last grading, and what to do next."""
import os

from labs import PREDICTIONS, _, all_labs, bad, both_numbers, good, hints_taken, in_language, kept_of_labs, quiet, wrapped


def state_of(lab):
    found = lab.verdict()
    if not found:
        return None, "-", _("not started") if lab.is_untouched() else _("not graded yet")
    wrong = [_(check["name"]) for check in found["checks"] if check["status"] not in ("passed", "not started", "not run")]
    words = _(found["state"]) if found["state"] != "graded" else "" if found["points"] == found["of"] else \
        _("no check passed") if len(wrong) == len(found["checks"]) else ", ".join(wrong)
    return found, f"{found['points']}/{found['of']}", _("; ").join(part for part in (found["old"], words) if part)


def next_step(labs):
    done = {lab.number for lab in labs if lab.is_done()}
    for lab in labs:
        if lab.number in done:
            continue
        found, readme = lab.verdict(), in_language(f"{lab.folder}/README.md")
        if lab.number == 9 and not os.path.exists(lab.file):
            return _("make start LAB=9 copies your lab 1; then read {readme}").format(readme=readme)
        if found and found["old"]:
            return f"make grade LAB={lab.number}"
        if not found or found["state"] == "not started":
            return _("read {readme}, then edit {file} (make watch LAB={lab} grades it whenever you save)").format(readme=readme, file=lab.file, lab=lab.number)
        return _("{file}: make grade LAB={lab} says what is wrong; make hint LAB={lab} helps").format(file=lab.file, lab=lab.number)
    return _("all labs have full marks: make train STACK=mine NTASKS=4 TP=2 trains with them; make hand-in NAME=\"...\" packs them")


labs, taken, predictions, earned = all_labs(), hints_taken(), kept_of_labs(PREDICTIONS), {}
heads = (_("lab"), _("points"), _("hints"))
hints_wide = max(5, len(heads[2]))
print(f"  {heads[0]:32} {heads[1]:>6}  {heads[2]:>{hints_wide}}")
for lab in labs:
    found, points, words = state_of(lab)
    earned[lab.part] = earned.get(lab.part, 0) + (found["points"] if found else 0)
    hints = f"{taken[lab.number]}/{len(lab.hints())}" if lab.number in taken else ""
    full = found and found["points"] == found["of"]
    mark = good("✓") if full else bad("✗") if found and found["state"] != "not started" else " "
    before = 46 + hints_wide
    lines = wrapped(words, before)
    print(f"  {lab.number:>2}  {_(lab.title):28} {points:>6}  {hints:>{hints_wide}} {mark} {lines[0]}".rstrip())
    for line in lines[1:]:
        print(" " * before + line)
    if lab.number in predictions:
        for line in wrapped(both_numbers(lab, predictions[lab.number]), 6):
            print(" " * 6 + quiet(line))
print()
for part, points in earned.items():
    of = sum(lab.points for lab in labs if lab.part == part)
    print(_("part {part}: {points} of {of} points when last graded").format(part=part, points=points, of=of))
next_is = _("next: ")
print(next_is + f"\n{' ' * len(next_is)}".join(wrapped(next_step(labs), len(next_is))))
