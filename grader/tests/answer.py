"""answer.py NAME: prints the source of a wrong answer (grader/mutants) or of an unusual right one
(grader/accepts), such as 06-no_f. answer.py --all FOLDER [PATTERN...]: for each one whose name
matches, writes FOLDER/KIND/NAME/source.c and fields. answer.py --few FOLDER: the same for every
right one, and for the first wrong one of each lab that fails the same checks.
grader/mutants/README.md describes the format."""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FIELD = "(?:fails|passes|says|layout|scores|repeats|expects|with): "
HERE = "    /* here */\n"


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class Answer:
    def __init__(self, table, number, name, lines):
        self.place = f"{table}:{number}"
        self.kind, self.lab = os.path.basename(os.path.dirname(table)), os.path.basename(table)[:2]
        self.name = f"{self.lab}-{name}"
        body = next((i for i, line in enumerate(lines) if line.startswith(("-", "+"))), len(lines))
        items = re.split(f"; (?={FIELD})", "; ".join(line.strip() for line in lines[:body]))
        self.title = name if re.match(FIELD, items[0]) else items.pop(0)
        self.fields = [item.split(": ", 1) for item in items]
        self.lines = lines[body:]

    def checks(self):
        """The lab, and the checks that must fail."""
        return self.lab, *sorted(", ".join(value for field, value in self.fields if field == "fails").split(", "))

    def wrong(self, problem):
        return ValueError(f"{self.place}: {self.name}: {problem}")

    def changes(self):
        """[old text, new text] of each change to the solution. The old text is "" for lines that go
        above the functions."""
        changes = []
        for line in self.lines:
            if not line.startswith(("-", "+")):
                raise self.wrong(f"a line of a change begins with - or +: {line}")
            if not changes or line[0] == "-" and changes[-1][1]:
                changes.append(["", ""])
            changes[-1][line[0] == "+"] += line[1:] + "\n"
        return changes

    def place_of(self, old, solution):
        """The begin and end of a text that occurs once in the solution. A line '...' stands for all
        lines up to the next text."""
        parts = old[:-1].split("\n...\n")
        if solution.count(parts[0]) != 1:
            raise self.wrong(f"this occurs {solution.count(parts[0])} times in the solution, not once:\n{parts[0]}")
        begin = end = solution.index(parts[0])
        for part in parts:
            if part not in solution[end:]:
                raise self.wrong(f"this does not follow in the solution:\n{part}")
            end = solution.index(part, end) + len(part)
        return begin, end

    def source(self):
        solution, above, places = text_of(glob.glob(f"solutions/{self.lab}-*/*.c", root_dir=ROOT)[0]), "", []
        for old, new in self.changes():
            if old:
                places.append((*self.place_of(old, solution), new[:-1]))
            else:
                above = new
        places.sort(reverse=True)
        for (begin, end, new), later in zip(places, [(len(solution),), *places]):
            if end > later[0]:
                raise self.wrong(f"two changes overlap in this text:\n{solution[begin:end]}")
            solution = solution[:begin] + new + solution[end:]
        preludes = "".join(text_of(f"grader/mutants/preludes/{value}.c") for field, value in self.fields if field == "with")
        if HERE in preludes:
            return preludes.replace(HERE, above) + solution
        place = solution.index("\n", solution.rindex("#include")) + 1
        return preludes + solution[:place] + above + solution[place:]


def answers():
    for table in sorted(glob.glob("grader/mutants/*.txt", root_dir=ROOT) + glob.glob("grader/accepts/*.txt", root_dir=ROOT)):
        name, number, lines = None, 0, []
        for i, line in enumerate([*text_of(table).splitlines(), "[]"], 1):
            begin = re.match(r"\[(\w*)\]", line)
            if begin:
                if name:
                    yield Answer(table, number, name, lines)
                name, number, lines = begin[1], i, [line[begin.end():]]
            elif line:
                lines.append(line)


def write(answer, folder):
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/source.c", "w", encoding="utf-8") as file:
        file.write(answer.source())
    with open(f"{folder}/fields", "w", encoding="utf-8") as file:
        file.writelines(f"{field}: {value}\n" for field, value in [("title", answer.title), *answer.fields])
    print(folder)


def main():
    every, options, problems = list(answers()), sys.argv[1:], 0
    if options[:1] == ["--all"]:
        chosen = [one for one in every if any(re.search(pattern, f"grader/{one.kind}/{one.name}") for pattern in options[2:] or ["."])]
    elif options[:1] == ["--few"]:
        first = {one.checks(): one for one in reversed(every) if one.kind == "mutants"}
        chosen = [one for one in every if one.kind == "accepts" or first[one.checks()] is one]
    else:
        chosen = [one for one in every if [one.name] == options]
    if not chosen:
        sys.exit(f"error: there is no answer {' '.join(options)}\n  HINT: 06-no_f is one; grader/mutants/*.txt and grader/accepts/*.txt have all")
    for one in chosen:
        try:
            if options[0] in ("--all", "--few"):
                write(one, f"{options[1]}/{one.kind}/{one.name}")
            else:
                sys.stdout.write(one.source())
        except ValueError as problem:
            print(f"error: {problem}", file=sys.stderr)
            problems += 1
    sys.exit(problems > 0)


if __name__ == "__main__":
    main()
