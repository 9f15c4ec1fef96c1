#!/usr/bin/python3
"""The kit in French: every message and every lab text is translated, and output for programs is the
same in each language."""
import ast
import glob
import itertools
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, BUILD = os.environ["ROOT"], os.environ["BUILD"]
for variable in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # make runs here as if typed by hand
    os.environ.pop(variable, None)
CLEAN = {name: value for name, value in os.environ.items() if not re.match(r"LANG|LC_", name)}
os.chdir(ROOT)


def check(sentence, wrong):
    """Prints the result of a test. `wrong` lists everything that contradicts the sentence."""
    print(("not ok - " if wrong else "ok - ") + sentence)
    for line in wrong[:20]:
        print("    " + str(line))


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# ---- the kit's messages

def unquoted(literals):
    return "".join(part.encode().decode("unicode_escape").encode("latin-1").decode("utf-8")
                   for part in re.findall(r'"((?:[^"\\]|\\.)*)"', literals))


def messages(po):
    """{sentence: its translation, or ""} of a .po file, without fuzzy and obsolete entries."""
    found = {}
    for entry in text_of(po).split("\n\n"):
        match = re.search(r'^msgid ((?:".*"\n?)+)(?:msgid_plural ((?:".*"\n?)+))?', entry, re.M)
        said = re.findall(r'^msgstr(?:\[\d\])? ((?:".*"\n?)+)', entry, re.M)
        if match and said and not re.search(r"^#,.*fuzzy", entry, re.M):
            french = [unquoted(text) for text in said]
            found[unquoted(match[1])] = " ".join(french) if all(french) else ""
    found.pop("", None)
    return found


GLOSSARY_TERMS = ("tape", "mesh", "residual path")  # each has only one name in French


def sentences_are_translated():
    template = f"{BUILD}/generated/balise.pot"
    done = subprocess.run(["make", "--silent", template], capture_output=True, text=True)
    check("xgettext gathers the sentences", [] if done.returncode == 0 else [done.stderr])
    said, french = messages(template), messages("common/po/fr.po")
    check("there are sentences to gather", [] if len(said) > 300 else [len(said)])
    check("every sentence is in French", [text for text in said if not french.get(text)])
    check("every French sentence is still used", [text for text in french if text not in said])
    told = re.findall(r"tell '([^'%]*)'", text_of("common/train/layouts.sh"))
    check("what make layouts prints fits 80 columns in French", [french.get(text) for text in told if not 0 < len(french.get(text, "")) <= 80])
    for term in GLOSSARY_TERMS:
        name = re.search(rf"^\| {term} \| (\w+)", text_of("labs/GLOSSARY.md"), re.M)[1]
        check(f"French sentences call a {term} {name}, as the glossary does",
              [text for text, translation in french.items() if re.search(rf"(?<!make )\b{term}\b(?!->|[(,)])", text) and name not in translation.lower()])
    compiled = subprocess.run(["msgfmt", "--check", "-o", "/dev/null", "common/po/fr.po"], capture_output=True, text=True)
    check("translations have the numbers and names of the English sentences", [compiled.stderr] if compiled.returncode else [])
    return said


# Texts that are not for people: options, files, commands of make and gdb, JSON for pages.
NO_SENTENCE = re.compile(r"^(--|#|/|make [a-z]+ LAB=|set \w+ off|shell )|\.c$|^not looked at$")


