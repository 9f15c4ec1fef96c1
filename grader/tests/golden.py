"""golden.py FILE FOLDER...: what the reports of the answers in these folders say: the failing checks
and the first reason, with its HINT and its numbers. Writes that to FILE, if there is no such file;
else prints what differs from it: the answers of which other checks fail, then those with another
reason, each change once with all its answers. mutants.sh calls it with GOLDEN=FILE."""
import os
import re
import sys
import textwrap


def said_in(folder):
    """The checks that fail, and the first reason, with its HINT and its numbers."""
    with open(f"{folder}/report", encoding="utf-8") as file:
        report = file.read()
    checks = re.findall(r"^  ✗ (.*[a-z]) +\d+/\d+", report, re.M) or re.findall(r": (does not build|refused) +0/", report)
    parts = re.split(r"^(?=  \S|Lab )", report, flags=re.M)
    wrong = next((part for part in parts if re.match(r"  ✗|Lab .*: (does not build|refused)", part)), "")
    lines = wrong.split("\n", 1)[-1]
    reason = re.split(r"^ +(?:not reached|also failing|again|calls):? ", lines, maxsplit=1, flags=re.M)[0]
    return ", ".join(checks), " ".join(reason.split())


def read(path):
    with open(path, encoding="utf-8") as file:
        return {name: (checks, reason) for name, checks, reason in (line.rstrip("\n").split("\t") for line in file)}


def show(title, changes):
    print(f"answers of which {title}: {sum(map(len, changes.values()))}")
    for (before, now), names in sorted(changes.items(), key=lambda item: -len(item[1])):
        print(textwrap.fill(" ".join(names), 96, initial_indent="  ", subsequent_indent="  "))
        for mark, text in (("-", before), ("+", now)):
            print(textwrap.fill(text or "nothing", 96, initial_indent=f"    {mark} ", subsequent_indent="      "))


def main():
    path, *folders = sys.argv[1:]
    now = {f"{os.path.basename(os.path.dirname(folder))[:-1]} {os.path.basename(folder)}": said_in(folder) for folder in folders}
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{name}\t{checks}\t{reason}\n" for name, (checks, reason) in sorted(now.items()))
        return
    before, changes = read(path), ({}, {})
    for name in sorted(now.keys() & before.keys()):
        for old, new, of in zip(before[name], now[name], changes):
            if old != new:
                of.setdefault((old, new), []).append(name)
    show("other checks fail", changes[0])
    show("the reason has changed", changes[1])
    print(f"not in {path}: {' '.join(sorted(now.keys() - before.keys())) or 'none'}")


main()
