#!/usr/bin/python3
"""The reference: the order of the folders, and comments in headers. With ALL=1, from slow_docs.sh:
make docs builds everything, no link is broken, no solution is revealed, and a missing comment or
another defect is an error."""
import glob
import html
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile

ROOT, BUILD = os.environ["ROOT"], os.environ["BUILD"]
os.chdir(ROOT)
sys.dont_write_bytecode = True
sys.path[:0] = ["common/train/tests", "slides"]
import figures as figures_of_slides  # pylint: disable=wrong-import-position
import pages as pages_of_tests  # pylint: disable=wrong-import-position

HERE = "common/setup/docs"
SITE = os.path.join(BUILD, "docs")
CLEAN = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BUILD")}
failed = 0


def check(sentence, good, seen=""):
    global failed
    print(("ok - " if good else "not ok - ") + sentence)
    if not good:
        failed += 1
        print("    " + str(seen).strip()[:3000].replace("\n", "\n    "))


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def said(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**CLEAN, **environment})


# ---- a page ----------------------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """A page's links, its anchors, the files that it loads, its figures from the slides, and its words."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors, self.words, self.formulas, self.figures, self.parts = [], [], set(), [], [], [], []
        self.in_figure = False
        self.feed(text_of(path))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in ("html", "main", "iframe") or attributes.get("aria-level"):
            self.parts.append((tag if tag != "div" else "heading", attributes.get("lang") or attributes.get("title")))
        self.anchors.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        if tag in ("a", "area") and attributes.get("href"):
            self.links.append(attributes["href"])
        loaded = attributes.get("href" if tag == "link" else "src")
        if tag in ("link", "img", "script", "iframe", "object", "embed") and loaded:
            self.loads.append(loaded)
        if tag == "img" and attributes.get("class", "").startswith("formula"):
            self.formulas.append(attributes["src"])
        elif tag == "img" and self.in_figure:
            self.figures.append((attributes["src"], attributes["alt"]))
        self.in_figure = tag == "p" and attributes.get("class") == "figure"

    def handle_data(self, data):
        self.words.append(data)


def plain(text):
    return re.sub(r"\s+", "", text)


def read_site():
    return {os.path.relpath(path, SITE): Page(path) for path in glob.glob(f"{SITE}/**/*.html", recursive=True)}


# ---- the site --------------------------------------------------------------------------------------------------------------


def check_links(pages):
    dead, outside = [], []
    for name, page in pages.items():
        for link in page.links + page.loads:
            to = urllib.parse.urlsplit(link)
            if to.scheme or link.startswith("//"):
                if to.scheme != "javascript" and link in page.loads:
                    outside.append(f"{name}: {link}")
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), urllib.parse.unquote(to.path))) if to.path else name
            if not os.path.isfile(os.path.join(SITE, target)):
                dead.append(f"{name}: {link}")
            elif to.fragment and target in pages and urllib.parse.unquote(to.fragment) not in pages[target].anchors:
                dead.append(f"{name}: {link}: the page has no such anchor")
    check("every link of every page leads somewhere", not dead, "\n".join(dead))
    drawn = []
    for path in glob.glob(f"{SITE}/*.svg"):
        for link in re.findall(r'xlink:href="([^"#]+)(?:#([^"]*))?"', text_of(path)):
            to, place = html.unescape(link[0]), link[1]
            if not to.startswith("http") and (to not in pages or place and place not in pages[to].anchors):
                drawn.append(f"{os.path.basename(path)}: {to}#{place}")
    check("every box of every drawing leads somewhere", not drawn, "\n".join(drawn))
    sheets = [path for path in glob.glob(f"{SITE}/**/*.css", recursive=True) if re.search(r"url\(['\"]?(https?:|//)|@import", text_of(path))]
    check("nothing is loaded from a network", not outside and not sheets, "\n".join(outside + sheets))