def literals_of(path):
    """The string literals of a C file, adjacent ones joined, each with the code before it."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text_of(path), flags=re.S)
    for match in re.finditer(r'((?:"(?:[^"\\\n]|\\.)*"[ \t\n\\]*(?:PRI[dux]\d+[ \t\n]*)?)+)', code):
        yield code[max(0, match.start() - 60):match.start()], match[1], code.count("\n", 0, match.start()) + 1


# Calls and operators whose strings are no messages: these are compared, or name an entry or a file.
COMPARED = re.compile(r"((sscanf|static_assert|_Static_assert|str(n?case)?n?cmp|strstr|strspn|strcspn|strchr|fopen|getenv|json_\w+|popen|system|execl\w*)\s*\(|"
                      r"snprintf\(name|char start\[\] =)[^;]*$")


def nothing_is_unmarked(said):
    """Each text of several words in these sources is in the catalogue, except the arguments of
    COMPARED and texts like NO_SENTENCE."""
    unmarked = []
    for path in sorted(path for pattern in ("grader/judge/*.c", "grader/judge/*/*.c", "grader/gradebook/*.c", "common/data/*.c") for path in glob.glob(pattern)):
        for before, literal, line in literals_of(path):
            try:
                text = unquoted(literal)
            except (UnicodeDecodeError, UnicodeEncodeError):
                continue
            words = re.findall(r"(?<![%\w.=-])[a-z]{2,}(?= )", re.sub(r"%[-+ #0-9.*]*[hlzjt]*[a-zA-Z]", "%", text))
            if len(words) >= 2 and text not in said and not COMPARED.search(before) and not NO_SENTENCE.search(text) and "#include" not in before[-12:]:
                unmarked.append(f"{path}:{line}: {text[:100]!r}")
    check("every sentence of the judge, the gradebook and the data is marked for translation", unmarked)


def is_sentence(text):
    """Is this several words with blanks between them, not a name or code?"""
    text = re.sub(r"<[^<>]*>|%[-+ #0-9.*]*[hlzjt]*[a-zA-Z]|\$?\{[^{}]*\}|\$\w+|\$\(\w+\)|\\\w", "%", text)
    return len(re.findall(r"(?<![%\w.=/<-])[a-z]{2,}(?= [a-z%'(])", text)) >= 1 and not CODE.search(text)


# Texts that are never translated: commands that are shown unchanged, styles, gnuplot's words.
CODE = re.compile(r'^(make [a-z]+ LAB=|[0-9]+px |use strict$|(svg|pngcairo) size )|noenhanced|linecolor|linewidth|pointsize|using 1:2|labels title|^[%"\s]*(set|module|#) | # ')


def lines_of(pattern):
    for path in sorted(glob.glob(pattern)):
        joined = re.sub(r"\\\n", lambda _: "  ", text_of(path)) if path.endswith((".mk", "Makefile")) else text_of(path)
        for number, line in enumerate(joined.splitlines(), 1):
            yield path, number, line


SPEAKING = re.compile(r"""\b(?:echo|printf|fail|give_up|complain|hint|under|row(?: \w+)?|mpi_fails|show_status)\b""")


def no_script_is_unmarked(said):
    """Shell scripts print quoted text only through say, said and tell, whose texts are in the
    catalogue."""
    unmarked, unknown = [], []
    scripts = [pattern for pattern in ("grader/*.sh", "grader/handout/changed.sh", "common/base/*.sh", "common/train/*.sh", "common/slurm/*.sh", "common/setup/*.sh", "data/*.sh")]
    for path, number, line in (found for pattern in scripts for found in lines_of(pattern)):
        if re.match(r"\s*(#|END)", line) or "#!/bin" in line or "#SBATCH" in line:
            continue
        marked = r"""\b(?:say|said|tell) (?:'([^']*)'|"((?:[^"\\$]|\\.)*)")"""
        for match in re.finditer(marked, line):
            text = match[1] if match[1] is not None else re.sub(r"\\(.)", r"\1", match[2])
            if text.strip() and text not in said and "$" not in text.replace("$USER", "").replace("$HOME", ""):
                unknown.append(f"{path}:{number}: {text!r}")
        rest = re.sub(r"\$\(\(.*?\)\)", "%", re.sub(marked, "", line))
        speaks = SPEAKING.search(rest)
        for match in re.finditer(r"""'([^']*)'|"((?:[^"\\]|\\.)*)\"""", rest[speaks.end():] if speaks else ""):
            if is_sentence(re.sub(r"\$\([^()]*\)", "%", match[1] or match[2] or "")):
                unmarked.append(f"{path}:{number}: {match[0]}")
    check("every sentence of the shell scripts is marked for translation", unmarked)
    check("every sentence of the shell scripts was gathered", unknown)


