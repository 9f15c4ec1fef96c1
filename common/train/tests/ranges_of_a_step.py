#!/usr/bin/python3
"""GPU profilers see the kit's work as nested NVTX ranges. Tested on an emulated GPU with emulated
ranges."""
import os
import tempfile

from runs import check, on, run

on("over MPI")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "ranges")
    done = run(1, "--layers", 2, "--hidden-dim", 24, "--heads", 4, "--seq", 16, "--batch-size", 8, "--samples", 16, "--test", "", "--steps", 2, "--threads", 1,
               "--tp", 1, EMULATED_RANGES=path)
    if done.returncode:
        raise SystemExit(f"not ok - training runs\n{done.stdout}{done.stderr}")
    with open(path) as file:
        lines = file.read().splitlines()
open_ranges, seen, wrong = [], [], []
for line in lines:
    if line != "-":
        open_ranges.append(line[2:])
        seen.append(" > ".join(open_ranges))
    elif open_ranges:
        open_ranges.pop()
    else:
        wrong.append("a range ends that did not begin")
check(not wrong and not open_ranges, "every range of a run ends", done.stderr + "\n".join(wrong + open_ranges))
check(seen.count("step") == 2 and seen.count("step > forward > block") == 4, "a step is a range, and so is each block of its forward pass", "\n".join(seen))
for place in ("step > forward > embedding", "step > forward > classifier", "step > backward > linear", "step > backward > attention",
              "step > reduction over replicas", "step > optimiser"):
    check(place in seen, f"{place} is a range", "\n".join(sorted(set(seen))))
