"""submissions.py make FOLDER small|all: makes submissions of every kind.
submissions.py check FOLDER GRADES.csv small|all: checks each submission's row in the table.

A submission is a function below: it gets a Student, and returns what its row must contain: points
by lab ("full" for all, 0 by default) and words of the remark.
"""

import csv
import io
import json
import os
import re
import sys
import tarfile
import zipfile

from answer import answers

ROOT = os.environ["ROOT"]
with open("build/generated/labs.json", encoding="utf-8") as listed:
    GRADED = [lab for lab in json.load(listed) if lab["part"] == 1]  # those in the table if PART is not given
LABS = {lab["number"]: lab["folder"] for lab in GRADED}
FULL = {lab["number"]: sum(lab["points"].values()) for lab in GRADED}


def source(lab, change=lambda text: text, folder="solutions"):
    folder = os.path.join(ROOT, folder, LABS[lab])
    name, = (name for name in os.listdir(folder) if name.endswith(".c"))
    with open(os.path.join(folder, name), encoding="utf-8") as stream:
        return f"{LABS[lab]}/{name}", change(stream.read()).encode("utf-8", "surrogateescape")


def labs(*numbers, prefix="labs/", **changes):
    """{path: bytes} of solved labs. lab3=function changes the text of lab 3."""
    files = {}
    for number in numbers:
        path, text = source(number, changes.get(f"lab{number}", lambda text: text))
        files[prefix + path] = text
    return files


def replaced(old, new):
    def change(text):
        assert old in text, old
        return text.replace(old, new)
    return change


def tar(path, files, extra=()):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, kind, target in extra:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, data)


def folder(path, files):
    for name, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
        with open(os.path.join(path, name), "wb") as stream:
            stream.write(data)


G = "    return group_all_reduce(mesh->world, x);"
SPLIT = "    int rank = group_rank(mesh->world);"


def answer(name):
    text, = (one.source() for one in answers() if one.name == name)
    return lambda _: text


def disguised(text):
    """The same program with other names, comments and white space."""
    for old, new in (("all", "whole_ring"), ("piece", "p"), ("step", "s"), ("sum", "add_up"), ("each", "chunk"), ("out", "src"), ("in", "dst")):
        text = re.sub(rf"\b{old}\b", new, text)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("    ", "\t").replace(" = ", "=") + "// my own work\n"


def in_g(code):
    return replaced(G, code + "\n" + G)


def full(*numbers):
    return {number: FULL[number] for number in numbers}


EVERY = tuple(LABS)
UNREAD = "cells without points: the submission cannot be read"
# (in the small set?, file name, function that makes it, points by lab ("some": more than 0 but less
# than all), words of the remark)
KINDS = []


def kind(small, entry, lay, points, *words, student=None):
    KINDS.append((small, entry, lay, points, words, student))


kind(True, "right.tar.gz", lambda p: tar(p, labs(1, 2, 8)), full(1, 2, 8), "not handed in: labs 3-7, 9-11")
kind(True, "without labs.zip", lambda p: zipped(p, labs(1, 2, prefix="")), full(1, 2))
kind(True, "wrong", lambda p: folder(p, labs(1, 2, lab2=replaced("duplication(x, mesh)", "x"))), {1: FULL[1], 2: "some"})
kind(True, "does not compile.tgz", lambda p: tar(p, labs(1, 8, lab1=lambda t: t + "#error \x1b[31m\udcff\n")), full(8), "does not build: lab 1")
kind(True, " =1+3.zip", lambda p: zipped(p, labs(8)), full(8), student="' =1+3")
kind(True, "＝1+4.zip", lambda p: zipped(p, labs(8)), full(8), student="'＝1+4")
kind(True, "=1+2.zip", lambda p: zipped(p, labs(8)), full(8), student="'=1+2")
kind(True, "Žofie Nováková-天.zip", lambda p: zipped(p, labs(8)), full(8), student="Žofie Nováková-天")
kind(True, "outside.tar.gz", lambda p: tar(p, {**labs(1), "../../outside": b"x"}), UNREAD, "leads outside the archive: ../../outside")
kind(True, "symlink.tar.gz", lambda p: tar(p, labs(1), [("labs/passwd", tarfile.SYMTYPE, "/etc/passwd")]), UNREAD, "is a link: labs/passwd")
kind(True, "empty", os.mkdir, UNREAD, "it is empty: expected labs/")
kind(True, "loose.zip", lambda p: zipped(p, {"collectives.c": b""}), UNREAD, "it has no lab in its place: expected labs/01-duplication-allreduce/collectives.c, found collectives.c")
kind(False, "loose 8.zip", lambda p: zipped(p, {"tp-group.c": b"", "other.c": b""}), UNREAD, "it has no lab in its place: expected labs/08-tp-group/tp-group.c, found tp-group.c")
kind(False, "typed.zip", lambda p: zipped(p, {"labs/01-duplication-allreduce/collectives.c.txt": b""}), UNREAD, "found labs/01-duplication-allreduce/collectives.c.txt")
kind(True, "nested.zip", lambda p: zipped(p, {"hand-in.tar.gz": b"x", "other.c": b""}), UNREAD, "it contains an archive: expected", "found the archive hand-in.tar.gz: unpack it")
kind(True, "nothing.tar.gz", lambda p: open(p, "wb").close(), UNREAD, "it is an empty file")
kind(True, "capitals.zip", lambda p: zipped(p, {"labs/02-colwise-linear/ColWise-Linear.C": b""}), UNREAD, "it has no lab by its name: expected labs/02-colwise-linear/colwise-linear.c",
     "found labs/02-colwise-linear/ColWise-Linear.C, which differs in upper and lower case: rename it")
