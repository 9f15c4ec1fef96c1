#!/usr/bin/python3
"""make plot METRICS="run.jsonl other.jsonl" [Y="loss accuracy"] [OUT=curves.svg]: curves of runs, one beside the other; in the terminal, or
as .svg or .png. A point is a step; the line is the mean of those around it; a large mark is an evaluation."""
import json
import os
import shlex
import shutil
import sys

import gnuplot

OF_AN_EVALUATION = {"loss": "test_loss", "accuracy": "test_accuracy"}
NAMES = {"loss": "loss", "accuracy": "accuracy", "lr": "learning rate", "step_s": "seconds a step", "tokens_per_s": "tokens a second",
         "comm_bytes": "bytes sent by rank 0", "comm_s": "seconds of communication"}


def give_up(what, hint):
    print(f"error: {what}\n  HINT: {hint}", file=sys.stderr)
    sys.exit(2)


def read(path):
    """The steps of a run, and its evaluations, each with the step that it came after."""
    steps, evaluations = [], []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    found = json.loads(line)
                    if "step" in found:
                        steps.append(found)
                    elif "test_loss" in found:
                        evaluations.append({**found, "step": steps[-1]["step"] if steps else 0})
                except (ValueError, TypeError):
                    give_up(f"{path}:{number} is no line of metrics", "make train METRICS=run.jsonl writes such a file; was it cut short?")
    except OSError as error:
        give_up(f"{path}: {error.strerror}", "make train METRICS=run.jsonl writes one")
    if not steps:
        give_up(f"{path} has no steps", "make train METRICS=run.jsonl writes one")
    return steps, evaluations


def mean_around(values, reach):
    """Each value's mean with those up to `reach` places before and after it."""
    return [sum(values[max(0, i - reach):i + reach + 1]) / len(values[max(0, i - reach):i + reach + 1]) for i in range(len(values))]


def block(name, points):
    return f"${name} << EOD\n" + "".join(f"{x:.10g} {y:.10g}\n" for x, y in points) + "EOD\n"


def curves_of(runs, field, terminal):
    """gnuplot's data and its plot of one field."""
    data, parts = "", []
    for i, (title, (steps, evaluations)) in enumerate(runs.items()):
        points = [(step["step"], step[field]) for step in steps if isinstance(step.get(field), (int, float))]
        marks = [(one["step"], one[OF_AN_EVALUATION[field]]) for one in evaluations] if field in OF_AN_EVALUATION else []
        if not points:
            known = sorted(key for key, value in steps[0].items() if isinstance(value, (int, float)) and key not in ("step", "epoch"))
            give_up(f"the steps of {title} have no '{field}'", f"Y is some of: {' '.join(known)}")
        line = list(zip((x for x, _ in points), mean_around([y for _, y in points], len(points) // 50)))
        name, quoted = f"{field}{i}", title.replace('"', "'")
        data += block(f"{name}points", points) + block(f"{name}line", line) + block(f"{name}marks", marks)
        if not terminal:
            parts.append(f'${name}points using 1:2 with points pointtype 7 pointsize 0.25 linecolor {i + 1} notitle')
        parts.append(f'${name}line using 1:2 with lines linewidth 2 linecolor {i + 1} title "{quoted}" noenhanced')
        if marks:
            parts.append(f'${name}marks using 1:2 with points pointtype 7 pointsize 1.2 linecolor {i + 1} '
                         f'title "{quoted}, {OF_AN_EVALUATION[field].replace("_", " ")}" noenhanced')
    return data, f'set ylabel "{"" if terminal else NAMES.get(field, field)}" noenhanced\n' + ("" if not terminal else f'set title "{NAMES.get(field, field)}" noenhanced\n') \
        + "plot " + ", ".join(parts) + "\n"


def program_of(runs, fields, terminal):
    data, plots = zip(*(curves_of(runs, field, terminal) for field in fields))
    return "".join(data) + 'set xlabel "step"\nset grid\nset key outside below\n' + (f"set key maxrows {max(2, len(runs))}\n" if terminal else "") \
        + (f"set multiplot layout {len(fields)},1\n" if len(fields) > 1 and not terminal else "") + "".join(plots)


def titles_of(paths):
    """Names of files, or as much of their paths as tells them apart."""
    short = [os.path.splitext(os.path.basename(path))[0] for path in paths]
    return short if len(set(short)) == len(short) else paths


def in_the_terminal(runs, fields):
    size = shutil.get_terminal_size((80, 24))
    for field in fields:
        drawn = gnuplot.run(f"set terminal dumb size {min(size.columns, 120)},{max(15, min(size.lines - 1, 30))} noenhanced\n" + program_of(runs, [field], True))
        print("\n".join(line.rstrip() for line in drawn.splitlines() if line.strip()))


def main():
    paths, fields, out = shlex.split(os.environ.get("METRICS", "")), os.environ.get("Y", "").split() or ["loss"], os.environ.get("OUT", "")
    if not paths:
        give_up("which runs?", 'make plot METRICS="run.jsonl other.jsonl"; make train METRICS=run.jsonl writes one')
    if out and os.path.splitext(out)[1] not in gnuplot.TERMINALS:
        give_up(f"a picture cannot be '{out}'", f"a name that ends with {' or '.join(gnuplot.TERMINALS)}")
    if out and not os.path.isdir(os.path.dirname(out) or "."):
        give_up(f"there is no folder {os.path.dirname(out)}", "mkdir makes it")
    runs = dict(zip(titles_of(paths), map(read, paths)))
    try:
        if out:
            gnuplot.draw(out, program_of(runs, fields, False), 900, 120 + 360 * len(fields))
            print(f"drawn in {out}")
        else:
            in_the_terminal(runs, fields)
    except (gnuplot.Trouble, OSError) as error:
        give_up(str(error), getattr(error, "hint", "may it be written there?"))


main()