def check_headers(pages):
    headers = said("/usr/bin/bash", f"{HERE}/build.sh", "--headers").stdout.split()
    groups = {name: page for name, page in pages.items() if name.startswith("group__")}
    listed = {os.path.basename(link.split("#")[0]) for page in groups.values() for link in page.links}
    pages_of = {header: [name for name in pages if name.endswith("_8h.html") and
                         name.split("2")[-1] == os.path.basename(header).replace("_", "__").replace(".h", "_8h.html")] for header in headers}
    lost = [header for header, names in pages_of.items() if not any(name in listed for name in names)]
    check("every header of the folders and the grader is in a group", len(headers) > 60 and not lost, "\n".join(lost))
    page = text_of(os.path.join(SITE, "balise_8h.html"))
    places = [page.find(mark) for mark in ('id="func-members"', 'id="nested-classes"', 'class="dynheader')]
    check("the page of balise.h lists its functions before its types, and both before its graphs", -1 not in places and places == sorted(places), places)


def check_order():
    """Tests that a folder comes after the folders that it includes, in groups.dox."""
    folders = [folder for folder in re.findall(r"@defgroup (\w+) \w+: ", text_of(f"{HERE}/pages/groups.dox")) if os.path.isdir(f"common/{folder}")]
    wrong = []
    for path in glob.glob("common/*/**/*.[ch]", recursive=True):
        folder = path.split("/")[1]
        if "/tests/" not in path and "/bench/" not in path and folder in folders and not path.endswith("_main.c"):
            for other in re.findall(r'#include "(\w+)/', text_of(path)):
                if other in folders and folders.index(other) > folders.index(folder):
                    wrong.append(f"{path} includes a header of {other}")
    present = {path.split("/")[1] for path in glob.glob("common/*/*.h")} - {"tests"}
    check("every folder is a group that says what it is", present == set(folders), present ^ set(folders))
    check("a folder includes only folders that precede it in groups.dox", len(folders) == 13 and not wrong, "\n".join(wrong))


def check_comments():
    if not shutil.which("doxygen"):
        print("skip - every symbol of a header has a comment: there is no doxygen (common/setup/setup.sh docs)")
        return
    run = said("/usr/bin/bash", f"{HERE}/build.sh", "--check", f"{BUILD}/headers")
    check("every symbol of a header has a comment, and every type a name of its own", run.returncode == 0, run.stdout + run.stderr)


def check_labs(pages):
    wrong = []
    for path in sorted(glob.glob("labs/*/README.md")):
        number, title = path.split("/")[1][:2], re.search(r"^# (.*)", text_of(path), re.M)[1]
        page = pages.get(f"lab{number}.html")
        if not page or plain(title) not in plain("".join(page.words)):
            wrong.append(path)
    check("every lab has a page with its title", not wrong and len(glob.glob("labs/*/README.md")) >= 11, "\n".join(wrong))


def check_search():
    """Searches as search.js does: by the beginning of a name, in which other characters than letters and digits are numbers."""
    names = re.findall(r"\['(\w+)',\['([^']*)',\['\.\./([^']*)'", "".join(map(text_of, glob.glob(f"{SITE}/search/all_*.js"))))
    plainly = 'search = search.replace(/[ -]/g, "_")' in text_of(f"{SITE}/search/search.js")
    wanted = {"lab 6": "lab06.html", "lab 21": "lab21.html", "all-reduce": "group__words", "reduce-scatter": "labs_glossary.html", "bubble": "labs_glossary.html",
              "micro-batch": "labs_glossary.html", "sequence parallelism": "labs_glossary.html"}
    wrong = []
    for words, page in wanted.items():
        key = re.sub(r"[^a-z0-9]", "_5f", words)
        wrong += [] if any(name.startswith(key) and to.startswith(page) for name, _, to in names) else [f"{words}: no {page}"]
    check("the search finds labs and terms as they are written", plainly and not wrong, "\n".join(wrong) or "search.js does not know blanks and hyphens")


def check_figures(pages):
    """The figures of the slides on the labs' pages."""
    wrong, expected = [], {}
    for lab, name, text, _ in figures_of_slides.figures():
        expected.setdefault(f"lab{lab:02}.html", []).append((f"{name}.svg", text))
    for path in sorted(glob.glob("labs/*/README.md")):
        name = f"lab{path.split('/')[1][:2]}.html"
        shown = pages[name].figures if name in pages else []
        wrong += [] if shown and shown == expected.get(name) else [f"{name}: {shown}, not {expected.get(name)}"]
        wrong += [f"{name}: no alternative text of {src}" for src, text in shown if len(text.split()) < 8]
        wrong += [f"{name}: {src} draws nothing" for src, _ in shown if not os.path.isfile(f"{SITE}/{src}") or text_of(f"{SITE}/{src}").count("<path") < 10]
    check("every lab's page shows its figures of the slides as SVG, with their alternative texts", not wrong, "\n".join(wrong))


