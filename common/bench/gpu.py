"""Measures the training step on a GPU: each precision, the labs' stack beside the serial stack,
ranks that share the GPU, NCCL, and PyTorch.

The share of the peak (MFU) is steps.useful_of() divided by the time of a step and by the data
sheet's dense peak for the precision of the products. It counts the operations that the model needs,
not multiplications by zero or recomputation.
"""
import glob
import os
import re
from dataclasses import dataclass

import aims
import idle
import peers
import steps
from rows import Row, _, give_up, number, refuse, show, table

AMPS = ("off", "tf32", "bf16", "fp16")
STEPS = 12
IN_A_ROW = 10  # consecutive calls of a kernel (common/backend/bench/bench_main.c)
MODELS = {"base-512": (12, 768, 12, 512, 32), "large-512": (24, 1024, 16, 512, 16)}
# name: ranks, tp, whose labs, up to which, program
LAYOUTS = {"one rank": (1, 1, "solutions", 11, "train-{}"), "serial stack": (1, 1, "serial", 0, "stacks/serial-0/train-{}"),
           "tp2": (2, 2, "solutions", 11, "train-{}"), "dp2": (2, 1, "solutions", 11, "train-{}"),
           "one rank nccl": (1, 1, "solutions", 11, "train-{}-nccl"), "tp2 nccl": (2, 2, "solutions", 11, "train-{}-nccl"),
           "dp2 nccl": (2, 1, "solutions", 11, "train-{}-nccl")}
SHARED = "bf16"  # the AMP setting of all layouts; in other settings, only "one rank" is measured

# TFLOP/s of dense products in fp32, tf32 and 16 bits, from NVIDIA's data sheets, which also list
# figures with sparsity, twice as high.
PEAKS = {"H200": (67, 494.5, 989), "H100 PCIe": (51, 378, 756), "H100 NVL": (60, 417.5, 835.5), "H100": (67, 494.5, 989), "GH200": (67, 494.5, 989),
         "B200": (75, 1125, 2250), "A100": (19.5, 156, 312), "L40S": (91.6, 183, 362), "L4": (30.3, 60, 121), "4090": (82.6, 82.6, 165)}


@dataclass(frozen=True)
class Case:
    model: str
    layout: str
    amp: str

    def name(self):
        return f"{self.model} {self.layout}{'' if self.amp == 'off' else ' ' + self.amp}"


def models(text, count):
    """{name: (layers, hidden, heads, sequence, batch, steps)}, from MODELS= and STEPS=."""
    if count and (not count.isdigit() or int(count) <= steps.WARM_UP):
        refuse("STEPS", count,
               _("it is how many steps a run takes, of which the first {number} are not counted: {example}").format(number=steps.WARM_UP, example=f"STEPS={STEPS}"))
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


