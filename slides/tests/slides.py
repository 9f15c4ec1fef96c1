#!/usr/bin/python3
"""The slides: their notes and numbers. With ALL=1, from slow_slides.sh: what make slides builds,
and its error for each defect."""
import collections
import glob
import hashlib
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

ROOT, BUILD = os.environ["ROOT"], os.environ["BUILD"]
sys.path[:0] = [os.path.join(ROOT, "slides"), os.path.join(ROOT, "common/train/tests")]
sys.dont_write_bytecode = True
import compute
import excerpts
import formulas
import matrices
import record
from formulas import cost
from runs import metrics_of

os.chdir(ROOT)
CLEAN = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BUILD")}
EVERY_CHAPTER = sorted(glob.glob("slides/[0-9][0-9]-*.tex"))
CHAPTERS = [path for path in EVERY_CHAPTER if not path.endswith(".fr.tex")]  # french.py compares the others with these
LANGUAGES = ("", ".fr")
HALF_OF_BOX = 17  # points, of the box of a lab (style.tex)
failed = 0


def check(sentence, good, seen=""):
    global failed
    print(("ok - " if good else "not ok - ") + sentence)
    if not good:
        failed += 1
        print("    " + str(seen).strip().replace("\n", "\n    "))


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def said(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**CLEAN, **environment})


# ---- the text --------------------------------------------------------------------------------------------------------------


def frames_of(path):
    return re.findall(r"\\begin\{frame\}(.*?)\\end\{frame\}", text_of(path), re.S)


FRAMES = {path: frames_of(path) for path in CHAPTERS}
NOTE = re.compile(r"\\say(?:<\d+>)?\{(\d+)\}\{")
STEPS = sum(int(last or 1) for frames in FRAMES.values() for frame in frames for last in re.findall(r"\\say(?:<(\d+)>)?\{", frame))


def check_text():
    mute = [f"{path}: {frame[:50]!r}" for path, frames in FRAMES.items() for frame in frames if len(NOTE.findall(frame)) != 1]
    check("every slide has one note, with its minutes", not mute and all(FRAMES.values()), "\n".join(mute))
    minutes = {os.path.basename(path)[:-4]: sum(int(m) for frame in frames for m in NOTE.findall(frame)) for path, frames in FRAMES.items()}
    table = {name: int(m) for name, m in re.findall(r"^\| (\d\d-[\w-]+) \| (\d+) \|", text_of("slides/README.md"), re.M)}
    check("slides/README.md has the minutes of the notes", table == minutes, f"{table}\n{minutes}")
    check("slides/README.md says how many slides there are", f" {sum(map(len, FRAMES.values()))} slides " in text_of("slides/README.md"))
    listed = re.findall(r"\\chapterfile\{(.*)\}", text_of("slides/balise.tex"))
    check("every chapter is in the deck", [f"slides/{name}.tex" for name in listed] == CHAPTERS, listed)
    labs = re.findall(r"\\labnow\{\\wLab~(\d+)\}\{([^}]*)\}", "".join(map(text_of, CHAPTERS)))
    files = {str(n): f"labs/{lab['folder']}/{lab['file']}" for n, lab in formulas.labs().items()}
    wrong = [one for one in labs if one[0] in files and one[1] not in (files[one[0]], f"make start LAB={one[0]}")]
    check("each lab is announced once, in order, with its file; labs to come may follow", [n for n, _ in labs][:len(files)] == list(files) and not wrong, labs)


def check_schedules():
    """The schedules on the slides equal those in lab 13's text."""
    text = re.findall(r"stage \d((?: +(?:[FB]\d|\.))+)$", text_of("labs/13-micro-batches/README.md"), re.M)
    rows = []
    for name in ("gpipe", "1f1b"):
        drawn = matrices.drawings()[f"pipeline.{name}"]
        ends = re.findall(r"\\Row\{(\d)\}\{(\d+)\}", drawn)
        for stage, end in ends:
            passes = {int(begin): kind + micro for begin, kind, micro in re.findall(rf"\\Slot\{{{stage}\}}\{{(\d+)\}}\{{1\}}\{{(.)\}}\{{(\d)\}}", drawn)}
            rows.append([passes.get(slot, ".") for slot in range(int(end))])
    check("the schedules on the slides equal those in lab 13's text", len(rows) == 6 and rows == [row.split() for row in text], f"{rows}\n{text}")


