#!/usr/bin/python3
"""If a GPU, its driver or NCCL lacks something, the run prints one error, once, with a HINT, and
ends with status 2. If it can continue, it prints a line instead. The environment sets the
properties of an emulated GPU."""
import os

import runs
from runs import BUILD, check, on, run

MODEL = ["--layers", 2, "--hidden-dim", 24, "--heads", 4, "--seq", 16, "--batch-size", 8, "--samples", 64, "--test", "", "--steps", 4, "--threads", 1]
WIDE = ["--hidden-dim", 1024, "--layers", 8, "--heads", 16]
LONG = ["--hidden-dim", 256, "--layers", 4, "--seq", 512, "--batch-size", 32]


def ends(sentence, name, words, hints, *arguments, ranks=2, silent=(), **environment):
    on(name)
    done = run(ranks, *MODEL, "--tp", ranks, *arguments, **environment)
    said = done.stdout + done.stderr
    hint = said.partition("HINT: ")[2].partition("\n")[0]
    check(done.returncode == 2 and said.count("error: ") == 1 and said.count("HINT: ") == 1 and all(w in said for w in words) and
          all(h in hint for h in hints) and not any(s in said for s in silent), sentence, f"status {done.returncode}\n{said}")


for way in ("over MPI", "over NCCL"):
    ends(f"no GPU is one error, {way}", way, ["no CUDA-capable device"], ["make doctor", "BACKEND=cpu"], EMULATED_GPUS="0", silent=["transport"])
ends("hidden GPUs are one error, which says what hides them", "over MPI", ["CUDA_VISIBLE_DEVICES='7' hides"], ["BACKEND=cpu"],
     EMULATED_GPUS="0", CUDA_VISIBLE_DEVICES="7")
ends("no driver is one error", "over MPI", ["no NVIDIA driver"], ["make doctor", "BACKEND=cpu"], EMULATED_DRIVER="0")
ends("a driver older than the toolkit is one error, with both versions", "over NCCL", ["up to 12.4", "CUDA 13.0"],
     ["update the driver", "BACKEND=cpu"], EMULATED_DRIVER="12040")
ends("a GPU that another process occupies is one error, with the rank that needs it", "over MPI", ["local rank 1 cannot open GPU 1"], ["nvidia-smi"],
     EMULATED_GPUS="2", EMULATED_TAKEN="1")
for way in ("over MPI", "over NCCL"):
    ends(f"GPUs of two types in one run are one error, with their names, {way}", way, ["rank 0 computes on emulated GPU,", "rank 1 on emulated GPU of another type"],
         ["CUDA_VISIBLE_DEVICES"], EMULATED_GPUS="2", EMULATED_MIXED="1")

ends("weights that do not fit on a GPU are one error, with requested, held and free memory, and TP in the HINT", "over MPI",
     ["GPU 0 (emulated GPU) with 1074 MB", "MB of it free", "MB more were requested (optimiser state)", "in addition to weights 411", "gradients 411"], ["TP"],
     *WIDE, ranks=1, silent=["BATCH_SIZE", "AMP=off"])
ends("so are rounded weights, with AMP=off in the HINT", "over MPI", ["(optimiser state)"], ["TP", "AMP=off"], *WIDE, "--amp", "bf16", ranks=1,
     EMULATED_MEMORY="1200")
ends("activations that do not fit are one error with their shape, and BATCH_SIZE and SEQ in the HINT", "over MPI",
     ["more were requested (activations: [", "of it free"], ["TP", "BATCH_SIZE", "SEQ"], *LONG, ranks=1, EMULATED_MEMORY="200")
ends("MEM gives the same error on a GPU", "over MPI", ["the 105 MB that MEM allows", "(activations: ["], ["TP", "BATCH_SIZE", "SEQ", "raise MEM"], *LONG,
     "--mem", "100M", ranks=1)
ends("out of memory on several ranks is one error", "over NCCL", ["more were requested", "of it free"], ["TP"], *LONG, EMULATED_MEMORY="100")

ends("a link that fails in NCCL ends the run, and a rank is named", "over NCCL", ["rank 1: error", "in NCCL: unhandled system error"], [],
     EMULATED_NCCL_ERROR="40")
# Rank 1 is stuck; rank 0 waits for it with a longer time limit.
impatient = f"{BUILD}/tests/impatient"
os.makedirs(os.path.dirname(impatient), exist_ok=True)
with open(impatient, "w") as script:
    script.write(f"""#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && BALISE_NCCL_TIMEOUT=5 || BALISE_NCCL_TIMEOUT=300
export BALISE_NCCL_TIMEOUT
exec {BUILD}/train-emulated-nccl "$@"
""")
os.chmod(impatient, 0o755)
runs.ON_GPUS["over NCCL, rank 0 patient"] = ("tests/impatient", runs.ON_GPUS["over NCCL"][1])
ends("a wait that takes too long ends the run, and a rank and its last call are named", "over NCCL, rank 0 patient",
     ["rank 1 has waited ", " seconds; its last call was"], ["BALISE_NCCL_TIMEOUT"], EMULATED_STUCK="100")
ends("so does a stream that accepts no more work", "over NCCL, rank 0 patient",
     ["rank 1 has waited ", " seconds for the GPU to accept more work; its last call was"], ["BALISE_NCCL_TIMEOUT"], EMULATED_FULL="200")
for call, what in (("1", "joining #0 of group world"), ("2", "split #0 of group world/0"), ("9", "all_reduce")):
    ends(f"a call that does not return from NCCL ends the run, and a rank is named: {what}", "over NCCL", ["has waited ", " seconds within NCCL", what],
         ["BALISE_NCCL_TIMEOUT"], EMULATED_NCCL_STUCK=call, BALISE_NCCL_TIMEOUT="5")
ends("an NCCL without ncclCommSplit is one error", "over NCCL", ["is 2.17.0, older", "2.28.9", "with, without ncclCommSplit"], ["TRANSPORT=mpi"],
     EMULATED_NCCL_VERSION="21700")
ends("so is an NCCL older than the one with which the kit was built", "over NCCL", ["is 2.20.3, older"], ["LD_LIBRARY_PATH"], silent=["ncclCommSplit"],
     EMULATED_NCCL_VERSION="22003")

on("over NCCL")
kept = run(2, *MODEL, "--tp", 1, "--steps", 8, EMULATED_EVENTS="24")
check(kept.returncode == 0, "started sums create no events after the first step", kept.stdout + kept.stderr)
for tp in (1, 2):
    on("over MPI")
    kept = run(2, *MODEL, "--tp", tp, "--steps", 8, EMULATED_PINNED="30")
    check(kept.returncode == 0, f"exchanges through the host allocate no pinned memory after the first step, tp {tp}", kept.stdout + kept.stderr)
on("over NCCL")
few = run(4, *MODEL, "--tp", 2, EMULATED_GPUS="3")
check(few.returncode == 0 and few.stdout.count("transport MPI via the host: 4 ranks share 3 GPUs") == 1 and "error" not in few.stderr,
      "ranks that share GPUs communicate through MPI, and a line says so", few.stdout + few.stderr)
older = run(2, *MODEL, "--tp", 2, EMULATED_NCCL_VERSION="22803")
check(older.returncode == 0 and "transport NCCL" in older.stdout, "an older patch release of NCCL suffices", older.stdout + older.stderr)
enough = run(4, *MODEL, "--tp", 2).stdout
check("transport NCCL" in enough, "ranks with a GPU each communicate through NCCL, and a line says so", enough)
