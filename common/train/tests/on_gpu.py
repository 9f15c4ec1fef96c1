#!/usr/bin/python3
"""Training with the cuda backend's kernels, on an emulated GPU whose memory the host cannot read
or, with BACKEND=cuda, on a real one: over MPI, and over NCCL with one GPU per rank. Losses and
weights equal those of the CPU, up to rounding, measured as in layouts.py. Memory and bytes are those
of make check."""
import glob
import tempfile

from layouts_apart import deviation, weights_apart
from runs import GPU, ON_GPUS, as_in_dry_run, check, lacks_bf16, losses_of, metrics_of, on, run

MODEL = ["--layers", 2, "--hidden-dim", 24, "--heads", 4, "--seq", 16, "--batch-size", 8, "--samples", 64, "--test", "", "--steps", 6,
         "--lr", 1e-3, "--clip", 0.5, "--eps", 1e-4, "--threads", 1]


def have_a_gpu_each():
    """Do two ranks have a GPU each? Those that share one communicate over MPI."""
    return GPU == "emulated" or len(glob.glob("/dev/nvidia[0-9]*")) > 1


def as_on_the_cpu(folder):
    def saved(run_name, ranks, *more):
        return losses_of(ranks, *MODEL, "--save", f"{folder}/{run_name}", *more)

    def apart(run_name, losses):
        return deviation(cpu, losses), weights_apart(f"{folder}/cpu", f"{folder}/{run_name}")

    on("the CPU")
    cpu = saved("cpu", 1)
    allowed = [8 * max(column) for column in zip(*(apart(f"moved-{k}", saved(f"moved-{k}", 1, "--perturb", k)) for k in (1, 2, 3)))]
    for name in ON_GPUS:
        on(name)
        for tp, dp, pp in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1), (1, 1, 2), (2, 1, 2)):
            run_name = f"{name} {tp}-{dp}-{pp}"
            far = apart(run_name, saved(run_name, tp * dp * pp, "--tp", tp, "--pp", pp, "--micro", 2 * pp if pp > 1 else 1))
            check(far[0] <= allowed[0] and far[1] <= allowed[1], f"tp {tp}, dp {dp}, pp {pp} on GPUs, {name}, gives the CPU's losses and weights",
                  f"{far} apart, {allowed} allowed")
        for tp, dp, pp, amp in ((1, 1, 1, "off"), (2, 2, 1, "fp16"), (2, 1, 2, "bf16")):
            as_in_dry_run(f"tp {tp}, dp {dp}, pp {pp}, AMP={amp} on GPUs, {name}: each rank holds and sends what make check BACKEND=cuda says", tp * dp * pp, *MODEL,
                          "--hidden-dim", 256, "--steps", 1, "--tp", tp, "--pp", pp, "--amp", amp)
        for tp, dp in ((1, 4), (2, 2)):
            run_name = f"{name} {tp}-{dp} with ZERO"
            far = apart(run_name, saved(run_name, tp * dp, "--tp", tp, "--zero", 1))
            check(far[0] <= allowed[0] and far[1] <= allowed[1], f"tp {tp}, dp {dp} with ZERO=1 on GPUs, {name}, gives the CPU's losses and weights",
                  f"{far} apart, {allowed} allowed")
        ring = run(2, *MODEL, "--tp", 1, "--allreduce", "ring")
        refused = ring.returncode == 2 and "communicate through NCCL" in ring.stderr
        check(refused == (name == "over NCCL" and have_a_gpu_each()),
              f"the ring of lab 15 sums over MPI, and is refused over NCCL: {name}", ring.stderr)
        if not refused:
            far = deviation(cpu, losses_of(2, *MODEL, "--tp", 1, "--allreduce", "ring"))
            check(far <= allowed[0], f"the ring of lab 15 on GPUs, {name}, gives the CPU's losses", f"{far} apart, {allowed[0]} allowed")
    on("the CPU")
    averaged = losses_of(2, *MODEL, "--tp", 1, "--average", 2)
    for name in ON_GPUS:
        on(name)
        far = deviation(averaged, losses_of(2, *MODEL, "--tp", 1, "--average", 2))
        check(far <= allowed[0], f"averages of weights on GPUs, {name}, give the CPU's losses", f"{far} apart, {allowed[0]} allowed")
    twice = [losses_of(4, *MODEL, "--tp", 2) for _ in range(2)]
    check(twice[0] == twice[1], "two runs on GPUs are equal to the last digit")
    losses_of(2, *MODEL, "--tp", 2, "--steps", 3, "--save", f"{folder}/half")
    losses_of(4, *MODEL, "--tp", 2, "--zero", 1, "--steps", 3, "--save", f"{folder}/half-zero")
    on("the CPU")
    rest = losses_of(1, *MODEL, "--resume", f"{folder}/half-zero")
    check(len(rest) == 3 and deviation(cpu[3:], rest) <= allowed[0], "a run begun with ZERO=1 on four GPUs resumes on one CPU",
          f"{rest} beside {cpu[3:]}, {allowed[0]} allowed")
    rest = losses_of(1, *MODEL, "--resume", f"{folder}/half")
    check(len(rest) == 3 and deviation(cpu[3:], rest) <= allowed[0], "a run begun on two GPUs resumes on one CPU",
          f"{rest} beside {cpu[3:]}, {allowed[0]} allowed")


