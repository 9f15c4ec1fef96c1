#!/usr/bin/env bash
# The files beside the code. The top level has only agreed files, and the files for editors and
# other tools are correct.
# shellcheck disable=SC2317 # functions are called by check
set -uo pipefail
cd "$ROOT" || exit 2
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD
out=$(mktemp)
folder=$(mktemp -d)
trap 'rm -rf "$out" "$folder"' EXIT
failures=0

check() { # check SENTENCE COMMAND...
    if "${@:2}" > "$out" 2>&1; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/    | /' "$out" | tail -20
        failures=1
    fi
}
files() { # all files of the repository; in a copy without git, all files except those in build
    git ls-files 2> /dev/null | grep . || find . -path ./build -prune -o -type f -print | sed 's#^\./##'
}

top_level() {
    local name
    while read -r name; do
        case $name in
        .* | Makefile | README.md | CONTRIBUTING.md | CHANGELOG.md | LICENSE | labs | solutions | grader | common | data | slides | site.mk) ;;
        *)
            echo "$name does not belong at the top level"
            return 1
            ;;
        esac
    done < <(files | cut -d/ -f1 | sort -u)
}
license() {
    [ ! -r /usr/share/common-licenses/Apache-2.0 ] || cmp LICENSE /usr/share/common-licenses/Apache-2.0
}
reads_json() {
    python3 -c 'import json, sys; [json.load(open(file)) for file in sys.argv[1:]]' .devcontainer/devcontainer.json .vscode/tasks.json
}
# Every TARGET of a "make TARGET" in these files exists. (make -n would run recursive makes.)
targets_exist() {
    local target
    { make -pqr lint; make -pqr help; } 2> /dev/null | sed -n 's/^\([a-z-]*\):\( .*\)\?$/\1/p' > "$folder/targets"
    for target in $(grep -hoE '\bmake (-C /kit )?[a-z-]+' .github/workflows/*.yml .gitlab-ci.yml .devcontainer/* CONTRIBUTING.md | awk '{ print $NF }') \
        $(python3 -c 'import json; [print(task["args"][0]) for task in json.load(open(".vscode/tasks.json"))["tasks"]]'); do
        [ "$target" = git ] || grep -qx "$target" "$folder/targets" || {
            echo "there is no make $target"
            return 1
        }
    done
}
make_alone_helps() {
    make -n 2> /dev/null | tail -n 1 | grep -qx common/setup/help.sh
}
tasks_know_the_labs() {
    python3 - << 'PYTHON'
import json, re
labs = re.findall(r"^\$\(call add_lab,(\d+),", open("grader/labs.mk").read(), re.M)
assert json.load(open(".vscode/tasks.json"))["inputs"][0]["options"] == labs, labs
PYTHON
}
readme_lists_the_labs() {
    python3 - << 'PYTHON'
import re
rows = dict(re.findall(r"^\| (\d+) \|.*\| `(labs/[^`]*)`", open("README.md").read(), re.M))
labs = {number: f"labs/{file}" for number, file in re.findall(r"^\$\(call add_lab,(\d+),([^,]*),", open("grader/labs.mk").read(), re.M)}
assert rows == labs, (rows, labs)
PYTHON
}
readme_is_short() {
    [ "$(wc -l < README.md)" -le 120 ]
}
help_is_one_screen() { # in each language
    local language topic
    for language in en fr; do
        LANGUAGE=$language LANG=fr_FR.UTF-8 make --silent help > "$folder/help" && [ "$(wc -l < "$folder/help")" -le 24 ] || return
        for topic in "" train class develop; do
            LANGUAGE=$language LANG=fr_FR.UTF-8 make --silent help ${topic:+"$topic"} > "$folder/help" && [ "$(LC_ALL=C.UTF-8 wc -L < "$folder/help")" -le 80 ] || return
        done
        grep -qx "$([ "$language" = fr ] && echo 'Ce que cela coûte' || echo 'What it costs')" "$folder/help" || return
    done
}
has_topics() {
    make --silent help > "$folder/help" && grep -q 'make grade' "$folder/help" && ! grep -q 'make train' "$folder/help" &&
        make --silent help train > "$folder/help" && grep -q 'MODEL=base' "$folder/help" && grep -q 'OUT --hf' "$folder/help" && ! grep -q 'make bench' "$folder/help" &&
        ! make --silent help nothing > "$folder/help" 2>&1 && grep -q "no help on 'nothing'" "$folder/help" && grep -q 'HINT: ' "$folder/help"
}
handout_says_what_labs_stand_on() { # "2, 3, 4 and 6 on 1; ...; 11 on 3, 4 and 6 to 10"
    python3 - << 'PYTHON'
import re
needs = {int(n): {int(x) for x in on.split()} for n, on in re.findall(r"^\$\(call add_lab,(\d+),[^,]*,([^,]*),", open("grader/labs.mk").read(), re.M)}
def numbers(text):
    text = re.sub(r"(\d+) (?:to|à) (\d+)", lambda m: " ".join(map(str, range(int(m[1]), int(m[2]) + 1))), text)
    return [int(n) for n in re.findall(r"\d+", text)]
for path, on in (("grader/handout/README.md", " on "), ("grader/handout/README.fr.md", " sur ")):
    sentence = re.search(r"^(?:A lab builds|Une balise repose)[^:]*:([^.]*)\.", open(path).read(), re.M)[1]
    told = {lab: set(numbers(rest.split(on)[1])) for rest in sentence.split(";") for lab in numbers(rest.split(on)[0])}
    assert told == {lab: others for lab, others in needs.items() if others}, (path, told)
PYTHON
}
describes_every_lab() {
    make --silent BUILD="$folder/new" "$folder/new/compile_commands.json" && python3 - "$folder/new" << 'PYTHON'
import glob, json, os, sys
described = {entry["file"] for entry in json.load(open(f"{sys.argv[1]}/compile_commands.json"))}
for file in glob.glob("labs/*/*.c") + glob.glob("solutions/*/*.c") + glob.glob("common/autograd/*.c"):
    assert file in described, file
assert all(os.path.exists(file) for file in described)
PYTHON
}
clangd_finds_nothing() {
    local file
    for file in solutions/*/*.c common/train/step.c; do
        clangd --compile-commands-dir="$folder/new" --check="$file" > "$folder/said" 2>&1
        if ! grep -q 'All checks completed, 0 errors' "$folder/said"; then
            cat "$folder/said"
            return 1
        fi
    done
}

one_width() { # in .clang-format, .editorconfig and the prose of READMEs (not tables, code or links)
    local width
    width=$(sed -n 's/^ColumnLimit: //p' .clang-format)
    grep -qx "max_line_length = $width" .editorconfig || return
    python3 - "$width" << 'PYTHON'
import glob, re, sys
wide = []
for path in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *glob.glob("*/**/*.md", recursive=True)]:
    if path.startswith(("build/", "common/setup/docs/")): # these are for Doxygen, with figures
        continue
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), open(path).read(), flags=re.S | re.M)
    wide += [f"{path}:{number}" for number, line in enumerate(text.splitlines(), 1)
             if len(line) > int(sys.argv[1]) and not re.match(r" {4,}|\||#|<|\S+$|`[^`]*`$|\s*[-*]? ?!?\[", line)]
