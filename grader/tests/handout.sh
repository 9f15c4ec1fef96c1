#!/usr/bin/env bash
# The handout: it reveals no solution, and grades by itself, in an empty folder and without a
# network. It is made from an instructor's tree, which has solved labs, copies of them and cases.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
unset STACK
make_tree handout
folder=$tree/empty/my\ folder # paths with a blank must work
kit=$folder/balise-student
out=$tree/out

# An instructor's folder: the repository's files, and more.
lay_tree() {
    mkdir -p "$folder"
    cp -r "$ROOT"/{.gitignore,.vscode,.devcontainer} .
    rm grader && cp -r "$ROOT/grader" grader
    cp -r "$ROOT"/solutions/. labs/
    cp solutions/01-*/collectives.c labs/01-duplication-allreduce/collectives.c.1
    cp solutions/06-*/colrow-pair.c labs/06-colrow-pair/hints/old.c
    echo '{"instructors_own": 1}' > grader/cases.local
}
pack() { # pack INDEPENDENT
    make --silent handout INDEPENDENT="$1" > "$out" 2>&1
}
unpack() { # keeps what was built, as if a newer handout were unpacked over an older one
    [ ! -d "$kit/build" ] || mv "$kit/build" "$tree/built"
    rm -rf "$kit"
    tar -C "$folder" -xzf "$tree/build/balise-student.tar.gz"
    [ ! -d "$tree/built" ] || mv "$tree/built" "$kit/build"
}
alike() {
    [ -s "$kit/Makefile" ] || return
    (cd "$folder" && find balise-student -type f | sort) > "$tree/of-tar"
    python3 -c "import sys, zipfile; print('\n'.join(sorted(zipfile.ZipFile(sys.argv[1]).namelist())))" "$tree/build/balise-student.zip" > "$tree/of-zip"
    diff "$tree/of-tar" "$tree/of-zip" > "$out"
}
again_the_same() {
    SOURCE_DATE_EPOCH=1 pack "" && cp "$tree/build/balise-student.tar.gz" "$tree/first" && sleep 1.1 && SOURCE_DATE_EPOCH=1 pack "" && cmp "$tree/first" "$tree/build/balise-student.tar.gz"
}

# No file may contain two lines of one solution, however they are indented, except lines that start
# files or the given layers have too.
without_solutions() {
    [ -s "$kit/Makefile" ] && python3 - "$kit" > "$out" << 'PYTHON'
import glob, os, re, sys
squeeze = lambda text: re.sub(r"\s", "", text)
given = "".join(squeeze(open(file).read()) for file in glob.glob("common/model/serial/*.c"))
found = 0
for solution in sorted(glob.glob("solutions/*/*.c")):
    begins = solution.replace("09-grouped-collectives/grouped-", "01-duplication-allreduce/")
    start = squeeze(open(begins.replace("solutions", "grader/start")).read())
    lines = {squeeze(line) for line in open(solution)}
    lines = {line for line in lines if len(line) >= 20 and line not in start and line not in given}
    assert lines, solution
    for folder, folders, files in os.walk(sys.argv[1]):
        folders[:] = [name for name in folders if name != "build"]
        for file in files:
            text = squeeze(open(os.path.join(folder, file), errors="replace").read())
            shared = [line for line in lines if line in text]
            if len(shared) > 1:
                found += 1
                print(os.path.join(folder, file), "has of", solution, shared)
sys.exit(found > 0)
PYTHON
}
without_the_rest() {
    [ -s "$kit/Makefile" ] && ! (cd "$kit" && find .) | grep -E '/(solutions|mutants|accepts|tests/[^s]|bench/([^cdlprs]|p[^a]|s([^t]|t[^e])))|cases\.local|\.c\.[0-9]|\.tar|\.zip|\.git(/|$)' > "$out" &&
        ! grep -rl instructors_own "$kit/grader" > "$out"
}

no_reference_is_named() {
    ! grep -nE "reference's labs? |reference solutions|balises? .* de la référence" "$kit"/labs/*/README*.md > "$out" && grep -q '^    make grade LAB=6 .*# on your own' "$kit"/labs/06-*/README.md
}

