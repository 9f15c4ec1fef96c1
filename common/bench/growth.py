"""Measures how the cost of a step grows with each size of the model, on one rank, and compares it
with the counts of cost.py and the times of pace.py."""
import math
import os
import sys

import cost
import pace
import steps
from rows import Row, _, give_up, number, table

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../plot"))
import gnuplot  # noqa: E402

HEAD_SIZE, STEPS = 64, 6
BASE = {"SEQ": 128, "HIDDEN_DIM": 256, "LAYERS": 4, "BATCH_SIZE": 8}
SIZES = {"SEQ": (64, 128, 256, 512, 1024), "HIDDEN_DIM": (64, 128, 256, 512), "LAYERS": (1, 2, 4, 8), "BATCH_SIZE": (2, 4, 8, 16, 32)}


def model_of(sizes):
    return cost.Model(sizes["LAYERS"], sizes["HIDDEN_DIM"], sizes["HIDDEN_DIM"] // HEAD_SIZE, sizes["SEQ"], sizes["BATCH_SIZE"],
                      steps.VOCABULARY, classifies=True)


def run(build, work, model):
    return steps.measured(steps.train(build, work, 1, 1, 1, (*model.sizes(), STEPS),
                                      *steps.data_in(work), "--profile", 1))


def calibrated(model, profile):
    """A cluster of one rank, with the rates measured on the model BASE."""
    return pace.Cluster(**steps.rates(model, steps.seconds_of(profile)), near=pace.ALONE, far=pace.ALONE)


def slope(points, values):
    """The exponent of a value's growth from each point to the next; empty for the first point."""
    return [""] + [f"{math.log(values[i] / values[i - 1]) / math.log(points[i] / points[i - 1]):.2f}" for i in range(1, len(points))]


def measure(build, work, rounds, part):
    axes = [axis for axis in SIZES if part.upper() in axis]
    if not axes:
        give_up(_("no size to vary is called '{name}'").format(name=part), _("choose one of: ") + ", ".join(SIZES))
    found, base = {}, model_of(BASE)
    for turn in range(rounds):
        for axis in axes:
            for size in SIZES[axis]:
                steps.progress(f"round {turn + 1} of {rounds}: {axis}={size}")
                found.setdefault((axis, size), []).append(run(build, work, model_of({**BASE, axis: size})))
    middle = calibrated(base, found[axes[0], BASE[axes[0]]][-1]["profile"])
    steps.progress("")
    measured = []
    for axis in axes:
        measured += show(work, axis, middle, {size: found[axis, size] for size in SIZES[axis]})
    return measured


def show(work, axis, middle, runs):
    sizes = list(runs)
    times = [Row("growth", f"{axis}={size}, step", "ms", steps.times(runs[size])) for size in sizes]
    held = [runs[size][0]["tensor_bytes"] / 1e6 for size in sizes]
    models = [model_of({**BASE, axis: size}) for size in sizes]
    expected = [1e3 * sum(pace.step(middle, model, 1, 1).values()) for model in models]
    counted = [cost.memory(middle, model, 1, 1) / 1e6 for model in models]
    figures = [[row.best() for row in times], [row.median() for row in times],
               expected, held, counted]
    numbers = [list(map(number, values)) for values in figures]
    slopes = [slope(sizes, values) for values in (figures[0], expected, held, counted)]
    table(f"growth with {axis}; the others: " + ", ".join(f"{name}={size}" for name, size in BASE.items() if name != axis),
          [axis, "best ms", "median", "on paper", "power", "on paper", "MB", "on paper", "power", "on paper"],
          list(zip(sizes, *numbers[:3], *slopes[:2], *numbers[3:], *slopes[2:])))
    plot(work, axis, list(zip(sizes, *figures)))
    return times + [Row("growth", f"{axis}={size}, tensors", "MB", [mb]) for size, mb in zip(sizes, held)]


def plot(work, axis, lines):
    """Draws two plots side by side as SVG, and stores their numbers in a file beside the
    picture."""
    data, picture = f"{work}/growth-{axis}.dat", f"{work}/growth-{axis}.svg"
    with open(data, "w", encoding="utf-8") as file:
        file.write(f"# {axis}, ms at best, median, on paper, MB of tensors, on paper\n")
        file.writelines(" ".join(f"{value:.6g}" for value in line) + "\n" for line in lines)
    if not gnuplot.is_there():
        print("  no picture: there is no gnuplot here (make setup says what is missing)")
        return
    program = f"""set multiplot layout 1,2
set logscale xy 2
set key left top
set grid
set xlabel {gnuplot.quoted(axis)}
set xrange [{lines[0][0] / 1.2}:{lines[-1][0] * 1.2}]
set xtics ({', '.join(str(line[0]) for line in lines)})
set ylabel "ms per step"
plot {gnuplot.quoted(data)} using 1:2 with linespoints pointtype 7 title "measured, best", "" using 1:4 with lines dashtype 2 title "on paper"
set ylabel "MB of tensors"
plot {gnuplot.quoted(data)} using 1:5 with linespoints pointtype 7 title "measured", "" using 1:6 with lines dashtype 2 title "on paper"
"""
    gnuplot.draw(picture, program)
    print(f"  drawn in {picture}")
