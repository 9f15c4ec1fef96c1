"""The files of slides/runs as drawings and numbers: a verdict, a step's timeline, losses, all-reduces."""
import math
import re

import record
from formulas import pace

SHOWN = {"✓": r"\passed", "✗": r"\failed", "○": r"\heldback", "\u00a0": "~", "\u202f": "~", " ": "~", "\\": r"\textbackslash{}",
         "^": r"\textasciicircum{}", **{sign: rf"\{sign}" for sign in "{}#%&_$"}}
MARKS = 5  # of a verdict: the check, its reason, the hint, the first wrong number, how to repeat the case
BYTES_AT_LEAST = 1 << 12  # the first size of build/bench-collectives; each other is eight times the one before


def marked(lines):
    """The lines of a verdict up to the end of its first failed check, those of checks held back, and the last one; each with its mark, or 0."""
    first = next(i for i, line in enumerate(lines) if line.startswith("  ✗"))
    end = next(i for i in range(first + 1, len(lines)) if not lines[i].startswith("      "))
    hint = next(i for i in range(first, end) if re.match(r" {6}(HINT|INDICE)\b", lines[i]))
    held_back = [line for line in lines[end:] if line.startswith("  ○")]
    marks = dict(zip((first, first + 1, hint, hint + 1, end - 1), range(1, MARKS + 1)))
    return [(line, marks.get(i, 0)) for i, line in enumerate(lines[:end])] + [(line, 0) for line in ["  ...", *held_back, lines[-1]]]


def verdict(name):
    shown = marked(record.read(name))
    return "".join(rf"\VerdictLine{{{row}}}{{{mark}}}{{{''.join(SHOWN.get(sign, sign) for sign in line)}}}" for row, (line, mark) in enumerate(shown))


def timelines():
    """{layout: [(rank, kind, begin, end)]} in milliseconds."""
    found = {}
    for line in record.read("timeline"):
        tp, dp, pp, rank, kind, begin, end = line.split()
        found.setdefault((int(tp), int(dp), int(pp)), []).append((int(rank), kind, int(begin) / 1e3, int(end) / 1e3))
    return found


def name_of(layout):
    """The dimension that this layout splits."""
    return "tp dp pp".split()[max(range(3), key=lambda i: layout[i])]


def timeline_drawings():
    return {f"timeline.{name_of(layout)}": "".join(rf"\Span{{{rank}}}{{{begin:.2f}}}{{{end:.2f}}}{{{kind}}}" for rank, kind, begin, end in spans)
            for layout, spans in timelines().items()}


def timeline_numbers():
    found = {"B": record.TIMELINE["batch-size"], "S": record.TIMELINE["seq"], "H": record.TIMELINE["hidden-dim"], "L": record.TIMELINE["layers"], "micro": record.MICRO["timeline"]}
    for layout, spans in timelines().items():
        name, ranks = name_of(layout), math.prod(layout)
        step = max(end for *_, end in spans)
        spent = {kind: sum(end - begin for _, one, begin, end in spans if one == kind) / ranks for kind in record.KINDS.values()}
        found.update({f"{name}.step": f"{step:.0f}", f"{name}.sent": f"{spent['sent']:.1f}", f"{name}.sent.share": f"{100 * spent['sent'] / step:.0f}",
                      f"{name}.wait.share": f"{100 * spent['wait'] / step:.0f}",
                      f"{name}.sums": sum(kind == "sent" for rank, kind, *_ in spans if rank == 0)})
    return {f"timeline.{key}": value for key, value in found.items()}


def losses():
    """[(layout, losses of its steps)]; the first is of one rank."""
    rows = [line.split() for line in record.read("losses")]
    return [(tuple(map(int, row[:3])), list(map(float, row[3:]))) for row in rows]


