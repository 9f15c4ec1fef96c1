#!/usr/bin/python3
"""Tests grader/stack.py alone, in its own folder: which labs are used at which stage."""
import os
import re
import shutil
import subprocess
import tempfile

ROOT = os.environ["ROOT"]


def check(good, sentence, detail=""):
    print(("ok - " if good else "not ok - ") + sentence)
    if not good:
        print("    " + str(detail).replace("\n", "\n    "))


def asked(*arguments):
    return subprocess.run(["grader/stack.py", *arguments], cwd=tree, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})


def facts(*arguments):
    """Runs stack.py: {name: values}, and the labs among the parts."""
    found = {}
    for line in asked(*arguments).stdout.splitlines():
        name, value = line.split("=")
        found.setdefault(name, []).append(value)
    return found, sorted(int(match[1]) for part in found.get("part", []) if (match := re.fullmatch(r"labs/\w+/(\d+)\.o", part)))


def write(path, text):
    os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
    with open(f"{tree}/{path}", "w", encoding="utf-8") as file:
        file.write(text)


def begin(*numbers):
    """Starts exactly these labs; the others are as handed out."""
    for number, file in FILES.items():
        write(f"labs/{file}", f"int lab{number};\n" if number in numbers else START)
    if 9 not in numbers:
        shutil.copy(f"{tree}/labs/{FILES[1]}", f"{tree}/labs/{FILES[9]}")


with tempfile.TemporaryDirectory() as tree:
    for path in ("grader/stack.py", "grader/labs.mk", "common/base/language.py"):
        os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
        shutil.copy(f"{ROOT}/{path}", f"{tree}/{path}")
    with open(f"{tree}/grader/labs.mk", encoding="utf-8") as table:
        text = table.read().replace("\\\n", "")
    ROWS = [row.split(",") for row in re.findall(r"^..call add_lab,(.*)\)", text, re.M)]
    FILES = {int(row[0]): row[1] for row in ROWS}
    EXPORTS = {int(row[0]): row[4].split() for row in ROWS}
    NEEDS = {int(row[0]): [int(n) for n in row[2].split()] for row in ROWS}
    START = "/* TODO */\nint start(void) { return 1; }\n"
    os.makedirs(f"{tree}/solutions")
    for number, file in FILES.items():
        if number != 9: # begins from lab 1
            write(f"grader/start/{file}", START)
    begin()

    last = max(FILES)
    for stage in range(1, last + 1):
        parts, labs = facts("solutions", str(stage))
        exports = [name for lab in labs for name in EXPORTS[lab]]
        check(len(exports) == len(set(exports)), f"at stage {stage}, each function comes from one lab", labs)
        provided = {name for lab in labs for name in EXPORTS[lab]}
        lacking = [need for lab in labs for need in NEEDS[lab] if need <= stage and not provided >= set(EXPORTS[need])]
        check(not lacking, f"at stage {stage}, the labs that each lab calls are there", (labs, lacking))
        check(parts["stage"] == [str(stage)] and max(labs, default=0) <= stage, f"stage {stage} has no later lab", labs)
    check(facts("solutions")[1] == facts("solutions", str(last))[1], "without UPTO, the solutions are at the last stage")
    check(facts("solutions", "5")[1] == [1, 2, 3, 4, 5], "lab 5 has its feed-forward layers and ColWiseLinear in the model")
    check(facts("solutions", "7")[1] == [1, 3, 4, 6, 7], "lab 7 replaces lab 5, and the labs that only lab 5 calls")
    check(facts("solutions", "9")[1] == [3, 4, 6, 7, 8, 9], "lab 9 replaces lab 1")
    check(not facts("serial")[1] and facts("serial")[0]["stage"] == ["0"], "the serial stack has no lab", facts("serial"))

    check(facts("mine")[0]["stage"] == ["0"], "if no lab is started, STACK=mine has none")
    write(f"labs/{FILES[2]}", "// mine\n\n/* another\n comment */ int  start ( void ) {\n return 1; // here\n}\n")
    check(asked("started", "2").returncode == 1, "comments and white space do not start a lab")
    write(f"labs/{FILES[2]}", START.replace("return 1", 'return "//"[0]'))
    check(asked("started", "2").returncode == 0, "a changed line does, with // within a string")
    write(f"labs/{FILES[2]}", START.replace("*/\n", "*/ // \\\n"))
    check(asked("started", "2").returncode == 0, "a line comment that continues on the next line includes that line")
    os.remove(f"{tree}/labs/{FILES[2]}")
    check(asked("started", "2").returncode == 1, "a missing file is not started")
    begin(1)
    check(asked("started", "9").returncode == 1, "lab 9 is not started while it is the student's lab 1")

    begin(1, 2, 3, 4, 5, 8)
    parts, labs = facts("mine")
    check(parts["stage"] == ["5"] and labs == [1, 2, 3, 4, 5], "STACK=mine uses the last stage whose labs are started", parts)
    check(all(part.startswith("labs/student/") for part in parts["part"] if part.startswith("labs/")), "and uses the student's labs for it", parts)
    told = asked("tell", "mine").stdout
    check("your labs: 1 2 3 4 5; the reference: none" in told and "not used  your labs: 8;" in told and "not started: 6 7" in told,
          "labs started too early are listed, with the labs that the next stage needs", told)
    check("stage     after lab 5\n" in told, "and the stage", told)
    parts, labs = facts("mine", "7")
    check(labs == [1, 3, 4, 6, 7] and parts["author-6"] == ["solution"] and parts["author-4"] == ["student"],
          "with UPTO, the reference stands in for labs that are not started", parts)
    before_16 = [number for number in FILES if number < 16]
    begin(*before_16, 21)
    labs = facts("mine")[1]
    check(max(labs) == 21 and 16 not in labs, "lab 21 trains without lab 16, which no later stage needs", labs)
    begin(*before_16, 16)
    check(16 in facts("mine")[1], "a started lab 16 trains without lab 21", facts("mine"))
    begin(1, 2, 3, 4, 5, 8)
    os.rmdir(f"{tree}/solutions")
    check(facts("mine", "7")[0]["author-6"] == ["missing"], "without a reference, a lab that is not started is missing")
    check("lab 6, which is not started" in asked("missing", "6").stdout, "and the message about labs that build on it says so")
    machine = os.uname().machine
    write(f"grader/given/{machine}/6.o", "")
    check(facts("mine", "7")[0]["author-6"] == ["given"], "an object that came with the kit stands in for the lab")