help_is_true() {
    local target
    (cd "$kit" && { make --silent help && make --silent help train; } > "$out" && make -pqr hint > "$tree/database" 2> /dev/null)
    while read -r target; do
        grep -qE "^$target:" "$tree/database" || return
    done < <(sed -nE 's/^  make ([a-z-]+).*/\1/p' "$out" | grep -vx help | sort -u)
    [ "$(grep -c '' "$out")" -gt 30 ] && ! grep -qE 'make (test|gradebook|bench|handout|solution|help class|help develop)' "$out"
}

# Each text's commands: lines of code, and commands within sentences.
commands_exist() {
    (cd "$kit" && make -pqr hint > "$tree/database" 2> /dev/null)
    python3 - "$kit" "$tree/database" > "$out" << 'PYTHON'
import glob, re, subprocess, sys
kit, database = sys.argv[1], open(sys.argv[2], encoding="utf-8").read()
texts = sorted(glob.glob(f"{kit}/**/*.md", recursive=True) + [f"{kit}/common/setup/settings"])
targets = {"help", *re.findall(r"^([a-z-]+):", database, re.M)}
refused = set(re.search(r"for name in (.*); do\n +! goal", open(f"{kit}/common/setup/check.sh", encoding="utf-8").read())[1].split())
wrong, named, settings = [], set(), set()
for path in texts:
    text = open(path, encoding="utf-8").read()
    commands = re.findall(r"^(make .*?)(?:  |$)" if path.endswith("settings") else r"^    (make [^#\n]*)|`(make [^`]*)`", text, re.M)
    for command in ("".join(found) for found in commands):
        target = re.match(r"make (?:-\S+ )*([a-z-]*)", command)[1]
        used = re.findall(r"\b([A-Z][A-Z0-9_]*)=", command)
        named.add(target)
        settings.update(used)
        if target and (target not in targets or target in refused) or "SOLUTION" in used or "STACK=solutions" in command:
            wrong.append(f"{path.removeprefix(kit)}: {command}")
unknown = subprocess.run(["common/setup/check.sh", "--unknown", *sorted(settings)], cwd=kit, capture_output=True, text=True).stdout
print(*wrong, unknown, sorted(named), sep="\n")
sys.exit(bool(wrong or unknown.strip()) or len(named) < 20)
PYTHON
}
an_editor_has_its_files() {
    (cd "$kit" && cat .gitignore .devcontainer/Dockerfile > /dev/null &&
        python3 -) > "$out" 2>&1 << 'PYTHON'
import json, re, sys
tasks = json.load(open(".vscode/tasks.json", encoding="utf-8"))
container = json.load(open(".devcontainer/devcontainer.json", encoding="utf-8"))
labs = re.findall(r"^\$\(call add_lab,(\d+),", open("grader/labs.mk", encoding="utf-8").read(), re.M)
print(tasks["inputs"], labs, container)
assert tasks["inputs"][0]["options"] == labs != []
user = re.findall(r"^USER (\w+)$", open(".devcontainer/Dockerfile", encoding="utf-8").read(), re.M)
assert user == [container["remoteUser"]] != ["root"]
assert any(argument.startswith("--shm-size=") for argument in container["runArgs"])
PYTHON
}
# The editor's problem matcher finds file, line, severity and message of what make grade prints.
problems_are_found() {
    cp "$kit/labs/02-colwise-linear/colwise-linear.c" "$tree/kept.c"
    sed -i '$a int balise_unused(void) { int x; return 0 }' "$kit/labs/02-colwise-linear/colwise-linear.c"
    within make grade LAB=2
    mv "$tree/kept.c" "$kit/labs/02-colwise-linear/colwise-linear.c"
    # As README.md shows them: what the judge says of a line in the running lab.
    echo '      outputs, so its gradient of x is only a partial sum, at colrow-pair.c:23' >> "$out"
    python3 - "$kit" "$out" << 'PYTHON'
import json, re, sys
from glob import glob
kit, out = sys.argv[1:]
tasks = [task for task in json.load(open(f"{kit}/.vscode/tasks.json", encoding="utf-8"))["tasks"] if task["problemMatcher"]]
assert len(tasks) == 2
for task in tasks:
    for matcher, below, severity in zip(task["problemMatcher"], (kit, f"{kit}/labs/*"), ("error", "")):
        pattern = matcher["pattern"]
        found = [re.search(pattern["regexp"], line) for line in open(out, encoding="utf-8").read().splitlines()]
        found = [match for match in found if match]
        assert found and all(len(glob(f"{below}/{match[pattern['file']]}")) == 1 and int(match[pattern["line"]]) for match in found)
        assert not severity or severity in {match[pattern["severity"]] for match in found}
PYTHON
}
clangd_has_the_commands() {
    rm -f "$kit/build/compile_commands.json"
    within make grade LAB=1 && false
    grep -q '"file": "labs/01-duplication-allreduce/collectives.c"' "$kit/build/compile_commands.json"
}

