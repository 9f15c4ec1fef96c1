#!/usr/bin/env python3
"""make plot: curves of runs by the real gnuplot, in the terminal and as pictures, and its
errors."""
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import xml.dom.minidom
import xml.etree.ElementTree

from runs import ROOT, check, command

if not shutil.which("gnuplot"):
    print("skip - curves of runs: gnuplot is not installed")
    raise SystemExit


def plot(folder, **given):
    clean = {name: value for name, value in os.environ.items() if name not in ("METRICS", "Y", "OUT", "COLUMNS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", "-C", ROOT, "--silent", "plot", *(f"{name}={value}" for name, value in given.items())], cwd=folder, env=clean,
                          capture_output=True, text=True, check=False)


def refused(folder, sentence, words, **given):
    done = plot(folder, **given)
    check(done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("HINT: ") == 1 and words in done.stderr and not done.stdout,
          f"{sentence} is one error", done.stdout + done.stderr)


def written(folder, name, loss, steps=40):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        for step in range(1, steps + 1):
            file.write(json.dumps({"step": step, "epoch": 1, "loss": loss(step), "accuracy": 0.5, "step_s": 0.01}) + "\n")
        file.write(json.dumps({"epoch": 1, "test_loss": loss(steps), "test_accuracy": 0.5, "test_rows": 4}) + "\n" + json.dumps({"ranks": []}) + "\n")
    return path