def check_alternative_text(folder):
    """A lab's page gets a figure without a change of its line numbers, and the figure's text is
    escaped."""
    path, text = "labs/01-duplication-allreduce/README.md", "a < b & \"c\""
    write(f"{folder}/list.tsv", f"1\tregion\t{text}\n")
    read = {}
    for name, figures in (("with", f"{folder}/list.tsv"), ("without", f"{folder}/none")):
        said(f"{HERE}/filter.py", f"{folder}/{name}", path, DOCS_FIGURES=figures)
        read[name] = text_of(f"{folder}/{name}{os.path.abspath(path)}").split("\n")
    added = [line for line in read["with"] if line not in read["without"]]
    check("an alternative text is escaped, and the page keeps the numbers of its lines", len(read["with"]) == len(read["without"]) and len(added) == 1
          and [line for line in read["with"] if line not in added] == [line for i, line in enumerate(read["without"]) if i != read["with"].index(added[0])]
          and 'alt="a &lt; b &amp; &quot;c&quot;"' in added[0], "\n".join(added))
    check("the figure is between the task and what full marks look like",
          [read["with"][read["with"].index(line) + 1] for line in added] == ["Full marks look like this:"], "\n".join(read["with"][:40]))


def check_verbatim_lines(folder):
    """What the kit prints begins with names of types, such as Lab; those get no link and no mark."""
    path = "labs/01-duplication-allreduce/README.md"
    said(f"{HERE}/filter.py", folder, path, DOCS_TYPES="Lab", DOCS_PAGES="labs/02-colwise-linear/README.md")
    read = text_of(folder + os.path.abspath(path)).split("\n")
    verbatim = [line for line in text_of(path).split("\n") if line.startswith("    ")]
    lost = [line for line in verbatim if line not in read]
    check("the lines that the kit prints are on a lab's page as they are in its text", any(line.startswith("    Lab 1 ") for line in verbatim) and not lost, "\n".join(lost))


def path_without(folder, *names):
    """A folder with all programs of PATH except these."""
    os.makedirs(folder)
    for place in os.environ["PATH"].split(":"):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name not in names and not os.path.lexists(f"{folder}/{name}"):
                os.symlink(os.path.join(place, name), f"{folder}/{name}")
    return folder


def check_missing_figures(folder):
    """Without pdf2svg, or if a drawing fails, the pages have no figures, and one line says why."""
    without_mpi = path_without(f"{folder}/without-mpi", "mpicc", "pkg-config", "pkgconf", "gcc", "cc")
    run = said("make", "figures", f"BUILD={folder}/build", PATH=without_mpi)
    listed = f"{folder}/build/slides/figures/list.tsv"
    check("make figures needs neither MPI nor a compiler", run.returncode == 0 and os.path.exists(listed), run.stdout + run.stderr)
    without = {"PATH": path_without(f"{folder}/without-pdf2svg", "pdf2svg")}
    lacking = [said("slides/build.sh", "--lacks", *more, **without).stdout.split() for more in ((), ("figures",))]
    check("the slides need no pdf2svg, but their figures for the pages do", lacking == [[], ["pdf2svg"]], lacking)
    run = said(f"{HERE}/figures.sh", f"{folder}/build", "make", "figures", f"BUILD={folder}/build", **without)
    made = said("/usr/bin/bash", f"{HERE}/build.sh", f"{folder}/build", "short", **without)
    page = Page(f"{folder}/build/docs/lab01.html") if made.returncode == 0 else None
    check("without pdf2svg, one line says that the pages have no figures, and the pages exist",
          run.returncode == 0 and run.stderr == "the labs' pages have no figures: there is no pdf2svg (common/setup/setup.sh docs)\n" and not run.stdout
          and page and not page.figures and not made.stderr, run.stdout + run.stderr + made.stdout + made.stderr)
    formulas = Page(f"{folder}/build/docs/group__optim.html") if page else None
    check("without pdf2svg, formulas are LaTeX, and the last line says so", formulas and not formulas.formulas and "\\sqrt{" in "".join(formulas.words)
          and made.stdout.endswith("; formulas are LaTeX: there is no pdf2svg\n"), made.stdout)
    write(listed, "1\tregion\tof an earlier build\n")
    run = said(f"{HERE}/figures.sh", f"{folder}/build", "/usr/bin/bash", "-c", "echo much; echo more >&2; exit 2")
    check("if a drawing fails, one line says that the pages have no figures, and none is left", run.returncode == 0 and not run.stdout and run.stderr.count("\n") == 1
          and run.stderr.startswith("the labs' pages have no figures: they could not be drawn, see ") and not os.path.exists(listed), run.stdout + run.stderr)