offline=()
# Open MPI needs at least the loopback device.
if unshare -n ip link set lo up 2> /dev/null; then offline=(unshare -n); else echo "skip - the handout works offline: this user cannot have a network namespace (unshare -n, ip)"; fi
# -O0 builds the kit in a third of the time; speed does not matter here.
within() { # within COMMAND...: runs it in the unpacked folder, without a network if possible
    (cd "$kit" && OPTIMISE=-O0 "${offline[@]}" bash -c "${offline[*]:+ip link set lo up;} exec \"\$@\"" bash "$@") > "$out" 2>&1
}
scores() { # scores SCORE COMMAND...
    within "${@:2}"
    grep -qx "Score: $1" "$out"
}
skeletons_score_nothing() {
    scores 0/100 make -j2 grade && ! grep -q 'does not build' "$out" && grep -q '^Lab 2 .*not run' "$out" &&
        grep -q 'it builds on lab 1, which is not started' "$out"
}
all_that_it_waits_for_is_named() {
    cp solutions/07-*/*.c "$kit/labs/07-block-classifier/"
    scores 0/9 make -j2 grade LAB=7 && grep -q 'it builds on labs that are not started: 1, 4, 6' "$out"
}
the_rest_of_lab_11_is_graded() {
    cp solutions/08-*/*.c "$kit/labs/08-tp-group/"
    cp solutions/10-*/*.c "$kit/labs/10-dp-group/"
    cp solutions/11-*/*.c "$kit/labs/11-data-parallel/"
    scores 12/15 make -j2 grade LAB=11 && grep -qE '^  . layout +0/3  to do' "$out" && grep -q 'without labs 3, 4, 6, 9, which you have not started' "$out"
}
own_labs_score() {
    cp -r solutions/. "$kit/labs/"
    scores 100/100 make -j2 grade && ! grep -q reference "$out"
}
asks_a_cluster() {
    within make trace LAB=11 SEED=1 CLUSTER=dgx-h200 && grep -q 'if the sums over replicas followed the backward pass' "$out"
}
a_lab_that_fails_is_named() {
    sed -i 's/return group_all_reduce(mesh->world, dy)/return dy/' "$kit/labs/01-duplication-allreduce/collectives.c"
    within make grade LAB=6
    grep -q 'look there first: lab 1' "$out" && grep -qE 'again: make grade LAB=6 SEED=[0-9]+ CASE=' "$out"
}
errors() { # errors WORDS COMMAND...
    ! within "${@:2}" && grep -qF "$1" "$out" && grep -q HINT "$out"
}
small=(LAYERS=1 HIDDEN_DIM=64 HEADS=4 SEQ=16 BATCH_SIZE=16)
trains() {
    within make train NTASKS=2 TP=2 STEPS=2 "${small[@]}" && grep -q 'test accuracy' "$out"
}
first_run() {
    within make train NTASKS=1 TP=1 STACK=serial STEPS=2 "${small[@]}" && grep -q 'test accuracy' "$out"
}
hands_in() {
    within make hand-in NAME="Ada Lovelace" && [ -s "$kit/build/hand-in-files/Ada Lovelace.tar.gz" ]
}
is_of_this_kit() {
    make --silent build/generated/kit_version.h > "$out" 2>&1
    tar xzf "$kit/build/hand-in-files/Ada Lovelace.tar.gz" -O manifest.json >> "$out"
    grep -qF "\"kit\": $(sed -E 's/.* //' build/generated/kit_version.h)" "$out"
}
notices_a_change() {
    echo '/* mine */' >> "$kit/common/base/problem.c"
    within make grade LAB=10
    grep -q 'differs from the handout: common/base/problem.c' "$out" && grep -qx 'Score: 7/7' "$out"
}
of_the_newest_handout() { # a newer handout with older files, unpacked over a build
    unpack
    cp solutions/10-*/*.c "$kit/labs/10-dp-group/"
    (cd "$kit" && sed -i 's/\[GROUPS\] = 7/[GROUPS] = 9/' grader/labs/lab10.c && touch -d 2001-01-01 grader/labs/lab10.c && echo >> grader/kit.sums)
    within make grade LAB=10
    grep -q '^Score: .*/9$' "$out"
}
writes_formats() {
    scores 0/9 make -j2 grade LAB=1 FORMAT=junit OUT=grades.xml && grep -q '<testsuite name="Lab 1' "$kit/grades.xml"
}
lines_are_told() {
    grep -q 'TODO(1) in duplication_forward, collectives.c:[0-9]' "$out"
}
stands_alone() {
    cp solutions/06-*/*.c "$kit/labs/06-colrow-pair/"
    scores 10/10 make -j2 grade LAB=6
}
for_both_machines() {
    file "$kit"/grader/given/*/1.o > "$out" 2>&1
    [ "$(readelf -hW "$kit"/grader/given/*/1.o | tee "$out" | grep -cE 'Machine: +(AArch64|Advanced Micro Devices X86-64)')" = 2 ] && ! readelf -SW "$kit"/grader/given/*/1.o | grep -q debug
}

lay_tree
sums_say_nothing() {
    grader/handout/sums.sh . 2> "$out" > /dev/null && [ ! -s "$out" ]
}
check "every file that verdicts depend on exists" sums_say_nothing
check "a handout is made from an instructor's folder" pack ""
unpack
check "the archive for Windows holds the same files" alike
check "two builds give the same archive, byte for byte" again_the_same
check "no file in it has two lines of a solution" without_solutions
check "a handout has no wrong answers, tests, copies or instructor's cases" without_the_rest
check "the texts of a handout name no reference" no_reference_is_named
check "every command and setting that its texts name exists in it" commands_exist
check "in the handout, labs are not started, and those that build on others wait" skeletons_score_nothing
check "lines of labs are found in a folder with a blank in its name" lines_are_told
check "in the handout, too, FORMAT writes verdicts into OUT" writes_formats
check "a lab that waits for several labs names them all" all_that_it_waits_for_is_named
check "with labs 8 and 10 alone, lab 11 is graded except for its layout" the_rest_of_lab_11_is_graded
check "the model before any lab trains on one rank" first_run
check "with every lab solved it gives full marks, on the student's own labs alone" own_labs_score
check "make trace CLUSTER= says what their steps cost on a cluster" asks_a_cluster
check "the labs train" trains
check "the labs are handed in" hands_in
check "a hand-in has the version of the instructor's kit" is_of_this_kit
check "a changed kit is noticed, and the lab is graded" notices_a_change
check "make help lists only existing commands" help_is_true
check "a handout has the editor's and the container's files, for a user who is not root" an_editor_has_its_files
check "an editor finds the compiler's messages in what make grade prints" problems_are_found
check "after make grade, clangd finds the compile commands" clangd_has_the_commands
check "a command that is not in the handout is one error" errors "make bench is not part of the handout" make bench
check "SOLUTION=1 is one error" errors "the handout contains no solutions" make grade SOLUTION=1
check "STACK=solutions is one error" errors "the handout contains no solutions" make train STACK=solutions
check "the report on a lab names a failing lab on which it builds" a_lab_that_fails_is_named
if command -v aarch64-linux-gnu-gcc > /dev/null; then
    check "INDEPENDENT=1 makes a handout with f and g in it" pack 1
    check "a newer handout unpacked over an older one grades, however old its files are" of_the_newest_handout
    check "lab 6 is graded without a lab 1 of the student" stands_alone
    check "f and g come as objects for x86-64 and aarch64, without debugging information" for_both_machines
    unpack
    check "that handout, too, has no file with two lines of a solution" without_solutions
else
    echo "skip - INDEPENDENT=1: there is no compiler for aarch64"
    check "a newer handout unpacked over an older one grades, however old its files are" of_the_newest_handout
fi
finish
