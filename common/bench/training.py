"""make bench ONLY=steps: training steps of the kit's BERT beside PyTorch's. gpu.py has what differs
on a GPU."""
import functools
import subprocess
from dataclasses import dataclass

import aims
import dry
import peers
import steps
from rows import Row, _, either, give_up, number, refuse, show, table
from turns import KIT, MEMORY, WARM_UP, judge_memory, megabytes, note_memory, rows_of, show_targets, step, take_turns

# name: layers, hidden, heads, sequence, batch, steps per run
MODELS = {
    "2x128": (2, 128, 2, 128, 8, 14),
    "6x256": (6, 256, 4, 128, 8, 8),
    "base": (12, 768, 12, 128, 8, 4),
    "base-512": (12, 768, 12, 512, 2, 4),
}


@dataclass(frozen=True)
class Layout:
    ranks: int = 1
    tp: int = 1
    threads: int = 1
    stack: tuple = steps.ALL_LABS
    program: str = "train"


LAYOUTS = {"serial": Layout(), "serial 2 threads": Layout(threads=2), "tp2": Layout(2, 2), "dp2": Layout(2), "2x2": Layout(4, 2)}


@dataclass(frozen=True)
class Case:
    model: str
    layout: str
    amp: str

    def name(self):
        return f"{self.model} {self.layout}{'' if self.amp == 'off' else ' ' + self.amp}"


class Bench:
    """The steps that this machine's cores can take."""

    amps = steps.AMPS
    memory = "resident_bytes"  # the figure of a run that is a rank's memory
    options = "--profile", 1
    share_name, of_time = "of the peak", staticmethod(Row.best)
    title, targets_title = "training step; the peak of a core in single precision is {peak} GFLOP/s", "targets of the step alone"

    def __init__(self, build, work):
        self.build, self.work, self.models, self.layouts = build, work, MODELS, LAYOUTS
        self.peak = 0.0  # GFLOP/s of a core in single precision

    def every(self, amps):
        """All cases with these AMP settings."""
        return [Case(model, layout, amp) for model in self.models for layout in self.layouts for amp in amps]

    def called(self, words, case):
        """Does the case's name contain all these words? A layout named in full, such as "2x128
        serial", selects only its own cases."""
        layout = " ".join(word for word in words.split() if word not in self.amps)
        in_full = layout in (f"{one.model} {one.layout}" for one in self.every(self.amps))
        return set(words.split()) <= set(case.name().split()) and (not in_full or layout == f"{case.model} {case.layout}")

    def cases(self, part, amps):
        """{name: Case} of the cases that one of the comma-separated parts selects."""
        every = self.every(amps)
        found = {case.name(): case for case in every if any(self.called(words, case) for words in part.split(","))}
        if not found:
            give_up((_("no training step is called '{name}'") if amps == self.amps else _("no training step is called '{name}' where AMP is {amp}")).format(name=part, amp=amps[0]),
                    _("choose words of one of these: ") + ", ".join(case.name() for case in every))
        return found

    def run(self, case, before=()):
        """@param before the words of a command that runs the launcher"""
        layout = self.layouts[case.layout]
        return steps.train(self.build, self.work, layout.ranks, layout.tp, layout.threads, self.models[case.model], *steps.data_in(self.work),
                           "--amp", case.amp, *self.options, program=f"{self.build}/{layout.program}", stack=layout.stack, before=before)

    def peers(self, pythons, case):
        """{who: (its Python, where torch_twin.py runs)}"""
        return peers.on_cpu(pythons)

    def programs(self, pythons, case):
        others = {f"PyTorch {who}": functools.partial(peers.step, python, self.models[case.model], self.layouts[case.layout], case.amp, where)
                  for who, (python, where) in self.peers(pythons, case).items()}
        return {KIT: functools.partial(self.run, case), **others}

    def why_not(self, amp):
        """Returns an empty text if a run with this AMP trains; otherwise the program's error."""
        layout = next(iter(self.layouts.values()))
        words, _metrics = steps.command(self.build, self.work, 1, 1, 1, (1, 8, 1, 8, 1, 1), *steps.data_in(self.work), "--amp", amp,
                                        program=f"{self.build}/{layout.program}", stack=layout.stack)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.stderr.strip().partition("\n")[0] or f"it ended with {done.returncode}" if done.returncode else ""

    def measure(self, here, cases):
        return self.show(cases, take_turns({name: self.programs(here.pythons, case) for name, case in cases.items()}, here.rounds))

    def show(self, cases, found):
        """Prints the tables; returns the rows to store: times and memory."""
        rows = rows_of(found, step("step"), self.aim)
        note_memory(rows, found, self.memory)
        for (name, _who), row in rows.items():
            share, sizes = self.share(cases[name], row), self.models[cases[name].model]
            row.notes.update({"ranks": self.layouts[cases[name].layout].ranks, "tokens/s": number(1e3 * sizes[3] * sizes[4] / row.median()),
                              self.share_name: f"{share:.1f} %" if share else ""})
        more = self.show_more(cases, found, rows)
        show_targets(self.targets_title, self.targets(cases, found, {name: row for (name, who), row in rows.items() if who == KIT}))
        return [*rows.values(), *more]

    def show_more(self, cases, found, rows):
        """Prints the table of the steps and what else a run tells; returns more rows to store."""
        judge_memory(rows, found)
        for name, runs in found.items():
            rows[name, KIT].notes["of tensors"] = number(megabytes(runs[KIT], "tensor_bytes"))
        show(self.title.format(peak=number(self.peak)), rows.values(), "ranks", "tokens/s", self.share_name, "MB a rank", "of tensors")
        show_profiles(cases, found)
        return [MEMORY.row(f"{name}, per rank", runs[KIT]) for name, runs in found.items()]

    def aim(self, name, who):
        return aims.ratio(name, who)

    def peak_of(self, case):
        """The operations per second of the case's ranks at most; None if unknown."""
        layout = self.layouts[case.layout]
        return 1e9 * self.peak * min(layout.ranks * layout.threads, steps.cores()) if case.amp == "off" else None

    def share(self, case, row):
        """The share of the peak in per cent, or None: counts the operations that the model needs, not
        multiplications by zero or recomputation."""
        peak = self.peak_of(case)
        return 100 * steps.useful_of(self.models[case.model]) / (self.of_time(row) / 1e3) / peak if peak else None

    def targets(self, cases, found, rows):
        """Returns a line of show_targets() for each target that needs no PyTorch.

        @param rows the kit's, by name"""
        lines = []
        for name, aim in aims.PER_CENT_OF_PEAK.items():
            if name in rows:
                share = self.share(cases[name], rows[name])
                lines.append((f"{name}, share of the peak", "%", share, aims.least(share, aim)))
        for name, aim in aims.SPEED_UP.items():
            one = rows.get(f"{name.split()[0]} serial")
            if name in rows and one:
                faster = one.median() / rows[name].median()
                lines.append((f"{name}, as fast as one rank", "times", faster, aims.least(faster, aim)))
        for name, aim in aims.MEGABYTES.items():
            if name in rows:
                held = megabytes(found[name][KIT])
                lines.append((f"{name}, per rank", "MB", held, aims.most(held, aim)))
        return lines