def check_color():
    """`color`, the argument of group_split, has American spelling; all others are a `colour`."""
    wrong = [f"{path}: {line.strip()}" for path in CHAPTERS for line in text_of(path).splitlines()
             if "colour" in line.lower() and re.search(r"\bkey\b|group|split", line, re.I)]
    check("a color of group_split is spelled as its argument", not wrong, "\n".join(wrong))


def mixed(colour, known):
    """Red, green and blue of TikZ's name or name!per cent."""
    name, _, share = colour.partition("!")
    part = float(share or 100) / 100
    return [part * value + (1 - part) * 255 for value in known[name]]


def luminance(rgb):
    """Relative luminance, from 0 to 1, as in WCAG 2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in rgb)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def check_contrast():
    """Text on the colours of ranks and parts has the contrast that WCAG 2 requires for it."""
    style = text_of("slides/style.tex")
    known = {name: [int(digits[i:i + 2], 16) for i in (0, 2, 4)] for name, digits in re.findall(r"\\definecolor\{(\w+)\}\{HTML\}\{(\w+)\}", style)}
    known["white"] = [255] * 3
    ratios = {}
    for name, options in re.findall(r"(\w+)/\.style=\{([^}]*)\}", style):
        option = dict(part.split("=", 1) for part in options.split(",") if "=" in part)
        if "fill" in option and "text" in option:
            light, dark = sorted((luminance(mixed(option[key], known)) for key in ("fill", "text")), reverse=True)
            ratios[name] = (light + 0.05) / (dark + 0.05)
    low = {name: round(ratio, 2) for name, ratio in ratios.items() if ratio < 4}
    check("text on a coloured block has a contrast of at least 4, and 4.5 on the colours of ranks",
          {"r0", "r1", "r2", "r3", "p2", "part1", "talk"} <= set(ratios) and not low and min(ratios[f"r{i}"] for i in range(4)) >= 4.5, low or ratios)


UNITS = r"(?:[kMGT][Bo]|bytes?|octets?|[GTP]FLOPS?|[GTP]FLOP/s|millions?|billion|milliards?|thousand|ms|G[Bo]/s|\\%|times less|fois moins)"
DIGITS = re.compile(r"(?<![\w.{])\d[\d.,]*(?:\\,|~|\s)*" + UNITS + r"\b")


def check_no_digits():
    found = []
    for path in EVERY_CHAPTER + sorted(glob.glob("slides/figures/*.tex")):
        text = re.sub(r"%.*", "", text_of(path).replace(r"\%", "PERCENT")).replace("PERCENT", r"\% ")
        found += [f"{path}: {one}" for one in DIGITS.findall(text)]
    check("no slide has a number with a unit typed as digits", not found, "\n".join(found))
    typed = [path for path in EVERY_CHAPTER if r"\begin{lstlisting}" in text_of(path) or r"\begin{verbatim}" in text_of(path)]
    check("no slide has typed code", not typed, typed)


def check_no_solution(start):
    """No slide shows a line of code that is in a solution but not in its start file."""
    told = []
    for name, (path, _) in excerpts.START.items():
        given, solved = text_of(os.path.join(start, path)).splitlines(), text_of(os.path.join("solutions", path)).splitlines()
        secret = {line.strip() for line in solved} - {line.strip() for line in given} - {""}
        told += [f"{name}: {line}" for line in excerpts.excerpts(start)[name].splitlines() if line.strip() in secret]
    check("no slide shows a line of a solution that its start file lacks", not told, "\n".join(told))
    wide = [line for text in excerpts.excerpts(start).values() for line in text.splitlines() if len(line) > 89]
    check("every line of code fits a slide", not wide, "\n".join(wide))


# ---- the numbers -----------------------------------------------------------------------------------------------------------


def check_formulas():
    """Compares the slides' numbers with the formulas of the slide 'A training step on tp ranks',
    written again here."""
    for name, (L, H, A) in (("base", (12, 768, 12)), ("large", (24, 1024, 16))):
        V, S, B = 30522, 128, 8
        model = formulas.preset(name)
        model.leaves_out = False
        for tp in (1, 2, 4):
            N, T = B * S * H, B * S
            good = (abs(formulas.dry.parameters(model, tp) - ((V * H + 12 * L * H ** 2 + H * (H + 2)) / tp + 4 * L * H)) < 16 * 400
                    and abs(formulas.kept(model, tp) - (2 * H + (8 * H + H / 8 + 2 * A) / tp)) < 1e-6
                    and abs(formulas.dry.operations(model) / (72 * L * T * H ** 2 + 12 * L * T * S * H) - 1) < 1e-4
                    and formulas.sent_over_tp(model, tp, 1) == 4 * (tp - 1) * ((8 * L + 1) * N + 2 * B * (H + 2))
                    and formulas.memory(model, tp) > 16 * formulas.dry.parameters(model, tp))
            check(f"BERT-{name.title()} at tp {tp}: the formulas on the slide equal the counts of make check and the labs' budgets", good)
    numbers = compute.all_numbers()
    shown = {"base.P": "109.0", "large.P": "334.4", "columns.both": 15, "pair.both": 4, "attention.both": 4, "block.both": 8, "pair.ratio": "3.75",
             "small.2x1.tp": "4.46", "small.1x2.dp": "4.28", "small.2x2.sum": "8.75", "small.equal": "490", "base.equal": "2\\,900"}
    wrong = {key: numbers[key] for key, text in shown.items() if numbers[key] != text}
    check("the numbers on the slides equal those in the labs' texts", not wrong, wrong)
    bent = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in (1, -2)]
    check("in French, numbers and cells have a decimal comma, and coordinates a point",
          [compute.french("2\\,900"), compute.french("3.75"), compute.french_cells(r"\C{0}{1}{$-$0.2}{w}(1.5,0.25)")]
          == ["2\\,900", "3{,}75", r"\C{0}{1}{$-$0{,}2}{w}(1.5,0.25)"])
    check("GELU's sum on the slide is rounded once, at the end", matrices.numbers()["bend.sum.of"] == f"{sum(bent):.2f}", bent)


def check_run():
    """A training step sends what the slides compute: over tp to the byte, over dp except for the
    arena's padding."""
    L, H, heads, S, B, vocabulary = 2, 96, 12, 32, 16, 968
    model = cost.Model(L, H, heads, S, B, vocabulary)
    for tp, dp, pp in ((2, 1, 1), (2, 2, 1), (2, 2, 2)):
        lines = metrics_of(tp * dp * pp, "--layers", L, "--hidden-dim", H, "--heads", heads, "--seq", S, "--batch-size", B, "--samples", 64, "--steps", 2,
                           "--test", "", "--threads", 1, "--check", 0, "--tp", tp, "--pp", pp, "--micro", pp)
        steps, ranks = sum("step" in line for line in lines), lines[-1]["ranks"]
        over_tp, over_dp, over_pp = (sum(rank[f"comm_bytes_{key}"] for rank in ranks) / steps for key in ("tp", "dp", "pp"))
        where = f"a training step at tp {tp}, dp {dp}, pp {pp}"
        expected = formulas.sent_over_pp(model, tp, dp, pp)
        check(f"{where} sends what the slides compute, over pp", over_pp == expected, f"{over_pp} counted, {expected} computed")
        check(f"{where} sends what the slides compute, over tp", over_tp == formulas.sent_over_tp(model, tp, dp),
              f"{over_tp} counted, {formulas.sent_over_tp(model, tp, dp)} computed")
        computed = formulas.sent_over_dp(model, tp, dp)
        check(f"{where} sends what the slides compute, over dp", 0 <= over_dp - computed <= 0.01 * computed,
              f"{over_dp} counted, {computed} computed")
        held = max(rank["parameters"] for rank in ranks)
        check(f"a rank at tp {tp}, dp {dp}, pp {pp} holds as many parameters as the slides compute",
              held == formulas.dry.parameters(model, tp, 1, pp), f"{held} counted, {formulas.dry.parameters(model, tp, 1, pp)} computed")