def no_makefile_speaks(_):
    """Makefiles print no sentences themselves; scripts do."""
    speaking = [f"{path}:{number}: {line.strip()[:120]}"
                for pattern in ("Makefile", "grader/*.mk", "grader/*/*.mk", "common/*/*.mk") for path, number, line in lines_of(pattern)
                if not line.startswith("#") and (re.search(r"\$\((error|warning|info) (?!\$\((IN_THE_WAY|BUILD_HOLDER)\))", line) or any(
                    is_sentence(match[1]) for match in re.finditer(r"\b(?:echo|printf) ['\"]([^'\"$][^'\"]*)", line)))]
    check("no makefile prints a sentence", speaking)


def spoken_in(path, tree):
    """What is translated of a file: all of it, but of make bench and make model the errors only."""
    return [tree] if not path.startswith("common/bench/") else [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("give_up", "refuse")]


def no_python_is_unmarked(said):
    """Python prints texts of words only through _(), whose arguments are in the catalogue and are
    not f-strings."""
    unmarked = []
    for path in sorted(path for pattern in ("grader/*.py", "grader/loop/*.py", "common/bench/*.py", "common/page/*.py", "common/plot/*.py", "data/archive_to_csv.py") for path in glob.glob(pattern)):
        tree = ast.parse(text_of(path))
        quiet = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
                quiet.add(id(node.body[0].value))
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("_", "counted", "pgettext"):
                texts = [argument for argument in node.args if isinstance(argument, ast.Constant) and isinstance(argument.value, str)]
                quiet |= {id(text) for text in texts}
                unmarked += [f"{path}:{text.lineno}: {text.value!r} was not gathered" for text in texts[:1] if node.func != "pgettext" and text.value not in said and
                             getattr(node.func, "attr", "") != "pgettext"]
            if isinstance(node, (ast.Dict, ast.Subscript, ast.Compare)): # keys
                quiet |= {id(key) for key in (node.keys if isinstance(node, ast.Dict) else ast.walk(node))}
        unmarked += [f"{path}:{node.lineno}: {node.value!r}" for part in spoken_in(path, tree) for node in ast.walk(part)
                     if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet and is_sentence(node.value) and node.value not in said]
    check("every sentence of the loop, the pages and the plots, and every error of the measurements, is marked for translation", unmarked)


def no_page_is_unmarked(said):
    unmarked = []
    for path, number, line in lines_of("common/page/*.js"):
        line = re.sub(r"//.*", "", line)
        unmarked += [f"{path}:{number}: {text!r} was not gathered" for text in re.findall(r'\bsay\("([^"]*)"', line) if text not in said]
        unmarked += [f"{path}:{number}: {text!r}" for text in re.findall(r'"([^"]*)"|`([^`]*)`', re.sub(r'\bsay\("[^"]*"', "", line)) if any(map(is_sentence, text))]
    check("every sentence of a page's scripts is marked for translation", unmarked)


# ---- the labs' texts

def outline(path):
    """The parts of a text that a translation must keep: the levels of headings, the columns of
    tables, the commands in code, links."""
    kept, code = [], False
    for line in text_of(path).splitlines():
        if line.startswith("```"):
            code = not code
        elif re.match(r"#+ ", line) and not code:
            kept.append("heading " + line.split()[0])
        elif line.startswith("|"):
            kept.append(f"row of {line.count('|') - line.count(chr(92) + '|')}")
        command = re.match(r"    ((?:make|build/\w+|cd|cp|less|tar|git) [^#]*)", line)
        if command:
            kept.append("command " + re.sub(r"NAME=.*", "NAME=", command[1]).replace(".fr.md", ".md").strip())
        kept += ["link " + target.replace(".fr.md", ".md") for target in re.findall(r"\]\(([^)]*)\)", line)]
    return sorted(kept)


