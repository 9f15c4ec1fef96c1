"""Data for the student's commands: the labs, and the result of each lab's last grading (make grade
writes it below BUILD/verdicts, as FORMAT=json)."""
import errno
import functools
import glob
import json
import os
import shutil
import sys
import textwrap

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../common/base"))
from language import LANGUAGE, _, give_up  # pylint: disable=wrong-import-position


def in_one_sentence(kind, what, where):
    """Reports an OSError, such as a full disk, as an error for the user, without a traceback."""
    if not issubclass(kind, OSError):
        sys.__excepthook__(kind, what, where)
        return
    hint = _("free some space") if what.errno == errno.ENOSPC else _("work on a copy of the kit in a folder of your own")
    print(_("error: {file}: {why}\n  HINT: {hint}").format(file=what.filename or BUILD, why=what.strerror, hint=hint), file=sys.stderr)
    sys.stderr.flush()
    os._exit(2)


sys.excepthook = in_one_sentence

BUILD = os.environ.get("BUILD", "build")
HINTS = f"{BUILD}/verdicts/hints.json"
PREDICTIONS = f"{BUILD}/verdicts/predictions.json"
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def in_language(file):
    """README.fr.md for README.md, if the reader's language is French and the file exists."""
    translated = file.replace(".md", f".{LANGUAGE}.md")
    return translated if os.path.exists(translated) else file


def wrapped(text, indent):
    """Wraps text to the terminal's width, at most 100 columns, with a hanging indent. The text has
    no colours."""
    columns = max(40, min(100, shutil.get_terminal_size((100, 24)).columns))
    return textwrap.wrap(text, columns - indent, break_long_words=False, break_on_hyphens=False) or [""]


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


good, bad, quiet = (functools.partial(paint, code) for code in (32, 31, 2))


def text_of(file):
    """The file's contents, or None if it cannot be read."""
    try:
        with open(file) as opened:
            return opened.read()
    except OSError:
        return None


class Lab:
    def __init__(self, facts):
        self.number, self.title, self.part = facts["number"], facts["title"], facts["part"]
        self.folder = f"labs/{facts['folder']}"
        self.file = f"{self.folder}/{facts['file']}"
        self.solution = f"solutions/{facts['folder']}/{facts['file']}"
        self.start = f"grader/start/{facts['folder']}/{facts['file']}"
        self.needs = [int(n) for n in facts["needs"].split()]
        self.points = sum(facts["points"].values())
        self.question, self.unit = (_(text) if text else "" for text in (facts["question"], facts["unit"]))

    def is_untouched(self):
        """Is the file missing, or as it was at the start?"""
        return text_of(self.file) in (None, text_of(self.start))

    def hints(self):
        """In the reader's language, if translated."""
        english = sorted(glob.glob(f"{self.folder}/hints/*[0-9].md"), key=lambda file: int(os.path.basename(file)[:-3]))
        return [in_language(file) for file in english]

    def verdict(self):
        """The result of the last grading, or None; "old" says why it is outdated, or is empty."""
        found = None
        for file in (f"{BUILD}/verdicts/{self.number}.json", f"{BUILD}/verdicts/all.json", f"{BUILD}/verdicts/part{self.part}.json"):
            try:
                when = os.stat(file).st_mtime
                with open(file) as text:
                    whole = json.load(text)
                mine = [{**lab, "author": whole["author"]} for lab in whole["labs"] if lab["number"] == self.number]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):  # no verdict
                continue
            if mine and mine[0]["state"] != "not run" and (not found or when > found["when"]):
                found = {**mine[0], "when": when}
        if found:
            beneath = [lab for lab in all_labs() if lab.number in self.needs and lab.is_newer(found["when"])] if found["author"] == "mine" else []
            found["old"] = _("changed since it was graded") if self.is_newer(found["when"]) else \
                _("lab {lab}, which it builds on, has changed since").format(lab=beneath[0].number) if beneath else ""
        return found

    def is_newer(self, when):
        return os.path.exists(self.file) and os.stat(self.file).st_mtime > when

    def is_done(self):
        found = self.verdict()
        return bool(found and not found["old"] and found["points"] == found["of"])


def all_labs():
    with open(f"{BUILD}/generated/labs.json") as text:
        return [Lab(facts) for facts in json.load(text)]


def the_lab(command):
    """The lab that LAB= names."""
    asked, labs = os.environ.get("LAB", ""), all_labs()
    numbers = " ".join(str(lab.number) for lab in labs)
    if not asked:
        give_up(_("LAB is missing"), _("for example, make {command} LAB=2; the labs are: {numbers}").format(command=command, numbers=numbers))
    for lab in labs:
        if str(lab.number) == asked:
            return lab
    give_up(_("there is no lab '{lab}'").format(lab=asked), _("the labs are: {numbers}").format(numbers=numbers))


def kept_of_labs(file):
    """Reads a file that the student's commands keep: {lab: what is kept about it}. A damaged one is
    an error, so that the next keep() does not replace it."""
    try:
        kept = {int(number): what for number, what in json.loads(text_of(file) or "{}").items()}
        if all(isinstance(what, dict if file == PREDICTIONS else int) for what in kept.values()):
            return kept
    except (AttributeError, ValueError):
        pass
    give_up(_("{file} is damaged").format(file=file), _("mv {file} {file}.damaged keeps what is in it; the next command begins a new file").format(file=file))


def hints_taken():
    return kept_of_labs(HINTS)


def in_unit(number, lab):
    return f"{number:.15g} {lab.unit}".rstrip()


def asked(lab, indent=0):
    """The question of a lab that has a number to predict, wrapped to the terminal's width."""
    return "\n".join(" " * indent + line for line in wrapped(lab.question, indent))


def both_numbers(lab, kept):
    """A lab's predicted and measured numbers, as a sentence; empty if there are none."""
    predicted, measured = (in_unit(kept[what], lab) if what in kept else "-" for what in ("predicted", "measured"))
    late = _(" after measuring") if kept.get("late") else ""
    return _("predicted{late}: {predicted}; measured: {measured}").format(late=late, predicted=predicted, measured=measured) if kept else ""


def keep(file, content, times=None):
    """Writes JSON atomically.

    @param times of the last access and change; None: now"""
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(f"{file}.new", "w") as text:
        json.dump(content, text)
    os.utime(f"{file}.new", times)
    os.replace(f"{file}.new", file)
