"""The table of runs behind make bench.

A section is a table of cases. Each case names the programs that it compares: the kit first, then
the others. All programs take turns, so a change in the machine's speed affects all alike. A Figure
says what is read from a run. Each program of each case becomes a row with its best and its median
figure; the rows of others also say how many times as fast the kit is, and the target.
"""
import sys
from dataclasses import dataclass, field
from typing import Callable

import aims
from rows import Row, number, table

KIT = "kit"
WARM_UP = 2  # these steps fill the pool and the caches


@dataclass
class Here:
    """Where a section finds its programs and writes its data, and what was asked for."""

    build: str
    work: str
    rounds: int = 1
    pythons: dict = field(default_factory=dict)  # those with PyTorch, by its version
    part: str = ""  # of ONLY=section/part


@dataclass
class Figure:
    """What is read from a run: one value, or several."""

    section: str
    unit: str
    read: Callable
    lower: bool = True  # are lower values better?
    blur: float = 0.0

    def row(self, name, runs):
        return Row(self.section, name, self.unit, [value for run in runs for value in self.read(run)], self.lower, self.blur)


def milliseconds(run):
    """The time of each step but the first ones."""
    return [1e3 * step for step in run["seconds"][WARM_UP:]]


def step(section):
    return Figure(section, "ms", milliseconds)


def tokens_per_second(section, tokens):
    """@param tokens those of a step"""
    return Figure(section, "tokens/s", lambda run: [1e3 * tokens / ms for ms in milliseconds(run)], lower=False)


MEMORY = Figure("memory", "MB", lambda run: [run["resident_bytes"] / 1e6], blur=0.01)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def take_turns(cases, rounds, agree=lambda name, who, mine, its: None):
    """{name: {who: [what the program returned, ...]}}

    @param cases {name: {who: a function that runs a program}}
    @param agree ends the bench if the results of another program and of the kit differ"""
    found = {name: {who: [] for who in programs} for name, programs in cases.items()}
    for turn in range(rounds):
        for name, programs in cases.items():
            progress(f"round {turn + 1} of {rounds}: {name}")
            for who, program in programs.items():
                found[name][who].append(program())
                if who != KIT:
                    agree(name, who, found[name][KIT][0], found[name][who][-1])
    progress("")
    return found


def megabytes(runs, key="resident_bytes"):
    return max(run[key] for run in runs) / 1e6


def rows_of(found, figure, aim=None):
    """{(name, who): Row}, from the result of take_turns(). The rows of other programs note how many
    times as fast the kit is.

    @param aim returns the target of that ratio, or None, from a name and who"""
    rows = {}
    for name, runs in found.items():
        for who, its in runs.items():
            row = rows[name, who] = figure.row(name if who == KIT else f"{name}, {who}", its)
            if who != KIT:
                ratio = times_as_fast(rows[name, KIT], row)
                row.notes = {"kit / it": f"{times_as_fast(rows[name, KIT], row, Row.best):.2f}", "of medians": f"{ratio:.2f}"}
                row.notes.update(aims.least(ratio, aim(name, who)) if aim else {})
    return rows


def times_as_fast(mine, its, of=Row.median):
    return of(its) / of(mine) if mine.lower else of(mine) / of(its)


def note_memory(rows, found, key="resident_bytes"):
    """Notes the memory of a rank, as the largest `key` of all runs."""
    for (name, who), row in rows.items():
        row.notes["MB a rank"] = number(megabytes(found[name][who], key))


def judge_memory(rows, found):
    """Notes whether the kit needs less memory than each of the others."""
    for (name, who), row in rows.items():
        if who != KIT:
            share = megabytes(found[name][KIT]) / megabytes(found[name][who])
            row.notes.update({"imported": number(megabytes(found[name][who], "imported_bytes")),
                              "kit's share": f"{share:.2f}{'' if share < 1 else ' missed'}"})


def show_targets(title, lines):
    """Prints targets that need no other program.

    @param lines [(what, unit, figure, the notes of its target), ...]"""
    if lines:
        table(title, ["", "unit", "measured", "target", ""], [[what, unit, number(figure), *notes.values()] for what, unit, figure, notes in lines])
