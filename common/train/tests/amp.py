#!/usr/bin/python3
"""AMP=bf16 learns like AMP=off in every layout, and rounds only the matrices of products. The
tolerance of losses is measured: 8 times the largest deviation of bf16 runs whose initial weights
are moved by one unit in the last place, so that some numbers round the other way."""
import os
import struct
import subprocess
import tempfile

from checkpoints import newest, undivided
from runs import BUILD, check, lacks_bf16, losses_of, metrics_of, run

# Every product of the layers is large enough for bf16, in each layout below; in WIDE, so is attention's tile.
COMMON = ["--samples", 320, "--test", "", "--threads", 1, "--optimizer", "sgd", "--lr", 0.3, "--weight-decay", 0]
SMALL = ["--layers", 2, "--hidden-dim", 48, "--heads", 12, "--batch-size", 24, "--seq", 48, *COMMON]
WIDE = ["--layers", 1, "--hidden-dim", 256, "--heads", 2, "--batch-size", 4, "--seq", 128, *COMMON, "--steps", 6]
TWELVE = [*SMALL, "--steps", 12]
BF16 = ["--amp", "bf16"]
LAYOUTS = ((2, 1), (1, 2), (2, 2))


def deviation(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def curves():
    off, on = losses_of(1, *TWELVE), losses_of(1, *TWELVE, *BF16)
    allowed = 8 * max(deviation(on, losses_of(1, *TWELVE, *BF16, "--perturb", k)) for k in (1, 2, 3))

    def near(other, sentence):
        apart = deviation(on, other)
        check(len(other) == 12 and apart <= allowed, sentence, f"{apart:.3g} apart, {allowed:.3g} allowed")

    check(max(off) - min(off) > 4 * allowed, "the losses change by more than rounding may", f"{off}, {allowed:.3g} allowed")
    near(off, "AMP=bf16 gives the losses of AMP=off")
    check(deviation(on, off) > 1e-6, "but not to the last digit")
    for tp, dp in LAYOUTS:
        near(losses_of(tp * dp, *TWELVE, *BF16, "--tp", tp), f"tp {tp}, dp {dp} gives the losses of one rank in bf16")
        twice = [losses_of(tp * dp, *TWELVE, *BF16, "--tp", tp) for _ in range(2)]
        check(twice[0] == twice[1], f"two runs in bf16 at tp {tp}, dp {dp} are equal to the last digit")
    near(losses_of(1, *TWELVE, *BF16, "--micro", 3), "three micro-batches per step give the losses of the whole batch in bf16")
    near(losses_of(2, *TWELVE, *BF16, "--tp", 2, "--sp", 1), "tp 2 with SP=1 gives the losses of one rank in bf16")
    threads = [losses_of(1, *TWELVE, *BF16, "--threads", 2) for _ in range(2)]
    check(threads[0] == threads[1], "two runs in bf16 of one rank with two threads are equal to the last digit")
    near(threads[0], "two threads give the losses of one thread in bf16")
    return on, near


def attention():
    on = losses_of(1, *WIDE, *BF16)
    allowed = 8 * max(deviation(on, losses_of(1, *WIDE, *BF16, "--perturb", k)) for k in (1, 2, 3))
    twice = [losses_of(2, *WIDE, *BF16, "--tp", 2) for _ in range(2)]
    apart = deviation(on, twice[0])
    check(apart <= allowed, "attention in bf16 gives the same losses on two ranks", f"{apart:.3g} apart, {allowed:.3g} allowed")
    check(twice[0] == twice[1], "two runs with attention in bf16 are equal to the last digit")


def resumed(folder, on, near):
    run(1, *SMALL, *BF16, "--steps", 6, "--save", f"{folder}/half")
    rest = losses_of(1, *TWELVE, *BF16, "--resume", f"{folder}/half")
    check(rest == on[6:], "a resumed run in bf16 equals an uninterrupted one to the last digit", f"{rest}\n{on[6:]}")
    near(on[:6] + losses_of(1, *TWELVE, "--resume", f"{folder}/half"), "a run begun in bf16 can resume with AMP=off")
    run(1, *SMALL, "--steps", 6, "--save", f"{folder}/other")
    near(losses_of(1, *SMALL, "--steps", 6) + losses_of(1, *TWELVE, *BF16, "--resume", f"{folder}/other"),
         "a run begun with AMP=off can resume in bf16")


def numbers(folder):
    """{name: its numbers} of the matrices of a saved run."""
    return {name: struct.unpack(f"<{len(data) // 4}f", data) for name, (shape, data) in undivided(newest(folder), "weight").items()
            if len(shape) == 2 and "embedding" not in name}


def master_weights(folder):
    """Weights stay in single precision: steps ten times smaller than those that bf16 would round
    away (half a unit in its last place) still change them."""
    tiny = [*SMALL, "--dropout", 0, "--steps", 3]
    for name, options in (("start", ["--lr", 0]), ("off", ["--lr", 1e-4]), ("on", ["--lr", 1e-4, *BF16])):
        done = run(1, *tiny, *options, "--save", f"{folder}/{name}")
        if done.returncode:
            raise SystemExit(f"not ok - a run of tiny steps is saved\n{done.stdout}{done.stderr}")
    start, off, on = (numbers(f"{folder}/{name}") for name in ("start", "off", "on"))
    for name, weights in start.items():
        moved = [[y - x for x, y in zip(weights, other[name])] for other in (off, on)]
        largest = max(map(abs, moved[0]))
        apart = sum(abs(x - y) for x, y in zip(*moved)) / (sum(map(abs, moved[0])) or 1)
        lost = sum(map(abs, weights)) / len(weights) / 2**9
        check(0 < largest < lost / 10 and apart < 0.1, f"{name} keeps steps that bf16 would lose",
              f"steps up to {largest:.3g}, half a unit of bf16 {lost:.3g}, steps {apart:.3g} of themselves apart")


def what_it_says():
    for amp in ("off", "bf16"):
        done = run(2, "--tp", 2, *SMALL, "--steps", 1, "--amp", amp)
        check((amp == "bf16") == ("AMP=bf16 by oneDNN" in done.stdout) and "warning" not in done.stderr,
              f"a run with AMP={amp} prints that among its configuration", done.stdout + done.stderr)
    off, on = (metrics_of(2, *SMALL, "--steps", 1, "--tp", 2, "--amp", amp)[-1] for amp in ("off", "bf16"))
    check((off["amp"], on["amp"]) == ("off", "bf16"), "the metrics have the value of AMP", f"{off}\n{on}")
    check(off["model_flops"] == on["model_flops"] and off["mfu"] > 0 and on["mfu"] is None,
          "the peak is for single precision: with AMP=bf16, no share of it is given", f"{off}\n{on}")
    weights = [line["ranks"][1]["peak"]["weights"] for line in (off, on)]
    check(0 <= weights[1] - 1.5 * weights[0] < 64, "the rounded copy of the weights is counted among them", str(weights))


def what_it_sends():
    """The residual stream, where it is sent, stays in single precision."""
    for layout in (["--tp", 2], ["--tp", 2, "--sp", 1], ["--tp", 1]):
        off, on = (metrics_of(2, *SMALL, "--steps", 1, *layout, "--amp", amp)[-1]["ranks"][1] for amp in ("off", "bf16"))
        if layout[1] == 2:
            check(0 < on["comm_bytes_tp"] < 0.6 * off["comm_bytes_tp"], f"activations travel in 16 bits: {' '.join(map(str, layout))}",
                  f"{off['comm_bytes_tp']} and {on['comm_bytes_tp']} bytes")
        else:
            check(0 < off["comm_bytes_dp"] == on["comm_bytes_dp"], "gradients of parameters travel in single precision", f"{off}\n{on}")


def what_it_loads(folder):
    for amp in ("off", "bf16"):
        run(1, *SMALL, "--steps", 1, "--amp", amp, LD_DEBUG="files", LD_DEBUG_OUTPUT=f"{folder}/{amp}")
        said = ""
        for name in os.listdir(folder):
            if name.startswith(f"{amp}."):
                with open(f"{folder}/{name}", errors="replace") as file:
                    said += file.read()
        check("libopenblas" in said and (amp == "bf16") == ("libdnnl" in said), f"AMP={amp} loads oneDNN only for bf16")
    linked = subprocess.run(["ldd", f"{BUILD}/train", f"{BUILD}/grade"], capture_output=True, text=True, check=True).stdout
    check("libmpi" in linked and "dnnl" not in linked, "neither training nor the judge is linked to oneDNN", linked)


def other_processors():
    with open("/proc/cpuinfo") as file:
        if "avx512_bf16" not in file.read():
            print("skip - a processor that emulates bf16 causes one warning: this one has no bf16 to switch off")
            return
    slow = run(2, "--tp", 2, *SMALL, "--steps", 1, *BF16, ONEDNN_MAX_CPU_ISA="AVX512_CORE")
    check(slow.returncode == 0 and slow.stderr.count("warning: AMP=bf16") == 1 and slow.stderr.count("HINT") == 1,
          "a processor that emulates bf16 causes one warning", slow.stdout + slow.stderr)
    none = run(2, "--tp", 2, *SMALL, "--steps", 1, *BF16, ONEDNN_MAX_CPU_ISA="AVX2")
    check(none.returncode == 2 and none.stderr.count("error: AMP=bf16") == none.stderr.count("HINT") == 1,
          "a processor that cannot even emulate bf16 is refused", none.stdout + none.stderr)


def main():
    if why := lacks_bf16():
        print(f"skip - AMP=bf16 learns like AMP=off: {why}")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        on, near = curves()
        attention()
        resumed(folder, on, near)
        master_weights(folder)
        what_it_says()
        what_it_sends()
        what_it_loads(folder)
        other_processors()


main()
