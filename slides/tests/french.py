#!/usr/bin/python3
"""The slides in French: each chapter and words.tex has a twin (NN-chapter.fr.tex) of the same form, in French typography."""
import glob
import os
import re
import sys

os.chdir(os.environ["ROOT"])
FRENCH = sorted(glob.glob("slides/*.fr.tex"))
CHAPTERS = sorted(set(glob.glob("slides/[0-9][0-9]-*.tex")) - set(FRENCH))
failed = 0


def check(sentence, wrong):
    global failed
    print(("not ok - " if wrong else "ok - ") + sentence)
    failed += bool(wrong)
    for line in wrong:
        print(f"    {line}")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"(?<!\\)%.*", "", file.read())


def twin(path):
    return path.replace(".tex", ".fr.tex")


def frames_of(path):
    return re.findall(r"\\begin\{frame\}.*?\\end\{frame\}", text_of(path), re.S)


# What a translation has as often as the English frame: figures (and which have a text), numbers, matrices, code, the lab to
# do next, minutes, steps, papers, environments, items and the cells of tables.
KEPT = re.compile(r"\\(?:fig|N|V|Schedule|includegraphics|(?:code|Mat\{\w+\}\{[^}]*\}))(?:\[[^]]*\])?\{[^}]*\}|(?<=\})\{make [^},]*|\\labnow"
                  r"|\\say(?:<\d+>)?\{\d+\}|\\\w+<[^>]*>|arXiv:\d+\.\d+|\\(?:begin|end)\{\w+\}|\\item\b|(?<!\\)&")


def form(frame):
    """The parts of a frame that its translation must keep; each piece of code counts once."""
    kept = [re.sub(r"^\\fig\[[^]]*\]", r"\\fig[its text]", part) for part in KEPT.findall(frame)]
    return sorted(kept) + sorted(set(re.findall(r"\\kit\{[^}]*\}", frame)))


def differences(path):
    english, french = frames_of(path), frames_of(twin(path))
    if len(english) != len(french):
        return [f"{twin(path)}: {len(french)} frames, and {len(english)} in English"]
    found = []
    for i, (one, other) in enumerate(zip(map(form, english), map(form, french)), 1):
        found += [f"{twin(path)}: frame {i}: {other.count(part)} x {part}, and {one.count(part)} in English"
                  for part in sorted(set(one + other)) if one.count(part) != other.count(part)]
    return found


def check_form():
    check("every chapter exists in French", [path for path in CHAPTERS if not os.path.exists(twin(path))])
    there = [path for path in CHAPTERS if os.path.exists(twin(path))]
    check("a French chapter has the frames, figures, numbers, code, steps and minutes of the English one", [line for path in there for line in differences(path)])
    same = [f"{twin(path)}: {paragraph.strip()[:60]!r}" for path in there for paragraph in re.split(r"\n\n|\\item", text_of(path))
            if len(re.findall(r"\b(?:the|of|and|is|it|to)\b", paragraph)) > 1 and paragraph.strip() in text_of(twin(path))]
    check("no paragraph was left in English", same)


def check_words():
    english, french = (re.findall(r"^\\newcommand(\\w\w+)\{(.*)\}$", text_of(path), re.M) for path in ("slides/words.tex", twin("slides/words.tex")))
    check("words.fr.tex defines the macros of words.tex, in the same order",
          [f"{one} {other}" for one, other in zip([name for name, _ in english], [name for name, _ in french]) if one != other]
          or [f"{len(french)} macros, and {len(english)} in English"] * (len(english) != len(french)))
    used = "".join(map(text_of, CHAPTERS + FRENCH + glob.glob("slides/figures/*.tex"))) + "".join(text for _, text in english)
    check("every macro of words.tex is used", [name for name, _ in english if not re.search(re.escape(name) + r"(?![A-Za-z])", used)])


def check_typography():
    """A no-break space (~ or \\,) before : ; ! ? and within guillemets. Pictures have a syntax of their own."""
    wrong = []
    for path in FRENCH:
        text = re.sub(r"\\begin\{tikzpicture\}.*?\\end\{tikzpicture\}", lambda picture: "\n" * picture[0].count("\n"), text_of(path), flags=re.S)
        text = re.sub(r"\\(?:kit|texttt)\{[^}]*\}|\$[^$]*\$", "code", text)
        for number, line in enumerate(text.splitlines(), 1):
            wrong += [f"{path}:{number}: {found}" for found in re.findall(r"\S+[ \w)}][:;!?](?= |$|\})|\S+ »|« \S+|\S+[\"“”]\S*", line)]
    check("French has no-break spaces before : ; ! ? and within guillemets", wrong)


check_form()
check_words()
check_typography()
sys.exit(failed > 0)
