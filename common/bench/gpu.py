"""Training steps on a GPU: each precision, the labs' stack beside the serial stack, ranks that share
the GPU, NCCL, and PyTorch. Also computes how long a GPU was idle, from Nsight Systems' (nsys) record
of a run."""
import csv
import dataclasses
import glob
import os
import re
import shutil
import subprocess

import aims
import training
from rows import Row, _, give_up, refuse, run_alone, show
from training import Case, Layout
from turns import WARM_UP

AMPS = ("off", "tf32", "bf16", "fp16")
STEPS = 12
IN_A_ROW = 10  # consecutive calls of a kernel (common/backend/bench/bench_main.c)
MODELS = {"base-512": (12, 768, 12, 512, 32), "large-512": (24, 1024, 16, 512, 16)}
LABS = ("solutions", 11)
LAYOUTS = {"one rank": Layout(stack=LABS, program="train-{}"), "serial stack": Layout(stack=("serial", 0), program="stacks/serial-0/train-{}"),
           "tp2": Layout(2, 2, stack=LABS, program="train-{}"), "dp2": Layout(2, stack=LABS, program="train-{}"),
           "one rank nccl": Layout(stack=LABS, program="train-{}-nccl"),
           "tp2 nccl": Layout(2, 2, stack=LABS, program="train-{}-nccl"), "dp2 nccl": Layout(2, stack=LABS, program="train-{}-nccl")}
SHARED = "bf16"  # the AMP setting of all layouts; in other settings, only "one rank" is measured

# TFLOP/s of dense products in fp32, tf32 and 16 bits, from NVIDIA's data sheets, which also list
# figures with sparsity, twice as high.
PEAKS = {"H200": (67, 494.5, 989), "H100 PCIe": (51, 378, 756), "H100 NVL": (60, 417.5, 835.5), "H100": (67, 494.5, 989), "GH200": (67, 494.5, 989),
         "B200": (75, 1125, 2250), "A100": (19.5, 156, 312), "L40S": (91.6, 183, 362), "L4": (30.3, 60, 121), "4090": (82.6, 82.6, 165)}


def models(text, count):
    """{name: (layers, hidden, heads, sequence, batch, steps)}, from MODELS= and STEPS=."""
    if count and (not count.isdigit() or int(count) <= WARM_UP):
        refuse("STEPS", count,
               _("it is how many steps a run takes, of which the first {number} are not counted: {example}").format(number=WARM_UP, example=f"STEPS={STEPS}"))
    sizes = MODELS
    if text:
        given = [one.split() for one in text.split(";") if one.strip()]
        if not given or any(len(one) != 5 or not all(size.isdigit() and int(size) for size in one) for one in given):
            refuse("MODELS", text, _("it is {what}: {example}").format(what=_('"layers hidden heads seq batch; ..."'), example='MODELS="24 1024 16 512 16"'))
        sizes = {f"{one[0]}x{one[1]}-{one[3]}": tuple(map(int, one)) for one in given}
    return {name: (*one, int(count or STEPS)) for name, one in sizes.items()}


def peak(description, given):
    """{AMP: TFLOP/s}; empty for an unknown GPU.

    @param description the output of build/kernels-..."""
    if given:
        try:
            figures = tuple(map(float, given.split()))
            if len(figures) != 3 or not all(0 < figure < float("inf") for figure in figures):
                raise ValueError
        except ValueError:
            refuse("PEAK", given,
                   _("it is {what}: {example}").format(what=_("the TFLOP/s of fp32, tf32 and 16 bits of the data sheet"), example='PEAK="67 494.5 989"'))
    else:
        said = re.split(r"\W+", description)
        figures = next((figures for name, figures in PEAKS.items() if set(name.split()) <= set(said)), None)
    return dict(zip(AMPS, (*figures, figures[-1]))) if figures else {}


def count_of():
    """The number of GPUs. It is at least 1, because the bench has already run on one."""
    if os.environ.get("EMULATED_GPUS"):
        return int(os.environ["EMULATED_GPUS"])
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return max(1, len(seen.split(",")) if seen else len(glob.glob("/dev/nvidia[0-9]*")))