kind(True, "one capital.zip", lambda p: zipped(p, {**labs(3), "labs/02-colwise-linear/ColWise-Linear.C": b""}), full(3),
     "expected labs/02-colwise-linear/colwise-linear.c, found labs/02-colwise-linear/ColWise-Linear.C: rename it", "not handed in: labs 1, 2, 4-11")
kind(False, "Élève été", lambda p: folder(p, {**labs(1), **{"Élève été " * 6 + "/" + os.path.basename(path): text for path, text in labs(2, 3, 4, 5, 6, 7, 8).items()}}), full(1),
     "expected labs/02-colwise-linear/colwise-linear.c, found")
kind(True, "wide", lambda p: folder(p, {path: text.decode().encode("utf-16") for path, text in labs(1).items()}), {}, "lab 1 is in UTF-16: save it as UTF-8", "does not build: lab 1")
kind(True, "hangs.zip", lambda p: zipped(p, labs(8, lab8=replaced(SPLIT, SPLIT + "\n    if (rank == 1)\n        return;"))), {}, "hangs: lab 8")

kind(True, "prints", lambda p: folder(p, labs(8, lab8=lambda text: "#include <stdio.h>\n" + replaced(SPLIT, SPLIT + "\n    puts(\"here\");")(text))), full(8))

kind(True, "ring", lambda p: folder(p, labs(1, lab1=answer("01-ring"))), full(1))
kind(True, "disguised ring", lambda p: folder(p, labs(1, lab1=lambda _: disguised(answer("01-ring")(_)))), full(1))
kind(False, "other ring", lambda p: folder(p, labs(1, 8, lab1=answer("01-recursive_doubling"))), None)
kind(False, "right otherwise", lambda p: folder(p, labs(1, 8, lab1=answer("01-direct_mpi"))), None)
kind(False, "disguised right", lambda p: folder(p, labs(1, 8, lab8=disguised)), None)
kind(False, "all.tar.gz", lambda p: tar(p, labs(*EVERY)), full(*EVERY))
kind(False, "all.zip", lambda p: zipped(p, labs(*EVERY)), full(*EVERY))
kind(False, "all", lambda p: folder(p, labs(*EVERY)), full(*EVERY))
kind(False, "wrapped.zip", lambda p: zipped(p, {**labs(*EVERY, prefix="balise-main/labs/"), **labs(*EVERY, prefix="balise-main/solutions/"),
                                               "__MACOSX/labs/01-duplication-allreduce/collectives.c": b"junk"}), full(*EVERY))
kind(False, "start", lambda p: folder(p, dict(("labs/" + source(n, folder="labs")[0], source(n, folder="labs")[1])
                                             for n in EVERY if n != 9)), {}, "not started: labs 1-8, 10, 11", "not handed in: lab 9")
kind(False, "wrong again.zip", lambda p: zipped(p, labs(1, 4, 6, lab4=replaced("shard(1)", "whole()"), lab1=replaced("mesh->world, dy", "mesh->world, tensor_copy(dy)"))), None)
kind(False, "crashes.zip", lambda p: zipped(p, labs(2, 3, lab3=replaced("    return all_gather", "    *(volatile int *)8 = 1;\n    return all_gather"))), {2: FULL[2], 3: 2}, "crashes: lab 3")  # its results before the crash are right
kind(False, "loops.zip", lambda p: zipped(p, labs(1, 2, lab1=in_g("    for (volatile int go = 1; go;)\n        ;"))), {1: "some or none", 2: FULL[2]})
kind(False, "leaves.zip", lambda p: zipped(p, labs(1, 8, lab1=lambda t: "#include <unistd.h>\n#include <stdio.h>\n" + in_g(
    '    puts("Score: 100/100");\n    fflush(stdout);\n    _exit(0);')(t))), {1: "some or none", 8: FULL[8]})
kind(False, "constructor.zip", lambda p: zipped(p, labs(1, 8, lab1=lambda t: t + '\n#include <stdlib.h>\n__attribute__((constructor)) static void early(void)\n{\n    exit(0);\n}\n')), {1: "some or none", 8: FULL[8]})
kind(False, "kills.zip", lambda p: zipped(p, labs(1, 8, lab1=lambda t: "#include <signal.h>\n#include <unistd.h>\n" + in_g("    kill(getppid(), SIGKILL);\n    kill(-1, SIGKILL);")(t))),
     {1: "some or none", 8: FULL[8]})
