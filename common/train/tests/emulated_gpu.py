#!/usr/bin/python3
"""Training with the kernels of the cuda backend, on an emulated GPU whose memory the host cannot read: over MPI, and over NCCL with a GPU a
rank. Losses and weights are those of the CPU, up to rounding, measured as layouts.py does; and what a GPU may lack is one error."""
import tempfile

import runs
from layouts_apart import deviation, weights_apart
from runs import check, losses_of, metrics_of, run

MODEL = ["--layers", 2, "--hidden-dim", 24, "--heads", 4, "--seq", 16, "--batch-size", 8, "--samples", 64, "--test", "", "--steps", 6,
         "--lr", 1e-3, "--clip", 0.5, "--eps", 1e-4, "--threads", 1]
PROGRAMS = {"over MPI": ("train-emulated", {"EMULATED_GPUS": "1"}), "over NCCL": ("train-emulated-nccl", {"EMULATED_GPUS": "4"})}


def on(name):
    runs.program, runs.environment_of_runs = PROGRAMS.get(name, ("train", {}))


def as_on_the_cpu(folder):
    def saved(run_name, ranks, *more):
        return losses_of(ranks, *MODEL, "--save", f"{folder}/{run_name}", *more)

    def apart(run_name, losses):
        return deviation(cpu, losses), weights_apart(f"{folder}/cpu", f"{folder}/{run_name}")

    on("the CPU")
    cpu = saved("cpu", 1)
    allowed = [8 * max(column) for column in zip(*(apart(f"moved-{k}", saved(f"moved-{k}", 1, "--perturb", k)) for k in (1, 2, 3)))]
    for name in PROGRAMS:
        on(name)
        for tp, dp in ((1, 1), (2, 1), (1, 2), (2, 2)):
            far = apart(f"{name} {tp}-{dp}", saved(f"{name} {tp}-{dp}", tp * dp, "--tp", tp))
            check(far[0] <= allowed[0] and far[1] <= allowed[1], f"tp {tp}, dp {dp} on GPUs, {name}, gives the CPU's losses and weights",
                  f"{far} apart, {allowed} allowed")
    twice = [losses_of(4, *MODEL, "--tp", 2) for _ in range(2)]
    check(twice[0] == twice[1], "two runs on GPUs are equal to the last digit")
    losses_of(2, *MODEL, "--tp", 2, "--steps", 3, "--save", f"{folder}/half")
    on("the CPU")
    rest = losses_of(1, *MODEL, "--resume", f"{folder}/half")
    check(len(rest) == 3 and deviation(cpu[3:], rest) <= allowed[0], "what was begun on two GPUs goes on on one CPU",
          f"{rest} beside {cpu[3:]}, {allowed[0]} allowed")


def in_16_bits():
    wide = [*MODEL, "--hidden-dim", 96, "--seq", 48]
    on("the CPU")
    single, cpu = losses_of(1, *wide), losses_of(1, *wide, "--amp", "bf16")
    allowed = 8 * max(deviation(cpu, losses_of(1, *wide, "--amp", "bf16", "--perturb", k)) for k in (1, 2, 3))
    on("over NCCL")
    far = deviation(cpu, losses_of(2, *wide, "--amp", "bf16", "--tp", 2))
    check(far <= allowed, "AMP=bf16 on two GPUs gives the losses of AMP=bf16 on the CPU", f"{far} apart, {allowed} allowed")
    steps = [line for line in metrics_of(2, *wide, "--amp", "fp16") if "step" in line]
    far = deviation(single, [line["loss"] for line in steps])
    check(0 < far <= allowed, "AMP=fp16, of more bits, is no farther from single precision", f"{far} apart, {allowed} allowed")
    check(all(line["loss_scale"] == 65536 and line["steps_left_out"] == 0 for line in steps),
          "where all gradients are finite the scale of the loss stays", str(steps[-1]))
    wild = [line for line in metrics_of(2, *wide, "--amp", "fp16", "--optimizer", "sgd", "--lr", 3e4, "--clip", 0) if "step" in line]
    left_out = [line["steps_left_out"] for line in wild]
    check(left_out[-1] > 0 and all(line["loss_scale"] == 65536 / 2**before for line, before in zip(wild[1:], left_out)),
          "steps whose gradients are infinite are left out, and the scale is halved for each", str(left_out))


def says(name, words, *arguments, status=2, ranks=2, **environment):
    on(name)
    done = run(ranks, *MODEL, *arguments, **environment)
    said = done.stdout + done.stderr
    return done.returncode != 0 and said.count("error: ") == 1 and said.count("HINT: ") == 1 and all(w in said for w in words), said


def whatever_is_lacking():
    check(*says("over MPI", ["CUDA-capable"], "--tp", 2, EMULATED_GPUS="0")[:1], "no GPU is one error",
          says("over MPI", ["CUDA-capable"], "--tp", 2, EMULATED_GPUS="0")[1])
    wide = ["--hidden-dim", 1024, "--layers", 8, "--heads", 16]
    good, said = says("over MPI", ["do not fit", "optimiser state", "TP"], *wide, ranks=1)
    check(good, "a GPU whose memory does not suffice is one error, with what is held and what was asked for", said)
    good, said = says("over NCCL", ["rank 1: error", "in NCCL: unhandled system error"], "--tp", 2, EMULATED_NCCL_ERROR="40")
    check(good, "a link that fails in NCCL ends the run, with a rank's name", said)
    good, said = says("over NCCL", ["rank 1: error", "has waited 1 seconds, the last call being"], "--tp", 2, EMULATED_STUCK="300", BALISE_NCCL_TIMEOUT="1")
    check(good, "a wait that takes too long ends the run, with a rank's name and the last call", said)
    on("over NCCL")
    said = run(4, *MODEL, "--tp", 2, EMULATED_GPUS="1").stdout
    check("transport MPI, by way of the host: ranks share a GPU" in said, "ranks that share a GPU go through MPI, and that is said", said)
    said = run(4, *MODEL, "--tp", 2).stdout
    check("transport NCCL" in said, "ranks with a GPU each go through NCCL, and that is said", said)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
    as_on_the_cpu(place)
in_16_bits()
whatever_is_lacking()