def check_alive():
    """The runs of lab 13's text, with the memory and the micro-batches that the slides show."""
    for name, megabytes in compute.ALIVE.items():
        ranks = metrics_of(matrices.STAGES, "--layers", 6, "--hidden-dim", 128, "--heads", 4, "--batch-size", 24, "--seq", 64, "--steps", 20,
                           "--tp", 1, "--pp", matrices.STAGES, "--micro", compute.ALIVE_MICRO, "--schedule", name)[-1]["ranks"]
        held = tuple(round(rank["peak"]["activations"] / 1e6, 1) for rank in ranks)
        check(f"the stages of {name} keep as many megabytes of activations as the slides show", held == megabytes, held)
        alive = [str(rank["micro_batches_in_flight"]) for rank in ranks]
        shown = [str(compute.all_numbers()[f"alive.{name}.{k}"]) for k in range(matrices.STAGES)]
        check(f"the stages of {name} keep as many micro-batches as the slides show", alive == shown, f"{alive} {shown}")


def check_runs():
    """The files of slides/runs, compared with what their commands print today. Runs are shorter here; times are not compared."""
    headed = [name for name in record.MADE_BY if text_of(f"slides/runs/{name}.txt").splitlines()[0] != f"# slides/record.py {name} > slides/runs/{name}.txt"]
    check("each file of slides/runs begins with the command that makes it", not headed, headed)

    def without_numbers(lines):
        return [re.sub(r"[-\d.e]*\d", "#", line) for line in lines]
    for name in ("verdict", "verdict.fr"):
        today = record.MADE_BY[name]()
        check(f"{name}.txt has the words of the grader", without_numbers(record.read(name)) == without_numbers(today), "\n".join(today))
    some = [(1, 1, 1), (1, 1, 2)]
    shown = {tuple(map(int, row[:3])): row[3:] for row in map(str.split, record.read("losses"))}
    check("losses.txt has the layouts and the steps of its command", list(shown) == list(record.LAYOUTS) and {len(row) for row in shown.values()} == {record.LOSS_STEPS})
    for row in map(str.split, record.losses(some, 2)):
        layout, today = tuple(map(int, row[:3])), row[3:]
        check(f"losses.txt has the losses of a run at {layout}, up to rounding", len(today) == 2 and all(abs(float(a) - float(b)) < 1e-5 for a, b in zip(shown[layout], today)), today)
    for what, lines in (("timeline.txt", record.read("timeline")), ("today's timeline", record.timeline(4))):
        found = {}
        for tp, dp, pp, rank, kind, begin, end in map(str.split, lines):
            found.setdefault((int(tp), int(dp), int(pp), int(rank)), []).append((kind, int(begin) <= int(end)))
        good = all({"F", "B"} <= {kind for kind, _ in row} <= set(record.KINDS.values()) and all(ordered for _, ordered in row) for row in found.values())
        check(f"{what} has the passes of both ranks at each layout", good and list(found) == [(*layout, rank) for layout in record.TIMELINE_LAYOUTS for rank in (0, 1)], found)
    sizes = [[line.split()[:2] for line in lines if not line.startswith("cores")] for lines in (record.read("all-reduce"), record.all_reduce(1 << 15))]
    check("all-reduce.txt has the ranks and sizes of build/bench-collectives", sizes[1] and sizes[1] == [row for row in sizes[0] if int(row[1]) <= 1 << 15], sizes)