def main(folder):
    real = os.path.join(folder, "a real run.jsonl")
    subprocess.run(command(1, "--tp", 1, "--steps", 4, "--samples", 64, "--layers", 1, "--hidden-dim", 32, "--heads", 2, "--seq", 16, "--metrics", real), cwd=ROOT,
                   capture_output=True, check=True)
    done = plot(folder, METRICS=f"'{real}'", Y="loss accuracy lr step_s tokens_per_s comm_bytes comm_s")
    check(done.returncode == 0 and not done.stderr and all(word in done.stdout for word in ("a real run", "test loss", "learning rate", "tokens per second")),
          "each number of a step of a real run has a curve in the terminal", done.stdout + done.stderr)
    check(max(map(len, done.stdout.splitlines())) <= 80, "the curves fit 80 columns", done.stdout)

    falls, rises = written(folder, "falls.jsonl", lambda step: 1 - step / 50), written(folder, "rises.jsonl", lambda step: step / 50)
    lines = [line for line in plot(folder, METRICS=falls).stdout.splitlines() if "|" in line]
    columns = [line.find("*") for line in lines if "*" in line]
    check(len(columns) > 3 and columns == sorted(columns), "a falling loss is drawn downwards from left to right", "\n".join(lines))

    check(any("G" in line for line in lines), "the test loss after the last step is drawn, too", "\n".join(lines))

    same = written(folder, "same.jsonl", lambda step: 1 - step / 50)
    lines = [line for line in plot(folder, METRICS=f"{falls} {same} {rises}").stdout.splitlines() if "|" in line]
    counts = [sum(line.count(letter) for line in lines) for letter in "ABC"]
    check(min(counts) > 10, "several runs have a letter each, and are all visible even if they agree", "\n".join(lines))

    picture = os.path.join(folder, "curves.svg")
    done = plot(folder, METRICS=f"{falls} {rises}", Y="loss accuracy", OUT=picture)
    texts = []
    if os.path.exists(picture):
        texts = [re.sub(r"<[^>]*>|\s+", " ", node.toxml()).strip() for node in xml.dom.minidom.parse(picture).getElementsByTagName("text")]
    check(done.returncode == 0 and all(text in texts for text in ("falls", "rises", "falls, test loss", "rises, test accuracy", "loss", "accuracy", "step")),
          "an SVG has the curve and the evaluations of each run, with their names", f"{done.stderr} {texts}")
    same = written(folder, "same.jsonl", lambda step: 1 / step)
    plot(folder, METRICS=f"{falls} {same}", OUT=picture)
    with open(picture, encoding="utf-8") as file:
        strokes = re.findall(r'stroke="rgb\(([\d, ]+)\)" stroke-width="([\d.]+)"', file.read())
    widths = {colour: max(float(width) for other, width in strokes if other == colour) for colour, _ in strokes}
    check(len(widths) == 2 and list(widths.values())[0] > list(widths.values())[1] + 1, "if two runs agree, the second curve is narrower than the first, so that both are visible", str(widths))
    picture = os.path.join(folder, "curves.png")
    plot(folder, METRICS=falls, OUT=picture)
    with open(picture, "rb") as file:
        check(file.read(8) == b"\x89PNG\r\n\x1a\n", "OUT=curves.png writes a PNG")
    os.mkdir(os.path.join(folder, "twin"))
    twin = written(os.path.join(folder, "twin"), "falls.jsonl", lambda step: 0.5)
    done = plot(folder, METRICS=f"{falls} {twin}")
    check(falls in done.stdout and twin in done.stdout, "two files of the same name are distinguished by their folders", done.stdout + done.stderr)

    short = os.path.join(folder, "short.jsonl")
    with open(falls, encoding="utf-8") as whole, open(short, "w", encoding="utf-8") as file:
        left = whole.read()[:1000]
        file.write(left)
    cut = left.count("\n") + 1
    empty = os.path.join(folder, "empty.jsonl")
    with open(empty, "w", encoding="utf-8"):
        pass
    refused(folder, "no file", "METRICS is missing")
    refused(folder, "a missing file", "No such file", METRICS="none.jsonl")
    refused(folder, "a file that was cut short", f"short.jsonl:{cut} is not a line of metrics", METRICS=short)
    refused(folder, "a file without steps", "has no steps", METRICS=empty)
    for name, content, words in (("binary", bytes(range(256)), ":1 is not a line of metrics"), ("deep", b"[" * 200000, ":1 is not a line of metrics"),
                                 ("words", b'{"step":"one","loss":1}\n', "have no 'loss'"), ("endless", b'{"step":1,"loss":NaN}\n{"step":2,"loss":1e400}\n', "have no 'loss'")):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        refused(folder, f"a file that is not metrics ({name})", words, METRICS=os.path.join(folder, name))
    refused(folder, "a field that the steps lack", "have no 'lost'", METRICS=falls, Y="lost")
    refused(folder, "a picture of another kind", "a picture cannot be named 'x.gif'", METRICS=falls, OUT="x.gif")
    refused(folder, "a missing folder", "there is no folder none", METRICS=falls, OUT="none/x.svg")
    before = sorted(os.listdir(folder))
    os.mkdir(os.path.join(folder, "taken.svg"))
    refused(folder, "a picture that cannot be written", "taken.svg", METRICS=falls, OUT=os.path.join(folder, "taken.svg"))
    check(sorted(os.listdir(folder)) == sorted([*before, "taken.svg"]), "and leaves nothing half-written", str(os.listdir(folder)))
    kept, words = os.path.join(folder, "kept.svg"), "ulimit -f 4; trap '' XFSZ; exec make -C \"$0\" --silent plot METRICS=\"$1\" OUT=\"$2\""
    with open(kept, "w", encoding="utf-8") as file:
        file.write("<svg/><!-- drawn by Balise -->")
    full = subprocess.run(["bash", "-c", words, ROOT, falls, kept], capture_output=True, text=True, check=False)
    with open(kept, encoding="utf-8") as file:
        check(full.returncode == 2 and full.stderr.startswith("error: ") and "File too large" in full.stderr and full.stderr.count("HINT: ") == 1 and file.read() == "<svg/><!-- drawn by Balise -->" and not [name for name in os.listdir(folder) if name.startswith("kept.svg.")],
              "a full disk is one error, and leaves the earlier picture", full.stdout + full.stderr)
    for name in ("kept.svg", "kept.png"):
        picture, content = os.path.join(folder, name), b"\x89PNG, of another program"
        with open(picture, "wb") as file:
            file.write(content)
        refused(folder, f"a picture over {name} of another program", "is not a picture of make plot", METRICS=falls, OUT=picture)
        with open(picture, "rb") as file:
            check(file.read() == content, "and that file stays")
        os.unlink(picture)
        check(plot(folder, METRICS=falls, OUT=picture).returncode == 0 == plot(folder, METRICS=f"{falls} {rises}", OUT=picture).returncode, f"a picture replaces an earlier one, {name}")
    input_svg = shutil.copy(falls, os.path.join(folder, "metrics.svg"))
    refused(folder, "a picture over its own metrics", "is not a picture of make plot", METRICS=input_svg, OUT=input_svg)
    for name in "`touch owned`$(touch owned)", "it's", 'a "curve"', "ends in \\\\", "two\nlines; system('touch owned')":
        titled, owned, picture = shutil.copy(falls, os.path.join(folder, f"{name}.jsonl")), os.path.join(ROOT, "owned"), os.path.join(folder, "titles.svg")
        done = subprocess.run(["python3", "common/plot/plot.py"], cwd=ROOT, env={**os.environ, "METRICS": shlex.quote(titled), "OUT": picture, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False)
        texts = ["".join(text.itertext()).strip() for text in xml.etree.ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
        check(done.returncode == 0 and not os.path.exists(owned) and name.replace("\n", " ") in texts, f"the title of a curve is its file's name, {name!r}", f"{done.stderr}{texts}")
    with open(os.path.join(folder, "json.py"), "w", encoding="utf-8") as file:
        file.write("raise SystemExit('not the module of Python')\n")
    for name, value in {"PYTHONPATH": folder, "PYTHONHOME": folder, "PYTHONSTARTUP": "json.py"}.items():
        done = subprocess.run(["make", "--silent", "plot", f"METRICS={falls}"], cwd=ROOT, env={**os.environ, name: value}, capture_output=True, text=True, check=False)
        check(done.returncode == 0 and not done.stderr, f"{name} does not reach the kit's own programs", done.stderr)
    odd = os.path.join(folder, "it's a \"curve\".svg")
    check(plot(folder, METRICS=falls, OUT=odd).returncode == 0 and os.path.getsize(odd) > 1000, "a picture's name may contain quotes")


with tempfile.TemporaryDirectory() as temporary:
    main(temporary)
