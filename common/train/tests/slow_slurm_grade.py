#!/usr/bin/python3
"""make grade ON=slurm: a node gives the same verdicts as this machine, as its own job and within an
allocation."""
import contextlib
import csv
import os
import re
import shutil
import subprocess

from runs import BUILD, ROOT, check
from slurm_cluster import cluster, missing



def verdict(text):
    """The judge's report, without the queue's lines and without times."""
    lines = [line for line in text.splitlines() if not re.match(r"job \d+|make: ", line)]
    return re.sub(r", \d+\.\d s\)", ")", "\n".join(lines))


def tree_of_a_student(mutant):
    """Makes a copy of the kit in which lab 6 is a wrong answer and lab 1 is not started."""
    script = f'. grader/tests/tree.sh; make_tree slurm; python3 grader/tests/answer.py {mutant} > "$(lab_file 6)"; echo "$tree"'
    return subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def solutions(one):
    status, text = one.made("grade", "SOLUTION=1", "ON=slurm")
    check(status == 0 and "Score: 100/100" in text and re.search("(running|ran) on n", text), "the solutions get full marks on a node", text)


def same_verdict(one, mutant, lab, expected, what):
    tree = tree_of_a_student(mutant)
    words = ["-C", tree, f"BUILD={tree}/build", "grade", f"LAB={lab}", "SEED=5"]
    here_status, here = one.made(*words)
    status, there = one.made(*words, "ON=slurm")
    # the job, not make, runs the judge on a node, so make ends as it does below any failed program
    check(here_status == 1 and status == 2 and verdict(here) == verdict(there) and expected in there and re.search("(running|ran) on n", there),
          f"lab {lab} ({what}) has the same verdict on a node as here", f"here {here_status}:\n{here}\nthere {status}:\n{there}")


def within_an_allocation(one):
    """Grades inside an allocation of salloc; the step runs on its node."""
    done = subprocess.run(["salloc", "--quiet", "-p", "second", "-n", "2", "make", f"BUILD={BUILD}", "grade", "SOLUTION=1", "LAB=1", "ON=slurm"],
                          env=one.environment, cwd=ROOT, capture_output=True, text=True)
    check(done.returncode == 0 and re.search(r"Score: (\d+)/\1$", done.stdout, re.MULTILINE) and "pending" not in done.stdout,
          "within an allocation, a lab is graded there, as a step", done.stdout + done.stderr)


def sandbox_is_told(one):
    status, text = one.made("grade", "SOLUTION=1", "LAB=1", "ON=slurm", "SANDBOX=off")
    check(status == 0 and re.search("sandbox", text), "the report says how ranks on a node are isolated", text)


def report_is_written(one):
    status, text = one.made("grade", "SOLUTION=1", "LAB=1", "ON=slurm", "FORMAT=tap", f"OUT={one.folder}/a report's.tap")
    with open(f"{one.folder}/a report's.tap") as file:
        check(status == 0 and "ok 1" in file.read(), "a report is written to OUT", text)


def a_class(one):
    """Runs the gradebook as a step of one task; the gradebook starts the ranks itself."""
    folder = f"{one.folder}/submissions/Ada/labs/01-duplication-allreduce"
    os.makedirs(folder)
    shutil.copy(f"{ROOT}/solutions/01-duplication-allreduce/collectives.c", folder)
    done = subprocess.run(["srun", "--quiet", "-p", "second", "--ntasks=1", "--cpus-per-task=2", "make", f"BUILD={BUILD}", "gradebook",
                           f"DIR={one.folder}/submissions", f"OUT={one.folder}/grades.csv", "JOBS=1"],
                          env=one.environment, cwd=ROOT, capture_output=True, text=True)
    with contextlib.suppress(OSError), open(f"{one.folder}/grades.csv", newline="") as file:
        rows = list(csv.DictReader(file))
        check(done.returncode == 0 and len(rows) == 1 and rows[0]["student"] == "Ada" and rows[0]["lab 1"] == "9", "srun grades a class on a node", f"{rows}")
        return
    check(False, "srun grades a class on a node", done.stdout + done.stderr)


def main():
    why = missing()
    if why:
        print(f"skip - grading through Slurm: {why}")
        return
    with cluster() as one:
        solutions(one)
        for mutant in ("06-no_f", "06-gelu_missing"):
            same_verdict(one, mutant, 6, "✗", mutant)
        same_verdict(one, "06-no_f", 1, "not started", "not started")
        within_an_allocation(one)
        sandbox_is_told(one)
        report_is_written(one)
        a_class(one)


main()
