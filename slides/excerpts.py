"""The functions of start files that slides show; none is a solution."""
import os
import re

COLUMNS = 89  # of a line of code on a slide
# name: (file below the folder of start files, the first words of each function shown)
START = {
    "gather.c": ("01-duplication-allreduce/collectives.c",
                 ("Tensor *all_gather_forward", "Tensor *all_gather_backward")),
    "lab02.c": ("02-colwise-linear/colwise-linear.c",
                ("ColWiseLinear *col_wise_linear_new", "Tensor *col_wise_linear_forward")),
    "lab03.c": ("03-embedding/embedding.c", ("Tensor *embedding_forward",)),
}


def function(text, first, path):
    """The text from a line with this prefix to the closing brace, without the comment above it."""
    found = re.search(rf"^{re.escape(first)}\b[^;]*?\n(?:.*\n)*?\}}.*\n", text, re.M)
    if not found:
        raise SystemExit(f"error: {path} has no '{first}' for the slides\n"
                         "  HINT: slides/excerpts.py names what is cut out of it")
    return found[0]


def comment_above(line):
    """Moves the comment of a line that is wider than a slide above its code."""
    found = re.fullmatch(r"( *)(.*) (/\*.*\*/)", line)
    return f"{found[1]}{found[3]}\n{found[1]}{found[2]}" if found and len(line) > COLUMNS else line


def excerpts(start):
    """{name: text}. @param start the folder of start files"""
    found = {}
    for name, (path, firsts) in START.items():
        with open(os.path.join(start, path), encoding="utf-8") as file:
            text = file.read()
        found[name] = "\n".join(map(comment_above, "\n".join(function(text, first, path) for first in firsts).split("\n")))
    return found
