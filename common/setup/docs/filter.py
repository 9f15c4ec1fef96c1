#!/usr/bin/python3
"""filter.py FOLDER FILE...: writes the text that Doxygen reads in place of each file, below FOLDER,
at the file's absolute path. Its lines correspond to the file's, so warnings have the right line
numbers.

The text of a source has only its functions, for call graphs. A header goes into the group of its
folder, its headings become headings of the group's page, and in `int a, b; /**< text */` each name
gets the text. A text of a lab or of a folder becomes a page, and links between such texts become
links between pages. A lab's page gets the lab's figures from the slides.
"""
import html
import os
import re
import sys

# The group of a header, by the prefix of its path; the first match counts. pages/groups.dox
# describes the groups.
GROUPS = [
    ("common/balise", "functions"),
    ("common/backend/cpu/", "backend_cpu"),
    ("common/backend/onednn/", "backend_cpu"),
    ("common/backend/reference/", "backend_reference"),
    ("common/", None),  # the folder's own name
    ("grader/judge/", "judge"),
    ("grader/runner/", "runner"),
    ("grader/labs/", "grader_labs"),
    ("grader/gradebook/", "gradebook"),
    ("grader/", "grader"),
]
HEADING = re.compile(r"/\* ----+ (.*?)\s*(?:-+)?(\s*)\*/", re.S)
NAME = r"[*\s]*\w+(?:\[[^\]]*\])*"
SEVERAL = re.compile(rf"^([ \t]*)((?:(?:extern|const|struct|_Atomic) )*\w+) ({NAME}(?:,{NAME})+);(?:\s*/\*\*<(.*?)\*/)?", re.M | re.S)
ABOVE = re.compile(r"/\*\*(?!<)((?:(?!\*/).)*)\*/\s*$", re.S)
ALONE = re.compile(r"(?:/\*\*(?!<)((?:(?!\*/).)*)\*/\n)?^(enum \{ \w+ = [^,{}]*(?:\{0\}[^,{}]*)?) \};(?:\s*/\*\*<(.*?)\*/)?", re.M | re.S)

# Names of types, found by build.sh; many are English words too.
TYPES = set(os.environ.get("DOCS_TYPES", "").split())
PAGES = os.environ.get("DOCS_PAGES", "").split()
FUNCTIONS = set(os.environ.get("DOCS_FUNCTIONS", "").split())
# "as LaTeX" if formulas cannot be drawn.
FORMULAS = os.environ.get("DOCS_FORMULAS")
# The line of a lab's text that the lab's figures precede.
FULL_MARKS = "Full marks look like this:"
VARIABLE = re.compile(r"\b[a-z_]\w*\b(?!\()")
# A capitalised word at the start of a sentence. It names no type, although Doxygen would link it.
SENTENCE = re.compile(r"((?:^|/\*\*<? |@file\n \* |[.:?!|] +|[.:?!]\n(?: \* )?|\*\*|\d\. |\n *\*?\n *\*? *|[.]\*\* |# |PyTorch's |Recv_init, )\(?)"
                      r"([A-Z][A-Za-z]*)(?=[ ,.:;]+[^A-Z{(*]|s? |\))")


def no_links(text):
    return SENTENCE.sub(lambda found: found.group(1) + ("%" if found.group(2) in TYPES else "") + found.group(2), text)


def group_of(path):
    for start, group in GROUPS:
        if path.startswith(start):
            return group or path.split("/")[1]
    return None


def in_one_line(comment):
    return " ".join(line.strip().lstrip("*").strip() for line in comment.strip().split("\n"))


def split_names(text):
    """Turns `enum { A = 1 }; /**< text */` into `enum { A = 1 /**< text */ };`, and
    `int a, b; /**< text */` into `int a; /**< `a`, `b`: text */ int b; /**< the same */`. The text
    may also precede the declaration."""

    def split(found):
        indent, kind, names, below = found.groups()
        above = ABOVE.search(text, max(0, found.start() - 1000), found.start())
        if not below and not above:
            return found.group(0)
        names = [name.strip() for name in names.split(",")]
        listed = ", ".join("`" + re.sub(r"[*]|\[.*", "", name) + "`" for name in names)
        said = f"/**< {listed}: {in_one_line(below or above.group(1))} */"
        fields = [f"{kind} {name}; {said}" for name in names]
        if not below: # the text above already belongs to the first name
            fields[0] = f"{kind} {names[0]};"
        return indent + " ".join(fields) + "\n" * found.group(0).count("\n")

    def name(found):
        above, constant, below = found.groups()
        if not above and not below:
            return found.group(0)
        lines = found.group(0).count("\n")
        return "\n" * lines + f"{constant} /**< {in_one_line(' '.join(part for part in (above, below) if part))} */ }};"

    return ALONE.sub(name, SEVERAL.sub(split, text))


UNION = re.compile(r"^( +)(/\*\*(?:(?!\*/).)*\*/)?(\s*)union \{\n(.*?)\n\1\} (\w+);", re.M | re.S)


def flatten_union(found):
    """Moves the fields of a union into its struct, because Doxygen's links to them would be
    broken."""
    _, above, space, fields, name = found.groups()
    said = f" {in_one_line(above[3:-2])}" if above else ""
    return "\n" * ((above or "").count("\n") + space.count("\n") + 1) + re.sub(r"/\*\*< *(.*?) *\*/", rf"/**< in the union `{name}`: \1.{said} */", fields) + "\n"


