"""unsaid.py FOLDER...: lists the sentences of the judge that no report of the answers in these folders
has. Such a sentence is not tested; it needs an answer that draws it, or nobody needs it. mutants.sh
calls it after a run of all answers."""
import glob
import re
import sys

FILES = ("grader/judge/diagnose/*.c", "grader/judge/mpi/*.c", "grader/judge/reason/*.c", "grader/labs/*/*.c", "grader/labs/*.c")
SENTENCE = re.compile(r'\bN?_\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)')
FORMAT = re.compile(r"%[-+ #0]*[0-9.*]*(?:ll|l|z)?[a-zA-Z]|%%")
SHORT = 6  # a piece between two formats that is not looked for


def words(text):
    return " ".join(text.split())


def pieces(literal):
    """What a report has of a sentence, between what its formats write."""
    return [piece for piece in map(words, FORMAT.split(literal)) if len(piece) >= SHORT]


def main():
    reports = []
    for folder in sys.argv[1:]:
        with open(f"{folder}/report", encoding="utf-8", errors="replace") as file:
            reports.append(words(file.read()))
    said = "\n".join(reports)
    unsaid = []
    for path in sorted(name for files in FILES for name in glob.glob(files)):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        for match in SENTENCE.finditer(source):
            literal = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(1))).replace("\\n", " ").replace('\\"', '"')
            if not all(piece in said for piece in pieces(literal)):
                unsaid.append(f"  {path}:{source.count(chr(10), 0, match.start()) + 1}: {words(literal)[:100]}")
    print(f"sentences that no answer draws: {len(unsaid)}", *unsaid, sep="\n")


main()