def code_lines(path):
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text_of(path), flags=re.S)
    return {plain(line) for line in text.split("\n") if not line.startswith("#")}


def check_secrets(pages):
    """The site shows no line of a solution unless students get that line: in its start file, a
    text, a header or a layer that stands in for a lab."""
    site = plain("\n".join("".join(page.words) for page in pages.values()))
    given = plain("\n".join(text_of(path) for path in glob.glob("labs/**/*.[cm]*", recursive=True) + glob.glob("common/*.h")))
    told = [f"{path}: {line}" for path in sorted(glob.glob("solutions/*/*.c")) for line in code_lines(path)
            if len(line) > 24 and line in site and line not in given]
    check("no line of a solution is in the site", site and not told, "\n".join(told))
    hints = [line for path in glob.glob("labs/*/hints/*.md") for line in text_of(path).split("\n") if len(line) > 50]
    told = [line for line in hints if plain(line) in site and plain(line) not in plain("".join(map(text_of, glob.glob("labs/*/README.md"))))]
    check("the site contains no hint", hints and not told, "\n".join(told))
    mutants = re.findall(r"^\[(\w+)\]", "".join(map(text_of, glob.glob("grader/mutants/*.txt") + glob.glob("grader/accepts/*.txt"))), flags=re.M)
    told = [name for name in mutants if len(name) > 12 and "_" in name and name in site and name not in given]
    sentences = re.findall(r'"([^"\n]{50,})"', "".join(map(text_of, glob.glob("grader/judge/diagnose/*.c"))))
    texts = plain("\n".join(text_of(path) for path in glob.glob("**/*.md", recursive=True) if not path.startswith("build")))
    told += [sentence for sentence in sentences if plain(sentence) in site and plain(sentence) not in texts]
    check("the site names no wrong answer that the grader knows", mutants and sentences and not told, "\n".join(told))


def check_formulas(pages):
    written = sum(len(re.findall(r"\\f[$\[](?:[^\\]|\\[^f])", text_of(path))) for path in said("/usr/bin/bash", f"{HERE}/build.sh", "--headers").stdout.split())
    shown = {src for page in pages.values() for src in page.formulas}
    empty = [src for src in shown if not os.path.isfile(f"{SITE}/{src}") or "<use" not in text_of(f"{SITE}/{src}") and "<path" not in text_of(f"{SITE}/{src}")]
    raw = [name for name, page in pages.items() if re.search(r"\\f[$\[\]]|\\frac|\\mathrm", "".join(page.words))]
    check("formulas are pictures", written and shown and not empty and not raw, f"{written} written, {len(shown)} shown; empty: {empty}; raw: {raw}")


def check_readable_aloud(pages):
    """Checks the rules of axe that Doxygen's own pages break."""
    wrong = []
    for name, page in pages.items():
        if "/" in name or not any(tag == "main" for tag, _ in page.parts):  # results of a search
            wrong += [] if name.startswith("search/") else [f"{name}: no main part"]
            continue
        wrong += [] if ("html", "en") in page.parts else [f"{name}: no language"]
        wrong += [] if re.search('<h1|aria-level="1"', text_of(f"{SITE}/{name}")) else [f"{name}: no heading of the first level"]
        wrong += [] if all(titled for tag, titled in page.parts if tag == "iframe") else [f"{name}: an iframe without a title"]
    menu, sheet = text_of(f"{SITE}/menu.js"), text_of(f"{SITE}/style.css")
    wrong += [] if menu.count('id="MSearchField"') == menu.count('id="MSearchField" aria-label=') > 0 else ["the search field has no label"]
    wrong += [] if re.search(r"\.textblock a.*text-decoration: underline", sheet) else ["links differ from text by colour alone"]
    check("each page names its language, its main part, its heading and its frames; the search field has a label; links are underlined", not wrong, "\n".join(wrong))