def check_tokens():
    run = subprocess.run([f"{BUILD}/tokenize", "--vocab", "data/reviews/vocab.txt"], input=matrices.SENTENCE + "\n", capture_output=True, text=True, check=False)
    numbers = matrices.numbers()
    shown = [str(numbers[f"token.{i}"]) for i in range(2 + len(matrices.SENTENCE.split()))]
    check("the ids on the slide equal those of the kit's tokenizer", run.stdout.split() == shown, f"{run.stdout}{run.stderr}{shown}")


def check_plan():
    """The chart of 64 GPUs shows what make model predicts."""
    run = said(sys.executable, "common/bench/model.py", BUILD, NTASKS=str(compute.RANKS), MODEL="large", SEQ=str(compute.SEQ),
               BATCH_SIZE=str(compute.BATCH), CLUSTER=compute.CLUSTER, TP="", PP="1", MICRO="", WEAK="", AMP="", BACKEND="")
    numbers = compute.all_numbers()
    speed = run.stdout.partition("predicted speed and memory")[2].partition("where the time of a step goes")[0]
    told = {int(tp): float(step.replace(",", "")) for tp, step in re.findall(r"^ +(\d+) +\d+ +1 +1 +([\d.,]+) ", speed, re.M)}
    wrong = {tp: (told.get(tp), numbers[f"plan.{tp}.step"]) for tp in (1, 2, 4, 8, 16)
             if not abs(told.get(tp, 0) / float(numbers[f"plan.{tp}.step"]) - 1) < 0.02}
    check("the chart of layouts shows what make model says", not wrong, f"{wrong}\n{run.stdout}{run.stderr}")


