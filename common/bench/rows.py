"""Measurements as rows: printed as tables, stored in a file, compared with stored ones."""
import json
import math
import os
import statistics
import shlex
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../base"))
import output  # pylint: disable=wrong-import-position
from language import _, give_up  # pylint: disable=wrong-import-position

SAVED = output.Kind(_("a file that make bench SAVE=file has written"), b'{\n "machine": ')


class Row:
    """One figure, measured several times.

    @param lower whether lower values are better
    @param blur the relative error of each value, even if all values agree"""

    def __init__(self, section, name, unit, values, lower=True, blur=0.0, **notes):
        self.section, self.name, self.unit, self.values, self.lower, self.blur, self.notes = section, name, unit, values, lower, blur, notes

    def key(self):
        return f"{self.section}: {self.name}"

    def best(self):
        return min(self.values) if self.lower else max(self.values)

    def median(self):
        return statistics.median(self.values)


def refuse(name, value, hint):
    """Ends the program with an error: a setting cannot have this value."""
    give_up(_("{name} cannot be '{value}'").format(name=name, value=value), hint)


def whole_number(name, default, what=_("a number from 1 on")):
    """A positive whole number from the environment variable `name`; ends with an error if it is not
    one."""
    text = os.environ.get(name) or str(default)
    if not text.isdigit() or int(text) < 1:
        refuse(name, text, _("it is {what}: {example}").format(what=what, example=f"{name}={default}"))
    return int(text)


def has_failed(what, status, trouble, words):
    """Ends the program with an error, because a command has failed."""
    give_up(_("{what} ended with {status}: {trouble}").format(what=what, status=status, trouble=trouble), run_alone(words))


def run_alone(words):
    return _("run it alone: ") + shlex.join(map(str, words))


def said(*command, what=None, **more):
    """A command's output. Ends the program if the command fails.

    @param what the command's name in the error"""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        has_failed(what or words[0], done.returncode, done.stderr.strip()[:300], words)
    return done.stdout


def either(name, values):
    """The values of a setting, for a hint."""
    return _(" or ").join(f"{name}={value}" for value in values)


def number(value):
    """Four significant digits, or a whole number from 1000 on."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if value >= 0.001 or value == 0 else f"{value:.2e}"


def paragraph(label, text):
    """Prints a text beside its label, wrapped to 80 columns."""
    print(textwrap.fill(text, 80, initial_indent=f"{label:<10}", subsequent_indent=" " * 10))


def table(title, heads, lines):
    """Prints a table: its first column is text, the others are numbers. A head may have several
    lines."""
    heads = [head.split("\n") for head in heads]
    height = max(map(len, heads))
    lines = [*zip(*([""] * (height - len(head)) + head for head in heads)), *lines]
    widths = [max(len(str(cell)) for cell in column) for column in zip(*lines)]
    print(f"\n{title}")
    for line in lines:
        cells = [str(cell).ljust(width) if i == 0 else str(cell).rjust(width) for i, (cell, width) in enumerate(zip(line, widths))]
        print("  " + "  ".join(cells).rstrip())
    sys.stdout.flush()


def show(title, rows, *first):
    """Prints a table of rows: the unit, the best and the median value, and the notes of the rows.

    @param first the notes in the leftmost columns; without any, the order is that of the rows"""
    notes = list(dict.fromkeys((*first, *(note for row in rows for note in row.notes))))
    table(title, ["", "unit", "best", "median", *notes],
          [[row.name, row.unit, number(row.best()), number(row.median()), *(row.notes.get(note, "") for note in notes)] for row in rows])


def save(path, machine, rows):
    output.write(path, SAVED, (json.dumps({"machine": machine, "rows": [vars(row) for row in rows]}, indent=1) + "\n").encode())


def why_invalid(error):
    """Why a JSON file cannot be used, in a few words."""
    if isinstance(error, OSError):
        return error.strerror
    if isinstance(error, UnicodeDecodeError):
        return _("it is not a text")
    if isinstance(error, json.JSONDecodeError):
        return _("line {number} is not JSON").format(number=error.lineno)
    return _("{what} is missing").format(what=error) if isinstance(error, KeyError) else str(error)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        before = [Row(one["section"], one["name"], one["unit"], one["values"], one["lower"]) for one in kept["rows"]]
        if not all(row.values and all(map(math.isfinite, row.values)) for row in before):
            raise ValueError(_("a row has no numbers"))
        return kept["machine"], {row.key(): row for row in before}
    except (OSError, ValueError, KeyError, TypeError) as error:
        give_up(_("{path} holds no measurements: {why}").format(path=path, why=why_invalid(error)), _("COMPARE names a file that make bench SAVE=file has written"))


def compare(path, machine, rows):
    """Compares with an earlier run. Two figures differ if their ranges do not overlap; otherwise
    the difference is noise."""
    other, before = load(path)
    lines = []
    for row in rows:
        then = before.get(row.key())
        if not then or then.unit != row.unit:
            continue
        ratio = row.median() / then.median() if then.median() else float("nan")
        apart = min(row.values) > max(then.values) * (1 + row.blur) or max(row.values) < min(then.values) * (1 - row.blur)
        worse = (ratio > 1) == row.lower
        noise = max(max(r.values) / min(r.values) - 1 for r in (row, then)) if min(row.values + then.values) > 0 else 0
        lines.append([row.key(), row.unit, number(then.median()), number(row.median()), f"{ratio:.3f}", f"{100 * noise:.0f} %",
                      ("worse" if worse else "better") if apart else ""])
    if not lines:
        print(f"\n{path} has none of the rows measured now")
        return
    table(f"now against {path}" + ("" if other == machine else " (from another machine or setting)"),
          ["", "unit", "then", "now", "now/then", "noise", ""], lines)