def resumed_in_16_bits(wide, folder):
    for amp in ("bf16", "fp16"):
        whole = losses_of(2, *wide, "--amp", amp, "--tp", 2)
        losses_of(2, *wide, "--amp", amp, "--tp", 2, "--steps", 3, "--save", f"{folder}/{amp}")
        rest = losses_of(2, *wide, "--amp", amp, "--tp", 2, "--resume", f"{folder}/{amp}")
        check(rest == whole[3:], f"a run that resumes with AMP={amp} uses the checkpoint's weights from the first product on", f"{rest} beside {whole}")


def in_16_bits():
    wide = [*MODEL, "--layers", 1, "--hidden-dim", 96, "--seq", 48, "--batch-size", 4, "--samples", 32]
    if why := lacks_bf16():
        print(f"skip - 16 bits on GPUs give the losses of 16 bits on the CPU: {why}")
        return
    on("the CPU")
    single, cpu = losses_of(1, *wide), losses_of(1, *wide, "--amp", "bf16")
    allowed = 8 * max(deviation(cpu, losses_of(1, *wide, "--amp", "bf16", "--perturb", k)) for k in (1, 2, 3))
    on(list(ON_GPUS)[-1])
    far = deviation(cpu, losses_of(2, *wide, "--amp", "bf16", "--tp", 2))
    check(far <= allowed, "AMP=bf16 on two GPUs gives the losses of AMP=bf16 on the CPU", f"{far} apart, {allowed} allowed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        resumed_in_16_bits(wide, folder)
    far = deviation(single, losses_of(2, *wide, "--amp", "tf32", "--tp", 2))
    check(0 < far <= allowed, "AMP=tf32, which has more bits than bf16, is no farther from single precision", f"{far} apart, {allowed} allowed")
    steps = [line for line in metrics_of(2, *wide, "--amp", "fp16") if "step" in line]
    far = deviation(single, [line["loss"] for line in steps])
    check(0 < far <= allowed, "AMP=fp16, which has more bits than bf16, is no farther from single precision", f"{far} apart, {allowed} allowed")
    check(all(line["loss_scale"] == 65536 and line["steps_left_out"] == 0 for line in steps),
          "while all gradients are finite, the loss scale does not change", str(steps[-1]))
    wild = [line for line in metrics_of(2, *wide, "--amp", "fp16", "--optimizer", "sgd", "--lr", 300, "--clip", 0) if "step" in line]
    left_out = [line["steps_left_out"] for line in wild]
    check(left_out[-1] > 0 and all(line["loss_scale"] == 65536 / 2**before for line, before in zip(wild[1:], left_out)),
          "steps whose gradients are infinite are skipped, and each halves the loss scale", str(left_out))


if "over NCCL" not in ON_GPUS:
    print("skip - training over NCCL: NCCL is not installed")
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
    as_on_the_cpu(place)
in_16_bits()