def texts_are_translated():
    texts = sorted(glob.glob("labs/*/README.md") + glob.glob("labs/*/hints/*.md") + ["grader/handout/README.md", "solutions/README.md"])
    texts = [path for path in texts if not path.endswith(".fr.md")]
    french = {path: path.replace(".md", ".fr.md") for path in texts}
    check("every text and hint exists in French", [path for path in texts if not os.path.exists(french[path])])
    there = [path for path in texts if os.path.exists(french[path])]
    wrong = []
    for path in there:
        english, other = outline(path), outline(french[path])
        for line in sorted(set(english + other)):
            if english.count(line) != other.count(line):
                wrong.append(f"{french[path]}: {other.count(line)} x {line}, and {english.count(line)} in English")
    check("a French text has the headings, tables, commands and links of the English one", wrong)
    pointed = [f"{french[path]}: {line}" for path in there for line in text_of(french[path]).splitlines()
               if line.startswith("|") and re.search(r"(?<![\w.:])\d+\.\d+(?![\d.])", re.sub(r"`[^`]*`|sections? [\d.]+", "", line))]
    check("numbers in a French table have a decimal comma, as in the text around it", pointed)
    same = [french[path] for path in there for paragraph in text_of(path).split("\n\n")
            if len(re.findall(r"\b(the|of|and|is|it)\b", paragraph)) > 4 and paragraph in text_of(french[path])]
    check("no paragraph was left in English", same)


# ---- the output of commands

def graded(folder, lab="LAB=2", **environment):
    """Runs make grade; returns its output, and the verdict as JSON."""
    done = subprocess.run(["make", "--silent", "grade", lab, "SOLUTION=1", "SEED=3", "FORMAT=json", f"OUT={folder}/verdict.json"], capture_output=True,
                          text=True, encoding="utf-8", env={**CLEAN, **environment})
    verdict = f"{folder}/verdict.json"
    return done.stdout + done.stderr, json.loads(text_of(verdict)) if os.path.exists(verdict) else None


def what_comes_out(folder):
    english, english_verdict = graded(folder, LANG="C.UTF-8")
    french, french_verdict = graded(folder, LANG="fr_FR.UTF-8")
    by_language, _ = graded(folder, LANG="en_US.UTF-8", LANGUAGE="fr:en")
    plain, _ = graded(folder, LC_ALL="C", LANG="fr_FR.UTF-8")

    def timeless(text):
        return re.sub(r"\d+\.\d s", "", text)
    check("in a French locale, installed or not, the grader speaks French", [] if "passe avant" in french and "forward" not in french else [french])
    check("LANGUAGE selects French, too", [] if timeless(by_language) == timeless(french) else [by_language])
    def hint(**environment):
        return subprocess.run(["make", "--silent", "hint", "LAB=99"], capture_output=True, text=True, encoding="utf-8", env={**CLEAN, **environment}).stderr
    wrong = [f"{environment}: {hint(**environment)}" for environment, french_is_read in (
        ({"LANG": "fr_FR.UTF-8"}, True), ({"LANGUAGE": "fr"}, True), ({"LANG": "C", "LANGUAGE": "fr"}, False), ({"LC_ALL": "C", "LANG": "fr_FR.UTF-8"}, False))
        if ("erreur" in hint(**environment)) != french_is_read or ("erreur" in graded(folder, lab="LAB=99", **environment)[0]) != french_is_read]
    check("C and Python choose the language by the same rule", wrong)
    check("LC_ALL overrides LANG", [] if timeless(plain) == timeless(english) and "forward" in english else [plain, english])
    check("points and Score: are the same in French", [] if re.findall(r"\d+/\d+|Score: .*", english) == re.findall(r"\d+/\d+|Score: .*", french) else [french])

    def keys(json_value):
        if isinstance(json_value, dict):
            return {key: keys(value) if key not in ("remark", "reason", "note", "title", "isolation", "stack", "printed", "seconds", "diagnosis", "description") else None
                    for key, value in json_value.items() if key != "seconds"}
        return [keys(value) for value in json_value] if isinstance(json_value, list) else json_value if not isinstance(json_value, float) else None
    check("the fields of a verdict that programs read are the same in French", [] if keys(english_verdict) == keys(french_verdict) else [english_verdict, french_verdict])