sys.exit("\n".join(wide) or 0)
PYTHON
}
makefiles_can_be_read() {
    [ "$(wc -l < Makefile)" -le 250 ] || { echo "Makefile has $(wc -l < Makefile) lines" && return 1; }
    ! files | grep -E '(^|/)Makefile$|\.mk$' | xargs grep -nE '^.{121}'
}

check "the top level has only the agreed files and folders" top_level
check "the formatter, editors and READMEs agree on one width" one_width
check "the Makefile has at most 250 lines, and no makefile more than 120 columns" makefiles_can_be_read
check "LICENSE is Apache-2.0, word for word" license
check "the files for editors are valid JSON" reads_json
check "workflows, editors and CONTRIBUTING run only targets that make has" targets_exist
check "make alone builds the kit and prints the help" make_alone_helps
check "the editor's tasks offer the labs of grader/labs.mk" tasks_know_the_labs
check "the table of labs in the README has the files of grader/labs.mk" readme_lists_the_labs
check "the handout's README says which labs each lab builds on" handout_says_what_labs_stand_on
check "the README has at most 120 lines" readme_is_short
check "make help is one screen of 24 lines and 80 columns" help_is_one_screen
check "make help TOPIC prints that topic alone, and builds nothing" has_topics
check "compile_commands.json describes every lab, and only existing files" describes_every_lab
if command -v clangd > /dev/null; then
    check "clangd reads the labs and the kit without an error" clangd_finds_nothing
else
    echo "skip - clangd reads the labs and the kit: it is not installed"
fi
exit "$failures"