MEASURE = """<script>addEventListener("load", () => setTimeout(() => {
    const width = innerWidth, scrolls = part => part && (getComputedStyle(part).overflowX == "auto" || scrolls(part.parentElement));
    const cut = [...document.querySelectorAll("img, iframe")].filter(picture => { const at = picture.getBoundingClientRect();
        return at.width && (at.left < 0 || at.right > width && (picture.tagName == "IMG" || !scrolls(picture.parentElement))); });
    document.documentElement.setAttribute("data-cut", [width, document.documentElement.scrollWidth > width ? "page" : "", ...cut.map(one => one.getAttribute("src"))].join(" ").trim()); }, 500));</script>"""


def check_pictures():
    """Pictures fit a narrow screen; graphs, whose letters would be too small, scroll."""
    sentence = "at 390 pixels, no picture is cut, each wider graph scrolls, and the page does not"
    if not pages_of_tests.BROWSER:
        print(f"skip - {sentence}: there is no browser")
        return
    wrong = []
    for name in ("index", "lab06", "group__optim", "a_call", "balise_8h"):
        copy = f"{SITE}/cut-{name}.html"
        write(copy, text_of(f"{SITE}/{name}.html").replace("</body>", f"{MEASURE}</body>"))
        cut = pages_of_tests.attribute(pages_of_tests.drawn(copy, 390), "data-cut")
        wrong += [] if cut == "390" else [f"{name}.html: {cut}"]
        os.unlink(copy)
    check(sentence, not wrong, "\n".join(wrong))


AXE = "axe-playwright-python==0.1.8"  # its wheel has axe-core's script
RUN_AXE = """<script>addEventListener("load", () => setTimeout(() => axe.run().then(found =>
    document.documentElement.setAttribute("data-axe", found.violations.map(one => one.id + " " + one.nodes[0].html.slice(0, 80).replace(/"/g, "'")).join("; ") || "none"))));</script>"""


def check_axe(folder):
    """Axe's findings on some pages, in a browser. Its script comes from PyPI."""
    sentence = "axe finds nothing on a page of each kind, at 1280 and 390 pixels"
    got = said(sys.executable, "-m", "pip", "--quiet", "--retries", "1", "download", "--no-deps", "--dest", folder, AXE)
    if got.returncode or not pages_of_tests.BROWSER:
        print(f"skip - {sentence}: {(got.stderr.strip().splitlines() or ['there is no browser'])[-1]}")
        return
    wheel, = glob.glob(f"{folder}/axe_*.whl")
    with zipfile.ZipFile(wheel) as archive:
        script = archive.read("axe_playwright_python/axe.min.js").decode("utf-8")
    wrong = []
    for name in ("index", "lab06", "group__tensor", "a_call", "globals", "label_8h"):
        copy = f"{SITE}/axe-{name}.html"
        write(copy, text_of(f"{SITE}/{name}.html").replace("</body>", f"<script>{script}</script>{RUN_AXE}</body>"))
        for width in (1280, 390):
            found = pages_of_tests.attribute(pages_of_tests.drawn(copy, width), "data-axe")
            wrong += [] if found == "none" else [f"{name}.html, {width} pixels: {found}"]
        os.unlink(copy)
    check(sentence, not wrong, "\n".join(wrong))


# ---- the messages about defects ----------------------------------------------------------------------------------------------


def copy_of_kit(folder):
    os.makedirs(folder)
    for name in ("common", "grader"):
        shutil.copytree(name, f"{folder}/{name}", ignore=shutil.ignore_patterns("tests", "mutants", "accepts", "__pycache__"))
    for path in ["README.md", "CONTRIBUTING.md", "labs/GLOSSARY.md"] + glob.glob("labs/*/README.md") + glob.glob("*/README.md"):
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        shutil.copy(path, f"{folder}/{path}")


def line_of(path, words):
    return next(i for i, line in enumerate(text_of(path).split("\n"), 1) if words in line)


