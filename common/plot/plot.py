#!/usr/bin/python3 -EsB
"""make plot METRICS="run.jsonl other.jsonl" [Y="loss accuracy"] [OUT=curves.svg]: curves of several
runs, in the terminal or as .svg or .png. A point is a step, the line a moving average, a large mark
an evaluation. In the terminal, each of several runs has a letter, in lower case for an evaluation."""
import json
import os
import shlex
import shutil

import gnuplot
from gnuplot import quoted
from language import TRANSLATION, _, give_up # found through the path that gnuplot.py extends

OF_AN_EVALUATION = {"loss": "test_loss", "accuracy": "test_accuracy"}
NAMES = {"loss": _("loss"), "accuracy": _("accuracy"), "lr": _("learning rate"), "step_s": _("seconds per step"), "tokens_per_s": _("tokens per second"),
         "comm_bytes": _("bytes sent by rank 0"), "comm_s": _("seconds of communication")}
COLUMNS_OF_MARKS = 60
MARKED = {"loss": _("{run}, test loss"), "accuracy": _("{run}, test accuracy")}


def read(path):
    """Reads a run's metrics: its steps, and its evaluations, each with the step before it."""
    steps, evaluations = [], []
    if os.path.exists(path) and not os.path.isfile(path):
        give_up(_("{path} is not a file").format(path=path), _("make train METRICS=run.jsonl writes one"))
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                try:
                    found = json.loads(line)
                    if "step" in found:
                        steps.append(found)
                    elif "test_loss" in found:
                        evaluations.append({**found, "step": steps[-1]["step"] if steps else 0})
                except (ValueError, TypeError, RecursionError):
                    give_up(_("{path}:{line} is not a line of metrics").format(path=path, line=number), _("make train METRICS=run.jsonl writes such a file; was it cut short?"))
    except OSError as error:
        give_up(f"{path}: {error.strerror}", _("make train METRICS=run.jsonl writes one"))
    if not steps:
        give_up(_("{path} has no steps").format(path=path), _("make train METRICS=run.jsonl writes one"))
    return steps, evaluations


def is_number(value):
    """Can this number be drawn? NaN and numbers beyond gnuplot's range cannot."""
    return isinstance(value, (int, float)) and abs(value) < 1e300


def mean_around(values, reach):
    """A moving average over `reach` values on either side."""
    return [sum(values[max(0, i - reach):i + reach + 1]) / len(values[max(0, i - reach):i + reach + 1]) for i in range(len(values))]


def block(name, points):
    return f"${name} << EOD\n" + "".join(f"{x:.10g} {y:.10g}\n" for x, y in points) + "EOD\n"


def own_marks(line, run, runs):
    """Points of a run in a terminal, which has no colours. With n runs, each run has every n-th
    column to itself, so all curves are visible even where they agree."""
    begin, width = line[0][0], (line[-1][0] - line[0][0]) or 1
    found = []
    for column in range(run, COLUMNS_OF_MARKS, runs):
        x = begin + width * column / (COLUMNS_OF_MARKS - 1)
        after = next((i for i, point in enumerate(line) if point[0] >= x), len(line) - 1)
        (x0, y0), (x1, y1) = line[max(0, after - 1)], line[after]
        found.append((x, y1 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)))
    return found


# In a terminal, a border hides the marks on it: the last step's, and the lowest and highest.
ROOM_FOR_MARKS = "set autoscale fix\nset offsets 0, graph 0.03, graph 0.06, graph 0.06\n"