def header(path, text):
    """Puts a header into the group of its folder. Its headings, /* ---- like this ---- */, become
    sections of the group's page; those of balise.h become pages of their own."""
    opened = 0

    def heading(found):
        nonlocal opened
        end, opened = "/**@}*/" if opened else "", opened + 1
        title, lines = found.group(1).strip().rstrip("."), "\n" * found.group(0).count("\n")
        if group_of(path) != "functions":
            return f"{end}/** @name {title} */ /**@{{*/{lines}"
        title, _, about = title.partition(". ")
        escaped = [part.replace(",", "\\,") for part in (title, about + ". " if about else "")]
        return f"{end}/** @section_of_words{{words_{opened},{escaped[0]},{escaped[1]}%Part {opened} of {path}.}} */ /**@{{*/{lines}"

    if FORMULAS:
        text = re.sub(r"\\f\[(.*?)\\f\]", r"@verbatim\1@endverbatim", text, flags=re.S)
        text = re.sub(r"\\f\$ *(.*?) *\\f\$", lambda found: "`" + re.sub(r" *(\n \* *)", r"`\1`", found.group(1)) + "`", text, flags=re.S)
    text = re.sub(r"/\*\*.*?\*/", lambda found: no_links(found.group(0)), HEADING.sub(heading, UNION.sub(flatten_union, split_names(text))), flags=re.S)
    text = re.sub(r"^\{\n.*?^\}", lambda body: only_calls(body.group(0)), text, flags=re.M | re.S)
    return f"/** @addtogroup {group_of(path)} */ /**@{{*/ {text}{'/**@}*/ ' if opened else ''}/**@}}*/\n"


def only_calls(text):
    """A variable with the name of a function must not link to it."""
    return VARIABLE.sub(lambda found: ("own_" if found.group(0) in FUNCTIONS else "") + found.group(0), text)


def source(text):
    """Keeps only functions: a source's own types would be confused with those of headers."""
    kept, inside = [], False
    for line in text.split("\n"):
        begins = re.match(r"(typedef |static )*(const )?(struct|union|enum)\b[^()=;]*\{", line)
        drop = inside or begins or re.match(r"(typedef|struct|union|enum)\b[^()]*;|/\*\*", line)
        inside = (inside or begins) and not re.match(r".*\}[^{}]*;", line)
        kept.append("" if drop else line)
    text = "\n".join(kept)
    # Some static functions have the name of a function in a header.
    own = set(re.findall(r"^(?:[A-Z_]+ )?static [^=;{}#]*?(\w+)\(", text, re.M))
    return only_calls(re.sub(r"\b[a-z_]\w*\b", lambda found: ("own_" if found.group(0) in own else "") + found.group(0), text))


def page_name(path):
    lab = re.match(r"labs/(\d\d)-[^/]*/README.md$", path)
    return f"lab{lab.group(1)}" if lab else path.replace("README.md", "readme").replace(".md", "").replace("/", "_").lower()


def read_figures():
    """{page: [(name, alternative text)]}, from the list that make figures writes."""
    found, path = {}, os.environ.get("DOCS_FIGURES", "")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for lab, name, text in (line.rstrip("\n").split("\t") for line in file):
                found.setdefault(f"lab{int(lab):02}", []).append((name, text))
    return found


FIGURES = read_figures()


def with_figures(name, text):
    """Puts the figures of a page after the task, on the empty line above what full marks look like."""
    shown = "".join(f'<p class="figure" tabindex="0"><img src="{figure}.svg" alt="{html.escape(about)}"/></p>' for figure, about in FIGURES.get(name, ()))
    return text.replace(f"\n\n{FULL_MARKS}", f"\n\\htmlonly[block]{shown}\\endhtmlonly\n{FULL_MARKS}", 1) if shown else text


def page(path, text):
    def link(found):
        label, to = found.groups()
        if re.match(r"\w+:|#", to):
            return found.group(0)
        to = os.path.normpath(os.path.join(os.path.dirname(path), to))
        if to not in PAGES and os.path.exists(to):
            return label
        return f"[{label}](@ref {page_name(to) if to in PAGES else to.replace('/', '_')})"

    text = re.sub(r"^# (.*)$", lambda found: f"# {found.group(1)} {{#{page_name(path)}}}", text, count=1, flags=re.M)
    heading, line, rest = re.sub(r"\[([^\]]*)\]\(([^)]*)\)", link, text).partition("\n")
    text = heading + line + no_links(rest)
    # Markdown shows lines of code as they are, with the % of no_links.
    text = re.sub(r"^ {4}.*", lambda line: re.sub(r"(?<!\w)%(?=[A-Z])", "", line.group(0)), text, flags=re.M)
    return with_figures(page_name(path), text)


def filtered(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".h"):
        return header(path, text)
    if path.endswith(".c"):
        return source(text)
    return page(path, text)


def main():
    folder, *paths = sys.argv[1:]
    for path in paths:
        to = folder + os.path.abspath(path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "w", encoding="utf-8") as file:
            file.write(filtered(path))


if __name__ == "__main__":
    main()