# Each defect has its name, the file, the text to replace and its replacement, words in the line
# that the message must name (None for any), and words of the message.
BREAKS = (
    ("a field without a comment", "common/base/memory.h", " /**< the highest total */", "", "peak_total", "peak_total"),
    ("a function without a comment", "common/mesh/mesh.h", "/** Fills `mesh` for `world`", "/* Fills `mesh` for `world`", "void mesh_open", "mesh_open"),
    ("an enumerator without a comment", "common/tensor/tensor.h", " /**< ids, labels and masks */", "", None, "INT32"),
    ("a type without a comment", "common/model/transformer.h", "/** The sizes and other properties of a transformer. */", "", "typedef struct TransformerConfig", "TransformerConfig"),
    ("a parameter that is left out where others are described", "common/train/trainer.h", " *  @return false with `problem`, on every rank, naming",
     " *  @param step of the run\n *  @return false with `problem`, on every rank, naming", None, "model"),
    ("a header that does not say what it is", "common/mesh/mesh.h", "/** @file\n", "/*\n", None, "mesh.h"),
    ("a link to a missing text", "labs/02-colwise-linear/README.md", "(../03-embedding/README.md)", "(../03-nothing/README.md)", None, "03-nothing"),
    ("a type that another header has too", "common/model/transformer.h", "typedef struct TransformerConfig {", "typedef struct Buffer {\n} Buffer;\ntypedef struct TransformerConfig {",
     None, "Buffer"),
)


def check_breaks(folder, breaks):
    copy_of_kit(folder)
    build = f"{folder}/build"
    os.makedirs(f"{build}/docs")
    write(f"{build}/docs/index.html", "the one before")
    for what, path, old, new, named, word in breaks:
        good = text_of(f"{folder}/{path}")
        if old not in good:
            check(f"{what} is one error that names it", False, f"{path} does not contain {old!r}")
            continue
        write(f"{folder}/{path}", good.replace(old, new, 1))
        where = f"{path}:{line_of(f'{folder}/{path}', named)}" if named else path.replace("03-nothing", "")
        run = said("/usr/bin/bash", f"{folder}/{HERE}/build.sh", build, "short")
        check(f"{what} is one error with file and line, and the site stays as it was",
              run.returncode == 2 and run.stderr.count("error: ") == 1 and f"  at {where}" in run.stderr and word in run.stderr and "  HINT: " in run.stderr
              and text_of(f"{build}/docs/index.html") == "the one before", run.stdout + run.stderr)
        write(f"{folder}/{path}", good)


def check_without_doxygen(folder):
    os.makedirs(folder)
    for name in ("bash", "sort", "find", "xargs", "sed", "dirname"):
        os.symlink(shutil.which(name), f"{folder}/{name}")
    run = said("/usr/bin/bash", f"{HERE}/build.sh", f"{folder}/build", PATH=folder)
    check("without Doxygen there is one error with a HINT that setup understands",
          run.returncode == 2 and run.stderr.startswith("error: the reference needs doxygen") and "HINT: common/setup/setup.sh docs" in run.stderr, run.stderr)


def main():
    if not os.environ.get("ALL"):
        check_order()
        check_comments()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            check_alternative_text(folder)
            check_verbatim_lines(folder)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        check_without_doxygen(f"{folder}/bare")
        lacking = said("/usr/bin/bash", f"{HERE}/build.sh", "--lacks").stdout.split() + said("slides/build.sh", "--lacks", "figures").stdout.split()
        if lacking:
            print(f"skip - make docs makes the reference without a warning: there is no {', '.join(lacking)} (common/setup/setup.sh docs)")
            return
        run = said("make", "docs", f"BUILD={BUILD}")
        # Another test may be building at the same time; make then prints that it waits.
        warnings = [line for line in run.stderr.splitlines() if not line.startswith("another make is building")]
        check("make docs makes the reference without a warning", run.returncode == 0 and not warnings, run.stdout + run.stderr)
        pages = read_site() if os.path.isdir(SITE) else {}
        check_links(pages)
        check_headers(pages)
        check_labs(pages)
        check_search()
        check_figures(pages)
        check_secrets(pages)
        check_formulas(pages)
        check_readable_aloud(pages)
        check_pictures()
        check_axe(f"{folder}/axe")
        check_breaks(f"{folder}/broken", BREAKS)
        check_missing_figures(f"{folder}/missing")


main()
sys.exit(failed > 0)