def said_by_make(*arguments, **environment):
    done = subprocess.run(["make", "--silent", *arguments], capture_output=True, text=True, encoding="utf-8", env={**CLEAN, **environment}, check=False)
    return done.stdout + done.stderr


def pages_come_out(folder):
    texts = []
    for language in ("C.UTF-8", "fr_FR.UTF-8"):
        said_by_make("report", "LAB=6", "SOLUTION=1", "SEED=3", f"OUT={folder}/page.html", LANG=language)
        page = text_of(f"{folder}/page.html")
        texts.append(page)
        os.unlink(f"{folder}/page.html")
    english, french = texts
    check("a page says its language", [] if '<html lang="en">' in english and '<html lang="fr">' in french else [english[:60], french[:60]])
    visible = html.unescape(re.sub(r"<(style|script|code)[^>]*>.*?</\1>|<[^>]+>", "\n", french, flags=re.S))
    check("a French page has no English text", [line for line in visible.splitlines() if re.search(r"\b(the|of|and|is|rank|right|first|step|cut)\b", line.replace("first.", ""))])
    check("a page contains the translated messages of its scripts", [] if '"rank {0}":"rang {0}"' in french and '"words":{}' in english else [french[-600:]])
    for words, arguments in (("empilement", ("grade", "STACK=x")), ("réglage", ("grade", "NOWHERE=1")), ("numéro d'une balise", ("train", "UPTO=99"))):
        words_said = said_by_make(*arguments, LANG="fr_FR.UTF-8")
        check(f"make {' '.join(arguments)} is refused in French", [] if words in words_said and "INDICE" in words_said else [words_said])
    words_said = subprocess.run(["common/bench/bench.py", BUILD], capture_output=True, text=True, encoding="utf-8", env={**CLEAN, "TEXTDOMAINDIR": f"{BUILD}/locale", "LANG": "fr_FR.UTF-8", "ONLY": "x"}, check=False).stderr
    check("make bench ONLY=x is refused in French", [] if "erreur : il n'y a pas de section « x »\n  INDICE : ONLY est l'un de kernels, " in words_said else [words_said])
    for number, locale in enumerate(("fr_FR.UTF-8", "C.UTF-8", "")):
        words_said = said_by_make("grade", "STACK=x", f"BUILD={folder}/new{number}", LANGUAGE="fr", LANG=locale)
        check(f"make speaks French before anything is built, with LANGUAGE=fr and LANG={locale}", [] if "empilement" in words_said else [words_said])


def doctor_comes_out():
    brief, lines = (said_by_make("doctor", *words, LANG="fr_FR.UTF-8").splitlines() for words in ([], ["ALL=1"]))
    check("the doctor speaks French", [] if "Nécessaire aux balises" in brief and "Nécessaire aux balises" in lines else lines)
    check("the doctor's French tables fit 80 columns", [line for line in brief + lines if len(line) > 80])
    rows = [line for line in lines if re.match(r"  [✓✗! ] \S", line) and len(line) > 41]
    tables = [list(table) for _, table in itertools.groupby(lines, rows.__contains__)]
    askew = [table for table in tables if table[0] in rows and not any(all(line[at - 1:at + 1].strip() == line[at:at + 1] != "" for line in table) for at in range(41, 60))]
    check("the columns of the doctor's French table are aligned, whatever their accents", askew)


texts_are_translated()
if not shutil.which("xgettext"):
    print("skip - the sentences are in French: xgettext is not installed")
    sys.exit()
everything_said = sentences_are_translated()
for nothing_is_left_out in (nothing_is_unmarked, no_script_is_unmarked, no_makefile_speaks, no_python_is_unmarked, no_page_is_unmarked):
    nothing_is_left_out(everything_said)
with tempfile.TemporaryDirectory() as place:
    what_comes_out(place)
    pages_come_out(place)
doctor_comes_out()