# ---- the pages -------------------------------------------------------------------------------------------------------------


def alternative_texts(path):
    """The alternative texts in the content of a PDF's pages."""
    found = set()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pathlib.Path(path).read_bytes(), re.S):
        try:
            content = zlib.decompressobj().decompress(stream)
        except zlib.error:  # not compressed: no page
            continue
        for text in re.findall(rb"/Span <</Alt \(((?:[^()\\]|\\.)*)\)>> BDC", content):
            text = re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), text)
            found.add(text[2:].decode("utf-16-be") if text.startswith(b"\xfe\xff") else text.decode("latin-1"))
    return found


def gaps(path):
    """For each page, the points between its last line and the line of sources below it; and between
    the lines above the box of the lab to do next and that box."""
    above_sources, above_box = [], []
    for page in said("pdftotext", "-bbox", path, "-").stdout.split("<page ")[1:]:
        bottom = 0.92 * float(re.search(r'height="([\d.]+)"', page)[1])
        words = [(float(top), float(end), word) for top, end, word in re.findall(r'yMin="([-\d.]+)" xMax="[-\d.]+" yMax="([-\d.]+)">(.*?)<', page)]
        below, lines = ([word for word in words if (word[0] > bottom) == is_below] for is_below in (True, False))
        above_sources.append(min(top for top, *_ in below) - max(end for _, end, _ in lines) if below else math.inf)
        name, command = next(((a, b) for a, b in zip(lines, lines[1:]) if a[2].startswith("labs/") and b[2] == "make"), (None, None))
        box = (name[0] + command[1]) / 2 - HALF_OF_BOX if name else math.inf
        above_box.append(box - max((end for _, end, _ in lines if name and end < name[0]), default=0))
    return above_sources, above_box


def drawn_twice(path, pages):
    """The pages on which a letter is drawn twice at one place: it looks smeared. {page: a letter}"""
    found = {}
    for page in range(1, pages + 1):
        drawn = re.findall(r'<use xlink:href="#(glyph[-\d]+)" x="([-\d.]+)" y="([-\d.]+)"', said("pdftocairo", "-svg", "-f", str(page), "-l", str(page), path, "-").stdout)
        twice = [letter for letter, times in collections.Counter(drawn).items() if times > 1]
        found |= {page: twice[:1] or "no letter is drawn"} if twice or not drawn else {}
    return found


