#!/usr/bin/env python3
"""figures.py FOLDER: lists the figures that have an alternative text in the English chapters:
FOLDER/list.tex for LaTeX, and FOLDER/list.new, a line each: lab, name, alternative text.
The lab is the next one that the slides announce. A figure with an only<> is drawn in all steps of
its slide, other figures only in the last.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
FIGURE_OR_LAB = re.compile(r"\\fig\[([^]]*)\]\{([\w-]+)\}(?=.*?\\say(?:<(\d+)>)?)|\\labnow\{\\wLab~(\d+)\}", re.DOTALL)


def figures():
    """[(lab, name, alternative text, list of steps)], in the order of the slides."""
    found, waiting = [], []
    for chapter in re.findall(r"\\chapterfile\{(.*)\}", (HERE / "balise.tex").read_text(encoding="utf-8")):
        for text, name, steps, lab in FIGURE_OR_LAB.findall((HERE / f"{chapter}.tex").read_text(encoding="utf-8")):
            if name:
                is_drawn_in_steps = r"\only<" in (HERE / f"figures/{name}.tex").read_text(encoding="utf-8")
                steps = steps or "1"
                waiting.append((name, " ".join(text.split()), f"1,...,{steps}" if is_drawn_in_steps else steps))
            else:
                found += [(int(lab), *figure) for figure in waiting]
                waiting = []
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    found = figures()
    (folder / "list.tex").write_text("".join(f"\\figurepage{{{name}}}{{{steps}}}\n" for _, name, _, steps in found), encoding="utf-8")
    (folder / "list.new").write_text("".join(f"{lab}\t{name}\t{text}\n" for lab, name, text, _ in found), encoding="utf-8")


if __name__ == "__main__":
    main()
