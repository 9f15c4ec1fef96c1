"""Pieces of the kit's files that stand on slides. None is a solution: they are functions of balise.h, start files, and what a lab gives away."""
import os
import re

from formulas import ROOT

# name: file (below the folder of start files, or of the kit), what stands first in its lines
START = {
    "gather.c": ("01-duplication-allreduce/collectives.c", ("Tensor *all_gather_forward", "Tensor *all_gather_backward")),
    "lab01.c": ("01-duplication-allreduce/collectives.c", ("Tensor *duplication_forward", "Tensor *duplication_backward",
                                                          "Tensor *all_reduce_forward", "Tensor *all_reduce_backward")),
    "lab02.c": ("02-colwise-linear/colwise-linear.c", ("ColWiseLinear *col_wise_linear_new", "Tensor *col_wise_linear_forward")),
    "lab03.c": ("03-embedding/embedding.c", ("Tensor *embedding_forward",)),
    "lab05.c": ("05-feed-forward/feed-forward.c", ("Tensor *feed_forward_forward",)),
    "lab08.c": ("08-tp-group/tp-group.c", ("void mesh_init_tp",)),
    "lab10.c": ("10-dp-group/dp-group.c", ("void mesh_init_dp",)),
}
FUNCTIONS = {
    "collectives.h": ("Tensor *group_all_reduce(", "Tensor *group_all_gather(", "Tensor *group_reduce_scatter(", "Tensor *group_broadcast(", "Tensor *part("),
    "pairs.h": ("Tensor *duplication(", "Tensor *all_reduce(", "Tensor *all_gather("),
    "operations.h": ("Tensor *linear(", "Tensor *lookup(", "Tensor *gelu(", "Tensor *add(", "Tensor *attention("),
    "placements.h": ("Tensor *parameter(",),
    "split.h": ("Group *group_split(", "int group_rank(", "int group_size("),
    "buckets.h": ("Pending *group_all_reduce_start(", "void pending_wait("),
}


def function(text, first, path):
    """From a line that begins so to the closing brace, without the comment above it."""
    found = re.search(rf"^{re.escape(first)}\b[^;]*?\n(?:.*\n)*?\}}.*\n", text, re.M)
    if not found:
        raise SystemExit(f"error: {path} has no '{first}' for the slides\n  HINT: slides/excerpts.py names what is cut out of it")
    return found[0]


def declaration(text, first):
    """A function of balise.h on one line, without its comment."""
    begin = text.find("\n" + first)
    if begin < 0:
        raise SystemExit(f"error: common/balise.h has no '{first}' for the slides\n  HINT: slides/excerpts.py names what is cut out of it")
    words = re.sub(r"\s+", " ", text[begin + 1:text.index(";", begin) + 1])
    return words + "\n"


def excerpts(start):
    """{name: text} @param start the folder of start files, which make builds"""
    found = {}
    for name, (path, firsts) in START.items():
        with open(os.path.join(start, path), encoding="utf-8") as file:
            text = file.read()
        found[name] = "\n".join(function(text, first, path) for first in firsts)
    with open(os.path.join(ROOT, "common/balise.h"), encoding="utf-8") as file:
        text = file.read()
    for name, firsts in FUNCTIONS.items():
        found[name] = "".join(declaration(text, first) for first in firsts)
    return found