def check_pages(folder):
    done = said("make", "slides", f"BUILD={folder}")
    files = [(f"{name}{lang}", pages) for lang in LANGUAGES for name, pages in (("balise", STEPS), ("balise-notes", sum(map(len, FRAMES.values()))))]
    check("make slides sets both files of each language in a clean folder, without a warning", done.returncode == 0 and not done.stderr
          and len(done.stdout.splitlines()) == 2 and all(os.path.exists(f"{folder}/slides/{name}.pdf") for name, _ in files), done.stdout + done.stderr)
    if done.returncode:
        return
    again = said("make", "slides", f"BUILD={folder}")
    check("make slides does nothing if nothing has changed", again.returncode == 0 and not again.stdout + again.stderr, again.stdout + again.stderr)
    if not (shutil.which("pdfinfo") and shutil.which("pdffonts")):
        print("skip - pages are counted, and fonts are embedded: poppler-utils is not installed")
        return
    for name, pages in files:
        path = f"{folder}/slides/{name}.pdf"
        about = dict(re.findall(r"^([\w ]+): +(.*)$", said("pdfinfo", path).stdout, re.M))
        width, height = (float(x) for x in re.findall(r"[\d.]+", about["Page size"])[:2])
        check(f"{name}.pdf has one 16:9 page per {'note' if 'notes' in name else 'step of a frame'}", int(about["Pages"]) == pages and abs(width / height - 16 / 9) < 0.01, about)
        if "notes" not in name:
            for what, found in zip(("the sources at its foot", "the box of a lab"), gaps(path)):
                tight = [(page, gap) for page, gap in enumerate(found, 1) if gap < 5]
                check(f"on no page of {name}.pdf do lines touch {what}", not tight and min(found) < 50, tight)
            smeared = drawn_twice(path, pages)
            check(f"on no page of {name}.pdf is a letter drawn twice at one place", not smeared, smeared)
        rows = [line.rsplit(None, 5) for line in said("pdffonts", path).stdout.splitlines()[2:]]
        wrong = [row for row in rows if row[1] != "yes" or "Type 3" in row[0]]
        check(f"all fonts of {name}.pdf are embedded in it, as outlines", rows and not wrong, wrong)
        written = {" ".join(text.split()) for chapter in EVERY_CHAPTER if chapter.endswith(".fr.tex") == name.endswith(".fr")
                   for text in re.findall(r"\\fig\[([^]]*)\]", text_of(chapter))}
        check(f"the figures of {name}.pdf have the alternative texts of their chapters", written and alternative_texts(path) == written, alternative_texts(path) ^ written)
    check("there are about 100 slides", 90 <= files[1][1] <= 110, files)