def loss_drawings():
    """The curve of one rank, and every n-th point of the n other layouts, so that all are visible."""
    (_, alone), *others = losses()
    found = {"losses.alone": " ".join(f"({step},{loss:.4f})" for step, loss in enumerate(alone, 1))}
    for k, (_, own) in enumerate(others):
        found[f"losses.{k + 1}"] = ",".join(f"{step + 1}/{own[step]:.4f}" for step in range(k, len(own), len(others)))
    return found


def loss_numbers():
    (_, alone), *others = losses()
    found = {"steps": len(alone), "low": math.floor(min(alone)), "top": math.floor(max(alone)), "high": f"{max(alone) + 0.3:.2f}", "count": len(others) + 1, "first": f"{alone[0]:.3f}", "last": f"{alone[-1]:.3f}"}
    most = 0.0
    for k, (layout, own) in enumerate(others, 1):
        apart = max(abs(a - b) for a, b in zip(alone, own))
        most = max(most, apart)
        found.update({f"name.{k}": r" $\times$ ".join(map(str, layout)), f"apart.{k}": in_tens(apart), f"ranks.{k}": math.prod(layout)})
    return {f"losses.{key}": value for key, value in {**found, "apart": in_tens(most)}.items()}


def in_tens(number):
    exponent = math.floor(math.log10(number)) if number else 0
    return rf"{number / 10 ** exponent:.1f}\,$\cdot$\,10$^{{{exponent}}}$" if number else "0"


def all_reduces():
    """{ranks: [(bytes, measured, predicted)]} in microseconds. Latency and bandwidth are measured
    on two ranks at 4 KiB and 16 MiB, as in make model; more ranks than cores share the cores."""
    (_, cores), *rows = (line.split() for line in record.read("all-reduce"))
    measured = {(int(ranks), int(size)): float(us) for ranks, size, us in rows}
    small, large = measured[2, 4 << 10], measured[2, 16 << 20]
    link = pace.Link(small / 2e6, (16 << 20) / (1e-6 * (large - small)))
    found = {}
    for (ranks, size), us in measured.items():
        crowd = max(1.0, ranks / int(cores))
        found.setdefault(ranks, []).append((size, us, 1e6 * crowd * pace.all_reduce(link, ranks, size)))
    return found, link, int(cores)


def all_reduce_drawings():
    """The points and lines of the all-reduces. Both axes are logarithmic: a unit is a factor of eight in x, of ten in y."""
    found = {}
    for ranks, points in all_reduces()[0].items():
        places = [(math.log(size / BYTES_AT_LEAST, 8), math.log10(measured), math.log10(predicted)) for size, measured, predicted in points]
        found[f"allreduce.measured.{ranks}"] = ",".join(f"{x:.2f}/{y:.3f}" for x, y, _ in places)
        found[f"allreduce.predicted.{ranks}"] = " ".join(f"({x:.2f},{y:.3f})" for x, _, y in places)
    return found


def all_reduce_numbers():
    rows, link, cores = all_reduces()
    found = {"latency": f"{1e6 * link.latency:.1f}", "bandwidth": f"{link.bandwidth / 1e9:.1f}", "cores": cores}
    for ranks, points in rows.items():
        for k, (size, measured, predicted) in enumerate(points):
            found[f"size.{k}"] = f"{size >> 20}\\,\\wMebibytes" if size >> 20 else f"{size >> 10}\\,\\wKibibytes"
            found.update({f"{ranks}.{k}.measured": f"{measured:.0f}" if measured >= 100 else f"{measured:.1f}", f"{ranks}.{k}.ratio": f"{measured / predicted:.2f}"})
    return {f"allreduce.{key}": value for key, value in found.items()}


def drawings():
    verdicts = {name: verdict(name) for name in ("verdict", "verdict.fr")}
    return {**verdicts, **timeline_drawings(), **loss_drawings(), **all_reduce_drawings()}


def numbers():
    return {**timeline_numbers(), **loss_numbers(), **all_reduce_numbers()}
