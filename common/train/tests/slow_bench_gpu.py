#!/usr/bin/env python3
"""make bench BACKEND=cuda, on an emulated GPU with a tiny model: its measurements and its errors.
The test checks no times."""
import contextlib
import functools
import io
import json
import os
import re
import shutil
import unittest.mock

import measuring
from measuring import BUILD, check, run
import aims
import gpu
import peers
import turns

refused = functools.partial(measuring.refused, "common/bench/bench.py", BACKEND="emulated")

work = os.path.join(BUILD, "bench-gpu-test")
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)


def script(name, text):
    path = os.path.join(work, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


refused("an unknown backend is refused", "'gpu'", BACKEND="gpu")
refused("a section that does not run on a GPU is refused", "'verdicts' on a GPU", ONLY="verdicts")
refused("an unknown AMP is refused", "'int8'", AMP="int8")
refused("an unknown step is refused", "'base-512 tp4'", ONLY="steps/base-512 tp4")
refused("models that are not five numbers each are refused", "MODELS cannot be '2 64 4 16'", MODELS="2 64 4 16")
refused("STEPS that covers only the warm-up is refused", "STEPS cannot be '2'", STEPS="2")
refused("a peak that is not three numbers is refused", "PEAK cannot be '67 989'", PEAK="67 989")
refused("a Python without a PyTorch that sees a GPU is refused", "no PyTorch that sees a GPU", ONLY="steps", VS="torch", TORCH=script("blind", "exit 1\n"))
done = run("make", f"BUILD={BUILD}", "bench", "BACKEND=cuda", "CUDA=")
check("BACKEND=cuda without the CUDA Toolkit is one error", done.returncode == 2 and "needs the CUDA Toolkit" in done.stderr
      and done.stderr.count("error: ") == 1 and done.stderr.count("HINT: ") == 1 and len(done.stderr.splitlines()) == 3, done.stdout + done.stderr)

# ---- all of it, emulated -----------------------------------------------------------------------------------------------

kept = os.path.join(work, "kept.json")
done = run("make", f"BUILD={BUILD}", "bench", "BACKEND=emulated", "MODELS=1 64 2 8 4", "STEPS=3", "ROUNDS=1", "AMP=bf16", "PEAK=0.1 0.2 0.4",
           f"SAVE={kept}", EMULATED_GPUS="2")
check("kernels, collectives and steps of a tiny model are measured on an emulated GPU", done.returncode == 0 and not done.stderr, done.stdout + done.stderr)
measured = {}
if os.path.exists(kept):
    with open(kept, encoding="utf-8") as file:
        measured = {f"{row['section']}: {row['name']}": row for row in json.load(file)["rows"]}
check("each layout has a row on an emulated GPU: with labs and without, replicas, ranks that split, MPI and NCCL", {name[6:] for name in measured if name.startswith("step: ")}
      == {f"1x64-8 {layout} bf16" for layout in gpu.LAYOUTS}, sorted(measured))
check("products on an emulated GPU have a row in each precision", {f"kernel: linear_forward up{amp} 64" for amp in ("", " tf32", " bf16", " fp16")} <= set(measured),
      sorted(measured))
check("collectives on an emulated GPU go through MPI and NCCL", {f"collective: all_reduce, 4 KiB per rank, {how}" for how in
      ("2 ranks through MPI", "1 rank through NCCL", "2 ranks through NCCL")} <= set(measured), sorted(measured))
check("the labs' stack on one rank is compared with the serial stack", re.search(r"one rank bf16, its time / that of the serial stack .* 1\.02", done.stdout),
      done.stdout)
check("launch gaps are reported, or why they are not", "launch gaps are not measured" in done.stdout or "neither kernels nor copies run" in done.stdout, done.stdout)

# ---- figures, by hand --------------------------------------------------------------------------------------------------

with unittest.mock.patch.dict(os.environ, {"MODELS": "2 64 4 16 8"}):
    bench = gpu.Bench(BUILD, work, "emulated", "", os.environ.get)
bench.peak = {"off": 0.01, "bf16": 0.05}
case = gpu.Case("2x64-16", "one rank", "bf16")
# Operations per token: forward, 24 · 64² + 4 · 16 · 64 = 102,400 for each of 2 blocks; backward,
# twice that for the first block and 8 · 64² for the last. There are 128 tokens in 10 ms.
share = bench.share(case, gpu.Row("step", "", "ms", [10.0]))
check("the share of the peak counts only needed products, relative to the peak for the AMP setting", abs(share - 100 * 128 * (4 * 102400 + 32768) / 0.01 / 0.05e12) < 1e-9, share)
check("a GPU is recognised by its name, and none by a part of another's", [gpu.peak(f"cuda (NVIDIA {name}, 1 GB, CUDA 13.0)", "").get("bf16") for name in
      ("H200", "H100 80GB HBM3", "H100 PCIe", "A100-SXM4-80GB", "L40S", "L4", "L40", "T4")] == [989, 989, 756, 312, 362, 121, None, None])
check("TRANSPORT=nccl has no rows over MPI", set(gpu.Bench(BUILD, work, "emulated", "nccl", lambda _: "").layouts)
      == {"one rank nccl", "tp2 nccl", "dp2 nccl"})

twin = script("twin", 'case $1 in -c) echo 2.99-fake ;; *) echo "$*" >> "$0.calls"; echo \'{"torch": "2.99-fake", "seconds": [9, 9, 0.02], "device_bytes": 7e6}\' ;; esac\n')
cases = {one.name(): one for one in (case, gpu.Case("2x64-16", "serial stack", "bf16"))}
once = iter([{"seconds": [9, 9, 0.025], "device_bytes": 5e6}, {"seconds": [9, 9, 0.02], "device_bytes": 5e6}] * 2)
with unittest.mock.patch.object(bench, "run", lambda _: next(once)), contextlib.redirect_stdout(io.StringIO()) as said:
    bench.measure(turns.Here(BUILD, work, 2, peers.find_on_gpu([twin])), cases)
with open(twin + ".calls", encoding="utf-8") as file:
    asked = [line.split()[-2:] for line in file]
check("PyTorch runs the step of one rank, eager and compiled, alternating", asked == [["bf16", "cuda-eager"], ["bf16", "cuda-compiled"]] * 2, asked)
lines = {line.split("  ")[1]: line.split() for line in said.getvalue().splitlines() if line.startswith("  2x64")}
check("PyTorch's time relative to the kit's is shown with its target", lines["2x64-16 one rank bf16, PyTorch 2.99-fake compiled"][-3:] == ["0.80", "1", "missed"], said.getvalue())
check("a stack a quarter slower than the serial stack misses its target", re.search(r"serial stack .*1\.25\s+1\.02\s+missed", said.getvalue()), said.getvalue())
check("every target on a GPU belongs to a row", set(aims.MFU) <= {gpu.Case(model, layout, amp).name() for model in gpu.MODELS for layout in gpu.LAYOUTS for amp in gpu.AMPS})

check("time is idle if no span covers it, however the spans overlap", gpu.busy([(0, 4), (2, 5), (2, 3), (8, 12)], 1) == 8, gpu.busy([(0, 4), (2, 5), (2, 3), (8, 12)], 1))
trace = script("nsys", 'echo Processing; echo; echo "Start (ns),Duration (ns),CorrId,Name"; echo "100,50,1,early"; echo "1000,250,2,\\"a, b\\""; echo "1500,500,3,c"\n')
check("a quarter of the last µs of a trace is idle if kernels run for three quarters", abs(gpu.idle_share(trace, "record", 1e-6) - 25) < 1e-9, gpu.idle_share(trace, "record", 1e-6))
with contextlib.redirect_stderr(io.StringIO()) as complained:
    try:
        ended = gpu.idle_share(script("mute", "exit 0\n"), "record", 1)
    except SystemExit as end:
        ended = end.code
check("a trace without kernels is an error", ended == 2 and "HINT" in complained.getvalue(), complained.getvalue())