def asked_for(amp, amps):
    if amp and amp not in amps:
        refuse("AMP", amp, _("{values}; without it all are measured").format(values=either("AMP", amps)))
    return (amp,) if amp else amps


def those_that_run(why_not, amps):
    """The AMP settings in which this machine trains. If a single one was requested and does not
    train, ends with an error.

    @param why_not returns why an AMP setting does not train, or an empty text"""
    found = {amp: why_not(amp) if amp != "off" else "" for amp in amps}
    if len(amps) == 1 and found[amps[0]]:
        give_up(_("AMP={amp} does not run here: {why}").format(amp=amps[0], why=found[amps[0]]), _("make doctor says what is missing; AMP=off"))
    for amp, why in found.items():
        if why:
            print(f"AMP       no rows for {amp}: {why}")
    return tuple(amp for amp, why in found.items() if not why)


def show_profiles(cases, found):
    """Shows where rank 0's time goes in the fastest run, by category, and the part of the reduction
    that was exposed."""
    lines = []
    for name, runs in found.items():
        profile, layout = min(runs[KIT], key=lambda run: sum(run["seconds"][WARM_UP:]))["profile"], LAYOUTS[cases[name].layout]
        spent = steps.spent_in(profile).values()
        exposed = sum(steps.spent_in([one for one in profile if one["what"] == dry.SENT[-1]]).values())
        lines.append([name, number(sum(spent)), *(f"{100 * ms / sum(spent):.1f} %" for ms in spent), number(exposed) if layout.ranks > layout.tp else "-"])
    table("where the time goes, on rank 0 (waiting: until all ranks of an exchange are there; exposed: the part of the gradients' reduction that backward did not overlap)",
          ["", "ms per step", *steps.ALL_KINDS, "exposed, ms"], lines)
