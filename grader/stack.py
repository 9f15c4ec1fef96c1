#!/usr/bin/python3 -EsB
"""Determines which labs a program is made of.

    stack.py [STACK [UPTO]]        prints them for make, as lines NAME=VALUE
    stack.py tell STACK [UPTO]     prints them for people, before training
    stack.py started LAB           exit status 0 if the student has started the lab, otherwise 1
    stack.py missing LAB...        prints why a lab that builds on these waits
    stack.py start LAB             prints the path of its start file
    stack.py number NAME           prints the number of the lab with this name, if there is one
    stack.py nearest NAME          prints the name of the lab whose name is most similar

A lab's names are its title, its folder's name without the number, and the layers that it makes. Case
and punctuation do not matter. STACK is mine, solutions (the default) or serial. At stage n, a function comes from the last lab up
to n that defines it, or from a stand-in of the kit. With serial, the stage is 0. Otherwise, without
UPTO, it is the last one or, with mine, the last one whose labs are all started.
"""
import difflib
import os
import platform
import re
import sys

KIT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(KIT, "common/base"))
from language import TRANSLATION, _  # pylint: disable=wrong-import-position


class Lab:
    def __init__(self, number, file, needs, beside, exports):
        self.number, self.file, self.exports = int(number), file, set(exports.split())
        self.needs, self.beside = [int(n) for n in needs.split()], [int(n) for n in beside.split()]


def table():
    """Reads grader/labs.mk: {number: lab}, and {name: words} of its other variables."""
    with open(os.path.join(KIT, "grader/labs.mk"), encoding="utf-8") as file:
        text = file.read().replace("\\\n", "")
    labs = [Lab(*row.split(",")) for row in re.findall(r"^..call add_lab,(.*)\)", text, re.M)]
    return {lab.number: lab for lab in labs}, {name: words.split() for name, words in re.findall(r"^(\w+) = (.*)", text, re.M)}


LABS, TABLE = table()


def tokens(path):
    """A C file without comments and white space; None if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError:
        return None
    comment_or_string = r'"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'" + r"|//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)"
    return re.sub(r"\s+", "", re.sub(comment_or_string, lambda found: "" if found[0][0] == "/" else found[0], text, flags=re.S))


def known_names():
    """{name in small letters, without punctuation: number}, the folder's name first for each lab."""
    found = {}
    for number, lab in LABS.items():
        with open(os.path.join(KIT, f"grader/labs/lab{number:02}.c"), encoding="utf-8") as file:
            titles = re.findall(r'\.title = N_\("(.*)"\)', file.read())
        for name in [name_of(lab), *titles, *(export[:-4] for export in lab.exports if export.endswith("_new"))]:
            found.setdefault(plain(name), number)
    return found


def name_of(lab):
    return lab.file.split("/")[0].split("-", 1)[1]


def plain(name):
    return re.sub(r"[\W_]", "", name).lower()


def start_file(number):
    """The path of a lab's start file. A lab without one starts from the student's file of the first
    lab with the same functions."""
    path = os.path.join("grader/start", LABS[number].file)
    first = min(n for n in LABS if LABS[n].exports == LABS[number].exports)
    return path if first == number or os.path.exists(path) else os.path.join("labs", LABS[first].file)


def is_started(number):
    mine = tokens(os.path.join("labs", LABS[number].file))
    return mine is not None and mine != tokens(start_file(number))


def author(number, mine):
    """Whose file is used for a lab: the student's if it is in `mine`; otherwise the reference, or
    an object that came with the handout."""
    if number in mine:
        return "student"
    if os.path.isdir("solutions"):
        return "solution"
    return "given" if os.path.exists(f"grader/given/{platform.machine()}/{number}.o") else "missing"


def parts_at(stage, without=()):
    """The labs used at a stage, and the labs that something stands in for, among them `without`."""
    labs, others, asked = set(), set(), [int(n) for n in TABLE["TRAINED"]]
    while asked:
        number = asked.pop()
        if number > stage or number in without:
            if number not in others:
                others.add(number)
                asked += LABS[number].beside
            continue
        number = max(n for n in LABS if n <= stage and LABS[n].exports >= LABS[number].exports)
        if number not in labs:
            labs.add(number)
            asked += LABS[number].needs
    return sorted(labs), sorted(others)


def place_holder(number):
    """The object that stands in for a lab: a layer of common/model/serial, or its start file."""
    serial = dict(pair.split(":") for pair in TABLE["SERIAL_LAYERS"])
    source = f"common/model/serial/{serial[str(number)]}.c" if str(number) in serial else start_file(number)
    return f"float/{source[:-2]}.o"


class Stack:
    def __init__(self, kind="", upto=""):
        self.mine = [n for n in LABS if is_started(n)] if kind == "mine" else []
        without = {int(n) for n in TABLE["OPTIONAL"]} - set(self.mine) if kind == "mine" else set()
        stages = [0] + [int(n) for n in TABLE["STAGES"] if int(n) not in without]
        whole = [n for n in stages if kind != "mine" or set(parts_at(n, without)[0]) <= set(self.mine) or n == 0]
        self.stage = 0 if kind == "serial" else int(upto or whole[-1])
        self.labs, self.others = parts_at(self.stage, without)
        self.early = [n for n in self.mine if n > self.stage]
        after = next((n for n in stages if n > self.stage), self.stage)
        self.lacking = [n for n in parts_at(after, without)[0] if n not in self.mine]

    def facts(self):
        yield f"stage={self.stage}"
        for number in LABS:
            yield f"author-{number}={author(number, self.mine)}"
        for number in self.labs:
            yield f"part=labs/{author(number, self.mine)}/{number}.o"
        for number in self.others:
            if str(number) not in TABLE["NOTHING_LINKED"]:
                yield f"part={place_holder(number)}"

    def tell(self, upto):
        def row(numbers):
            return " ".join(map(str, numbers)) or TRANSLATION.pgettext("labs", "none")
        reference = [n for n in self.labs if author(n, self.mine) == "solution"]
        print(_("stack     your labs: %s; the reference: %s") % (row(n for n in self.labs if n not in reference), row(reference)))
        if self.early and not upto:
            print(_("not used  your labs: %s; needed first, not started: %s") %
                  (row(self.early), row(self.lacking)))
        print(_("stage     after lab %s") % self.stage)


def main(arguments):
    if arguments[:1] == ["started"]:
        return 0 if is_started(int(arguments[1])) else 1
    if arguments[:1] == ["start"]:
        print(start_file(int(arguments[1])))
        return 0
    if arguments[:1] == ["number"]:
        print(known_names().get(plain(arguments[1]), ""))
        return 0
    if arguments[:1] == ["nearest"]:
        names = known_names()
        print(*(name_of(LABS[names[name]]) for name in difflib.get_close_matches(plain(arguments[1]), names, 1)))
        return 0
    if arguments[:1] == ["missing"]:
        lacking = arguments[1:]
        print("waits:", _("it builds on lab %s, which is not started") % lacking[0] if len(lacking) == 1
              else _("it builds on labs that are not started: %s") % ", ".join(lacking))
        print(_("  HINT: ") + _("run make grade LAB=%s first") % lacking[0])
        return 0
    telling = arguments[:1] == ["tell"]
    kind, upto = (arguments[telling:] + ["", ""])[:2]
    stack = Stack(kind, upto)
    if telling:
        stack.tell(upto)
    else:
        print(*stack.facts(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