def small_tree(folder):
    """Makes a copy of the kit with a deck of one chapter, for tests that break it."""
    os.makedirs(folder)
    for name in ("common", "grader", "data"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    shutil.copytree("slides", os.path.join(folder, "slides"), ignore=shutil.ignore_patterns("__pycache__"))
    path = os.path.join(folder, "slides/balise.tex")
    deck = re.sub(r"\\chapterfile\{(?!00).*\}\n", "", text_of(path))
    write(path, deck)
    return os.path.join(folder, "slides")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


BREAKS = (
    ("a box that is too full", r"\hbox to 5mm{much more than five millimetres}", ("Overfull", "HINT")),
    ("a number that is not computed", r"\N{no.such.number}", ("no.such.number", "HINT")),
    ("a reference to nothing", r"see \ref{nothing}", ("nothing", "HINT")),
    ("an unknown LaTeX command", r"\nosuchword", ("Undefined control sequence", "HINT")),
    ("a character that the font lacks", "\N{GREEK SMALL LETTER LAMDA}", ("Unicode", "HINT")),
)


def check_broken_figure(slides, build):
    figure = os.path.join(slides, "figures/region.tex")
    write(os.path.join(slides, "balise.tex"), text_of("slides/balise.tex"))  # the figures of all chapters
    good = text_of(figure)
    for text in ("", r"\node {\N{base.P}};"):
        write(figure, good.replace(r"\end{tikzpicture}", text + r"\end{tikzpicture}"))
        run = said(f"{slides}/build.sh", "--figures", build)
        listed = os.path.exists(f"{build}/slides/figures/list.tsv")
        check(f"make figures {'names the number that a figure cannot have, and leaves no list' if text else 'draws the figures'}",
              run.returncode == 2 and run.stderr.count("error: ") == 1 and "'base.P'" in run.stderr and not listed if text else run.returncode == 0 and not run.stderr and listed, run.stderr)
    write(figure, good)


def check_breaks(folder):
    slides = small_tree(folder)
    build = os.path.join(folder, "build")
    os.makedirs(build)
    for name in ("grade", "check"):  # what a lab may send, and what a rank holds
        os.symlink(f"{BUILD}/{name}", f"{build}/{name}")
    digests = []
    for _ in range(2):
        shutil.rmtree(os.path.join(build, "slides"), ignore_errors=True)
        run = said(f"{slides}/build.sh", build)
        digests.append([hashlib.sha256(pathlib.Path(f"{build}/slides/balise{lang}.pdf").read_bytes()).hexdigest() for lang in LANGUAGES])
    check("before the first pass, the build says how long it takes", run.stdout.startswith("making the slides") and " minutes\n" in run.stdout, run.stdout)
    check("the same slides give the same file, byte for byte", digests[0] == digests[1] and run.returncode == 0, run.stderr)
    for name in ("balise", "balise-notes"):
        write(f"{build}/slides/{name}/{name}.{'titles' if 'notes' in name else 'aux'}", "\\cutoff{")
    run = said(f"{slides}/build.sh", build)
    check("files that a killed build left unfinished do no harm", run.returncode == 0 and not run.stderr, run.stderr)
    for name, what, text, words in [("00-opening.tex", *one) for one in BREAKS] + [("00-opening.fr.tex", *BREAKS[0])]:
        chapter = os.path.join(slides, name)
        good = text_of(chapter)
        write(chapter, good.replace(r"\begin{itemize}", text + "\n" + r"\begin{itemize}", 1))
        run = said(f"{slides}/build.sh", build)
        check(f"{what} is one error with the chapter's name, {name}, and the old file stays",
              run.returncode == 2 and run.stderr.count("error: ") == 1 and all(word in run.stderr for word in (f"slides/{name}:", *words))
              and os.path.exists(f"{build}/slides/balise.pdf"), run.stdout + run.stderr)
        write(chapter, good)
    check_broken_figure(slides, build)
    matrices = os.path.join(slides, "matrices.py")
    write(matrices, text_of(matrices).replace("dx = [times(columns(DY, 3 * r", "dx = [times(columns(DY, 2 * r", 1).replace("3 * r + 3), W", "2 * r + 3), W", 1))
    run = said(f"{slides}/build.sh", build)
    check("terms that do not add up to the sum beside them are an error", run.returncode != 0 and "untrue" in run.stderr, run.stderr)


def check_without_latex(folder):
    os.makedirs(folder)
    run = said("/usr/bin/bash", "slides/build.sh", os.path.join(folder, "build"), PATH=folder)
    check("without LaTeX there is one error with a HINT that setup understands",
          run.returncode == 2 and run.stderr.startswith("error: ") and "HINT: common/setup/setup.sh docs" in run.stderr, run.stderr)


def main():
    if not os.environ.get("ALL"):
        check_text()
        check_color()
        check_contrast()
        check_no_digits()
        check_formulas()
        check_schedules()
        check_run()
        check_alive()
        check_tokens()
        check_plan()
        return
    check_runs()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        check_without_latex(f"{folder}/bare")
        lacking = said("slides/build.sh", "--lacks").stdout.split()
        if lacking:
            print(f"skip - make slides sets the slides without a warning: LaTeX lacks {' '.join(lacking)} (common/setup/setup.sh docs)")
            return
        check_pages(f"{folder}/clean")
        check_no_solution("grader/start")
        check_breaks(f"{folder}/broken")


main()
sys.exit(failed > 0)