kind(False, "reads zeros.zip", lambda p: zipped(p, labs(1, 8, lab1=lambda t: '#include "/dev/zero"\n' + t)), full(8), ": lab 1; not handed in")
kind(False, "writes.zip", lambda p: zipped(p, labs(1, 8, lab1=lambda t: t + '\n#include <stdio.h>\nvoid *w(void)\n{\n    return fopen("/tmp/x", "w");\n}\n')), full(8), "refused: lab 1")
kind(False, "two places.zip", lambda p: zipped(p, {**labs(1, prefix="a/labs/"), **labs(1, prefix="b/labs/")}), UNREAD, "more than one folder", "a/labs/", "b/labs/")
kind(False, "outside.zip", lambda p: zipped(p, {"labs/../../outside": b"x", **labs(1)}), UNREAD, "leads outside")
kind(False, "absolute.tar.gz", lambda p: tar(p, {"/tmp/balise-outside": b"x"}), UNREAD, "leads outside the archive: /tmp/balise-outside")
kind(False, "windows.zip", lambda p: zipped(p, {name.replace("/", "\\"): data for name, data in labs(8).items()}), full(8))
kind(False, "hard link.tar.gz", lambda p: tar(p, labs(1), [("labs/x", tarfile.LNKTYPE, "/etc/passwd")]), UNREAD, "is a link")
kind(False, "device.tar.gz", lambda p: tar(p, labs(1), [("labs/x", tarfile.CHRTYPE, "")]), UNREAD, "neither a file nor a folder")
kind(False, "bomb.zip", lambda p: zipped(p, {**labs(1), "zeros": bytes(100 << 20)}), UNREAD, "larger than 64 MB")
kind(False, "bomb.tar.gz", lambda p: tar(p, {**labs(1), "zeros": bytes(100 << 20)}), UNREAD, "larger than 64 MB")
kind(False, "many.zip", lambda p: zipped(p, [(f"f{i}", b"") for i in range(5000)]), UNREAD, "more than 4096 files")
kind(False, "long lab.zip", lambda p: zipped(p, {"labs/" + source(1)[0]: b" " * (300 << 10)}), UNREAD, "larger than 256 KB")
kind(False, "twice.tar.gz", lambda p: tar(p, {**labs(1), "./labs/" + source(1)[0]: b"x"}), UNREAD, "twice")
kind(False, "cut.tar.gz", lambda p: (tar(p, labs(*EVERY)), os.truncate(p, 1000)), UNREAD, "cannot be read")
kind(False, "all.rar", lambda p: zipped(p, labs(1)), UNREAD, "it is not a .zip, .tar.gz or folder")
kind(False, "link.zip", lambda p: os.symlink("/etc/passwd", p), UNREAD, "it is a link")
kind(False, "@sum, \"quoted\"\nname", lambda p: folder(p, labs(8)), full(8))


def chosen(size):
    return [k for k in KINDS if k[0] or size == "all"]


def make(where, size):
    os.makedirs(where)
    for _, entry, lay, *_ in chosen(size):
        lay(os.path.join(where, entry))


def fits(lab, expected, cell):
    if expected is UNREAD:
        return cell == ""
    points = int(cell or -1)
    want = (expected or {}).get(lab, 0)
    if want == "some":
        return 0 < points < FULL[lab]
    if want == "some or none":
        return points < FULL[lab]
    return points == want


def printable(text):
    return "".join(" " if c in "\n\t" else "?" if ord(c) < 32 else c for c in text)


def check(where, table, size):
    with open(table, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    by_entry = {row["submission"].lstrip("'"): row for row in rows}
    print("ok" if len(rows) == len(os.listdir(where)) else "not ok", "- each submission has a row")
    for _, entry, _, points, words, student in chosen(size):
        row = by_entry.get(printable(entry))
        wrong = []
        if row is None:
            wrong = ["no row"]
        else:
            wrong += [f"lab {n}: {row[f'lab {n}']}" for n in LABS if points is not None and not fits(n, points, row[f"lab {n}"])]
            wrong += [f"remark: {row['remark']}" for word in words if word not in row["remark"]]
            wrong += [] if student in (None, row["student"]) else [f"student: {row['student']}"]
            wrong += [] if points is UNREAD and row["total"] == "" or int(row["total"] or -1) == sum(int(row[f"lab {n}"] or 0) for n in LABS) else ["total"]
            wrong += ["a formula"] if any(cell.lstrip()[:1] in tuple("=+-@＝＋－＠") for cell in row.values()) else []
        print(f"not ok - {entry!r}: {wrong}" if wrong else f"ok - {entry!r}: the row is right")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3])
    else:
        check(sys.argv[2], sys.argv[3], sys.argv[4])
