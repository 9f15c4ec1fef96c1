#!/usr/bin/python3 -EsB
"""For make trace, tape, report and debug: prints the seed and the case of the first check that
failed when the lab was last graded, as "SEED CASE"; nothing if no check failed, or if the failure
did not recur when the case ran alone."""
from labs import the_lab

lab = the_lab("debug")
found = lab.verdict()
failed = [check["again"] for check in found["checks"] if "again" in check] if found else []
if failed:
    words = dict(word.split("=", 1) for word in failed[0].split() if "=" in word)
    print(words["SEED"], words["CASE"])