def curves_of(runs, field, terminal):
    """gnuplot's data and plot commands for one field."""
    data, parts = "", []
    for i, (title, (steps, evaluations)) in enumerate(runs.items()):
        points = [(step["step"], step[field]) for step in steps if is_number(step["step"]) and is_number(step.get(field))]
        marks = [(one["step"], one[OF_AN_EVALUATION[field]]) for one in evaluations if is_number(one["step"]) and is_number(one.get(OF_AN_EVALUATION[field]))] if field in OF_AN_EVALUATION else []
        if not points:
            known = sorted(key for key, value in steps[0].items() if is_number(value) and key not in ("step", "epoch"))
            give_up(_("the steps of {run} have no '{field}'").format(run=title, field=field), _("Y takes one or more of: {fields}").format(fields=" ".join(known)))
        line = list(zip((x for x, _ in points), mean_around([y for _, y in points], len(points) // 50)))
        # Earlier lines are wider, so curves that agree are visible under the next ones.
        width = 2 + 3 * (len(runs) - 1 - i) / max(1, len(runs) - 1)
        name, label = f"{field}{i}", quoted(title)
        data += block(f"{name}points", points) + block(f"{name}line", line) + block(f"{name}marks", marks)
        if terminal and len(runs) > 1:
            data += block(f"{name}own", own_marks(line, i, len(runs)))
            parts.append(f'${name}own using 1:2 with points pointtype {i + 1} title {label} noenhanced')
            if marks:
                letter = chr(ord("a") + i % 26)
                parts.append(f'${name}marks using 1:2:("{letter}") with labels title {quoted(f"{letter} = {MARKED[field].format(run=title)}")} noenhanced')
            continue
        if not terminal:
            parts.append(f'${name}points using 1:2 with points pointtype 7 pointsize 0.25 linecolor {i + 1} notitle')
        parts.append(f'${name}line using 1:2 with lines linewidth {width:.1f} linecolor {i + 1} title {label} noenhanced')
        if marks:
            parts.append(f'${name}marks using 1:2 with points pointtype 7 pointsize {0.5 + 0.35 * width:.2f} linecolor {i + 1} '
                         f'title {quoted(MARKED[field].format(run=title))} noenhanced')
    name = quoted(NAMES.get(field, field))
    return data, f"set ylabel {quoted('') if terminal else name} noenhanced\n" + (f"set title {name} noenhanced\n" if terminal else "") \
        + "plot " + ", ".join(parts) + "\n"


def program_of(runs, fields, terminal):
    data, plots = zip(*(curves_of(runs, field, terminal) for field in fields))
    return "".join(data) + 'set xlabel ' + quoted(TRANSLATION.pgettext("of a training run", "step")) + '\nset grid\nset key outside below\n' + (f"set key maxrows {max(2, len(runs))}\n{ROOM_FOR_MARKS}" if terminal else "") \
        + (f"set multiplot layout {len(fields)},1\n" if len(fields) > 1 and not terminal else "") + "".join(plots)


def titles_of(paths):
    """The files' base names if these are distinct; otherwise their paths."""
    short = [os.path.splitext(os.path.basename(path))[0] for path in paths]
    return short if len(set(short)) == len(short) else paths


def in_the_terminal(runs, fields):
    size = shutil.get_terminal_size((80, 24))
    for field in fields:
        drawn = gnuplot.run(f"set terminal dumb size {min(size.columns, 120)},{max(15, min(size.lines - 1, 30))} noenhanced\n" + program_of(runs, [field], True))
        print("\n".join(line.rstrip() for line in drawn.decode().splitlines() if line.strip()))


def main():
    paths, fields, out = shlex.split(os.environ.get("METRICS", "")), os.environ.get("Y", "").split() or ["loss"], os.environ.get("OUT", "")
    if not paths:
        give_up(_("METRICS is missing"), _('make plot METRICS="run.jsonl other.jsonl"; make train METRICS=run.jsonl writes one'))
    if out and os.path.splitext(out)[1] not in gnuplot.TERMINALS:
        give_up(_("a picture cannot be named '{name}'").format(name=out), _("a name that ends with {endings}").format(endings=_(" or ").join(gnuplot.TERMINALS)))
    if out:
        gnuplot.output.make_room(out, gnuplot.PICTURE)
    runs = dict(zip(titles_of(paths), map(read, paths)))
    if out:
        gnuplot.draw(out, program_of(runs, fields, False), 900, 120 + 360 * len(fields))
        print(_("drawn in {file}").format(file=out))
    else:
        in_the_terminal(runs, fields)


main()