class Bench:
    """The measurements to make, and the GPU to make them on.

    @param transport "mpi", "nccl", or an empty text for both"""

    def __init__(self, build, work, backend, transport, given):
        self.build, self.work, self.backend = build, work, backend
        self.models = models(given("MODELS") or "", given("STEPS") or "")
        self.description = ""
        self.given_peak = given("PEAK") or ""
        self.peak = peak("", self.given_peak)  # reports an invalid PEAK at once
        self.layouts = {name: one for name, one in LAYOUTS.items() if not transport or ("nccl" in one[4]) == (transport == "nccl")}

    def find(self, description):
        """Sets the GPU's description and peak; keeps the layouts whose programs were built."""
        self.description, self.peak = description, peak(description, self.given_peak)
        there = count_of()
        self.layouts = {name: one for name, one in self.layouts.items() if os.access(self.program(name), os.X_OK)
                        and ("nccl" not in name or one[0] <= there)}
        if not self.layouts:
            give_up(_("no training program was built for BACKEND={backend}").format(backend=self.backend), _("make bench BACKEND={backend} builds what it runs").format(backend=self.backend))

    def program(self, layout):
        return f"{self.build}/{LAYOUTS[layout][4].format(self.backend)}"

    def cases(self, part, amps):
        """{name: Case} of the cases whose name has all words of one comma-separated part."""
        alone = "one rank" if "one rank" in self.layouts else "one rank nccl"
        every = [Case(model, layout, amp) for model in self.models for amp in amps for layout in self.layouts
                 if layout == alone or amp == (SHARED if SHARED in amps else amps[0])]
        found = {case.name(): case for case in every if any(set(words.split()) <= set(case.name().split()) for words in part.split(","))}
        if not found:
            give_up(_("no training step on a GPU is called '{name}'").format(name=part), _("choose words of one of these: ") + ", ".join(case.name() for case in every))
        return found

    def run(self, case, before=()):
        """Runs a case; returns the seconds of each step and a rank's peak bytes.

        @param before the words of a command that runs the launcher"""
        ranks, tp, stack, stage, _ = LAYOUTS[case.layout]
        lines = steps.train(self.build, self.work, ranks, tp, 1, self.models[case.model], *steps.data_in(self.work), "--amp", case.amp,
                            program=self.program(case.layout), stack=(stack, stage), before=before)
        return {"seconds": [line["step_s"] for line in lines if "step_s" in line], "bytes": max(rank["peak_bytes"] for rank in lines[-1]["ranks"])}

    def why_not(self, amp):
        """Returns an empty text if a run in this precision trains, or else the program's error."""
        layout = next(iter(self.layouts))
        return steps.why_no(self.build, self.work, amp, self.program(layout), LAYOUTS[layout][2:4])

    def measure(self, rounds, pythons, cases):
        """{name: {who: [run, ...]}}, where who is "kit" or a version of PyTorch, eager or compiled.
        The runs alternate."""
        found = {name: {"kit": []} for name in cases}
        for turn in range(rounds):
            for name, case in cases.items():
                steps.progress(f"round {turn + 1} of {rounds}: {name}")
                found[name]["kit"].append(self.run(case))
                for version, python in pythons.items() if case.layout.startswith("one rank") else ():
                    for how in ("eager", "compiled"):
                        its = peers.step(python, self.models[case.model], (1, 1, 1), case.amp, steps.VOCABULARY, f"cuda-{how}")
                        found[name].setdefault(f"PyTorch {version} {how}", []).append({"seconds": its["seconds"], "bytes": its["device_bytes"]})
        steps.progress("")
        return found

    def share(self, case, row):
        """Per cent of the peak, or None."""
        if case.amp not in self.peak:
            return None
        return 100 * steps.useful_of(self.models[case.model]) / (row.median() / 1e3) / (1e12 * self.peak[case.amp])

    def row(self, case, name, runs):
        row = Row("step", name, "ms", steps.times(runs))
        share, sizes = self.share(case, row), self.models[case.model]
        row.notes = {"ranks": LAYOUTS[case.layout][0], "tokens/s": number(1e3 * sizes[3] * sizes[4] / row.median()),
                     "MFU": f"{share:.1f} %" if share is not None else "?", "MB per rank": number(max(run["bytes"] for run in runs) / 1e6)}
        return row

    def show(self, cases, found):
        """Prints the tables; returns the rows."""
        rows = {name: self.row(cases[name], name, runs["kit"]) for name, runs in found.items()}
        sizes = "; ".join(f"{name}: {one[0]} layers, hidden {one[1]}, {one[2]} heads, SEQ {one[3]}, BATCH_SIZE {one[4]}" for name, one in self.models.items())
        show(f"training step on {self.description}", rows.values(), "ranks", "tokens/s", "MFU", "MB per rank")
        print(f"  {sizes}\n  MFU: two operations for each multiply-add that the model needs (backward counts twice forward; in the last block, only\n"
              "  keys and values have gradients at all positions), divided by the median time and the data sheet's dense peak"
              + (": " + ", ".join(f"{amp} {one:g}" for amp, one in self.peak.items()) + " TFLOP/s" if self.peak else "; this GPU's peak is not known: PEAK= sets it"))
        others = [self.row(cases[name], f"{name}, {who}", runs[who]) for name, runs in found.items() for who in list(runs)[1:]]
        if others:
            table("against PyTorch, in alternating runs", ["", "best ms", "median", "tokens/s", "MFU", "MB", "its time / the kit's", "target", ""],
                  [self.beside(rows[other.name.partition(", ")[0]], other) for other in others])
        self.show_aims(cases, rows)
        return [*rows.values(), *others]

    def beside(self, row, other):
        ratio = other.median() / row.median()
        return [other.name, number(other.best()), number(other.median()), *(other.notes[key] for key in ("tokens/s", "MFU", "MB per rank")),
                f"{ratio:.2f}", *aims.least(ratio, aims.GPU_TORCH)]

    def show_aims(self, cases, rows):
        lines = []
        for name, case in cases.items():
            before = rows.get(Case(case.model, "serial stack", case.amp).name())
            if case.layout == "one rank" and before:
                ratio = rows[name].median() / before.median()
                lines.append([f"{name}, its time / that of the serial stack (best / best {rows[name].best() / before.best():.3f})", f"{ratio:.3f}",
                              *aims.most(ratio, aims.LABS_OVER_SERIAL)])
            share = self.share(case, rows[name])
            if name in aims.MFU and share is not None:
                lines.append([f"{name}, MFU, %", f"{share:.1f}", *aims.least(share, aims.MFU[name])])
        if lines:
            table("targets of the step on a GPU", ["", "measured", "target", ""], lines)

    def show_idle(self, cases):
        """The share of a step in which neither kernels nor copies run, if Nsight Systems is
        installed."""
        alone = {name: case for name, case in cases.items() if case.layout == "one rank"}
        cases = {name: case for name, case in alone.items() if case.amp == SHARED} or alone
        if not cases:
            return []
        program = idle.nsys()
        if not program:
            print("\nlaunch gaps are not measured: there is no nsys here (Nsight Systems)")
            return []
        found = []
        for name, case in cases.items():
            seconds = self.run(case, [*program, f"{self.work}/idle"])["seconds"][steps.WARM_UP:]
            found.append(Row("idle", name, "%", [idle.share(program[0], f"{self.work}/idle.nsys-rep", sum(seconds))]))
        table("share of a step in which neither kernels nor copies run, by nsys (its overhead included)", ["", "%", "target", ""],
              [[row.name, f"{row.median():.1f}", *aims.most(row.median(), aims.IDLE)] for row in found])
        return found