class Bench(training.Bench):
    """The steps that a GPU can take.

    @param transport "mpi", "nccl", or an empty text for both"""

    amps, memory, options = AMPS, "device_bytes", ()
    share_name, of_time = "MFU", staticmethod(Row.median)
    targets_title = "targets of the step on a GPU"

    def __init__(self, build, work, backend, transport, given):
        super().__init__(build, work)
        self.backend, self.description, self.given_peak = backend, "", given("PEAK") or ""
        self.models = models(given("MODELS") or "", given("STEPS") or "")
        self.peak = peak("", self.given_peak)  # reports an invalid PEAK at once
        self.layouts = {name: dataclasses.replace(one, program=one.program.format(backend)) for name, one in LAYOUTS.items()
                        if not transport or ("nccl" in name) == (transport == "nccl")}

    def find(self, description):
        """Sets the GPU's description and peak; keeps the layouts whose programs were built."""
        self.description, self.peak = description, peak(description, self.given_peak)
        self.layouts = {name: one for name, one in self.layouts.items() if os.access(f"{self.build}/{one.program}", os.X_OK)
                        and ("nccl" not in name or one.ranks <= count_of())}
        if not self.layouts:
            give_up(_("no training program was built for BACKEND={backend}").format(backend=self.backend), _("make bench BACKEND={backend} builds what it runs").format(backend=self.backend))

    def every(self, amps):
        alone = "one rank" if "one rank" in self.layouts else "one rank nccl"
        return [case for case in super().every(amps) if case.layout == alone or case.amp == (SHARED if SHARED in amps else amps[0])]

    def run(self, case, before=()):
        run = super().run(case, before)
        return {**run, "device_bytes": run["tensor_bytes"]}

    def peers(self, pythons, case):
        return {f"{version} {how}": (python, f"cuda-{how}") for version, python in pythons.items() if case.layout.startswith("one rank")
                for how in ("eager", "compiled")}

    def aim(self, name, who):
        """PyTorch's time divided by the kit's, eager and compiled."""
        return 1

    def peak_of(self, case):
        return 1e12 * self.peak.get(case.amp, 0)

    def show_more(self, cases, found, rows):
        show(f"training step on {self.description}", rows.values(), "ranks", "tokens/s", "MFU", "MB a rank")
        sizes = "; ".join(f"{name}: {one[0]} layers, hidden {one[1]}, {one[2]} heads, SEQ {one[3]}, BATCH_SIZE {one[4]}" for name, one in self.models.items())
        print(f"  {sizes}\n  MFU: two operations for each multiply-add that the model needs (backward counts twice forward; in the last block, only\n"
              "  keys and values have gradients at all positions), divided by the median time and the data sheet's dense peak"
              + (": " + ", ".join(f"{amp} {one:g}" for amp, one in self.peak.items()) + " TFLOP/s" if self.peak else "; this GPU's peak is not known: PEAK= sets it"))
        return self.show_idle(cases)

    def targets(self, cases, found, rows):
        lines = []
        for name, case in cases.items():
            before, share = rows.get(Case(case.model, "serial stack", case.amp).name()), self.share(case, rows[name])
            if case.layout == "one rank" and before:
                ratio = rows[name].median() / before.median()
                lines.append((f"{name}, its time / that of the serial stack (best / best {rows[name].best() / before.best():.3f})", "times", ratio,
                              aims.most(ratio, aims.LABS_OVER_SERIAL)))
            if name in aims.MFU and share:
                lines.append((f"{name}, MFU", "%", share, aims.least(share, aims.MFU[name])))
        return lines

    def show_idle(self, cases):
        """The share of a step in which neither kernels nor copies run, if Nsight Systems is
        installed."""
        alone = {name: case for name, case in cases.items() if case.layout == "one rank"}
        cases = {name: case for name, case in alone.items() if case.amp == SHARED} or alone
        program = shutil.which("nsys")
        if cases and not program:
            print("\nlaunch gaps are not measured: there is no nsys here (Nsight Systems)")
        if not cases or not program:
            return []
        record, found = f"{self.work}/idle", []
        for name, case in cases.items():
            run = self.run(case, [program, "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "-o", record])
            idle = idle_share(program, f"{record}.nsys-rep", sum(run["seconds"][WARM_UP:]))
            found.append(Row("idle", name, "%", [idle], **aims.most(idle, aims.IDLE)))
        show("share of a step in which neither kernels nor copies run, by nsys (its overhead included)", found)
        return found


# ---- when neither a kernel nor a copy ran ------------------------------------------------------------------------------


def busy(spans, begin):
    """The time after `begin` that at least one of the spans (first, last) covers."""
    covered, reached = 0, begin
    for first, last in sorted(spans):
        covered += max(0, last - max(first, reached))
        reached = max(reached, last)
    return covered


def spans_in(text):
    """[(begin, end), ...] in ns of the kernels and copies in nsys's CSV, which may follow other
    output."""
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.replace('"', "").startswith("Start (ns)")), None)
    if head is None:
        return []
    return [(int(row["Start (ns)"]), int(row["Start (ns)"]) + int(row["Duration (ns)"])) for row in csv.DictReader(lines[head:])
            if row["Start (ns)"] and row["Duration (ns)"]]


def idle_share(program, record, seconds):
    """The percentage of a run's last `seconds` in which neither a kernel nor a copy ran."""
    done = subprocess.run([program, "stats", "--report", "cuda_gpu_trace", "--format", "csv", "--force-export=true", "--output", "-", record],
                          capture_output=True, text=True, check=False)
    spans = spans_in(done.stdout)
    if done.returncode or not spans:
        give_up(_("nsys recorded no kernels: ") + done.stderr.strip()[-300:], run_alone((program, "stats", "--report", "cuda_gpu_trace", record)))
    end, window = max(last for _, last in spans), 1e9 * seconds
    return 100 * (1 - busy(spans, end - window) / window)
