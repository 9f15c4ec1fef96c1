#!/usr/bin/env bash
# handout.sh BUILD [INDEPENDENT]: packs what students get, as BUILD/balise-student.tar.gz and .zip:
# the kit without solutions, tests, wrong answers and the instructor's own cases. Start files are in
# labs/ and, for starting over, in grader/start. INDEPENDENT: also f and g as objects for x86-64
# and aarch64, so that labs can be done in any order.
set -euo pipefail
build=$1 independent=${2:-}
name=balise-student
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/$name
labs=$HANDED_OUT

# shellcheck source-path=SCRIPTDIR source=../../common/base/say.sh
source "$(dirname "$0")/../../common/base/say.sh"

put() { # put FILE...: copies files to the same paths in the handout
    local file
    for file in "$@"; do
        install -D -m "$([ -x "$file" ] && echo 755 || echo 644)" "$file" "$stage/$file"
    done
}

put_runtime() {
    local file files
    mapfile -t files < <(find common/ -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.sh' -o -name '*.mk' -o -name '*.awk' -o -path common/setup/settings -o -path common/setup/packages \) \
        -not -path '*/tests/*' -not -path '*/bench/*' -not -path '*/setup/docs/*' -not -path '*/help_*' | sort)
    put "${files[@]}"
    put common/tests/stop_at_misuse.c # stands in for the runtime's errors in small programs
    # Removes from the help what the handout lacks: topics, commands, and headings without content.
    awk '/^== (class|develop)$/ { exit }
        /^[^ ]/ { skip = /^make (layouts|solution|help class|help develop) / }
        skip { next }
        { sub(/mine\|solutions/, "mine"); print }' \
        common/setup/settings > "$stage/common/setup/settings"
    put grader/{labs.mk,calls.h,label.h,protocol.h,enclose.c} grader/{compile-lab,lab-object,limits,link-runner,link-train,start-lab}.sh grader/lab-calls.txt grader/stack.py grader/grader.mk grader/gradebook/gradebook.mk
    put grader/judge/*.[ch] grader/judge/*/*.[ch] grader/judge/report/formats/*.[ch] grader/labs/*.[ch] grader/labs/*/*.[ch] grader/runner/*.[ch]
    put grader/gradebook/{hand_in,manifest,files}.c grader/gradebook/{book,manifest,files}.h
    put common/bench/{clusters,cost,dry,pace,rows,steps}.py common/bench/clusters/*.json # make trace CLUSTER=
    put grader/handout/{sums,changed}.sh grader/loop/*.{py,mk} common/plot/*.py common/page/*.{py,html,css,js}
    put data/reviews/* data/stories/*.txt data/stories/*/* data/download.sh data/archive_to_csv.py Makefile
    install -m 644 grader/handout/README.md "$stage/README.md"
    install -m 644 grader/handout/README.fr.md "$stage/README.fr.md"
    put common/po/* common/base/{language,output}.py common/tensor/tensor_gdb.py labs/GLOSSARY.md
    [ -z "$independent" ] || sed -i 's/^A lab builds on your own earlier ones: 2, 3, 4 and 6 on 1; 5 on 1 and 2; 7 on 1, 4 and 6;$/The kit has f and g, compiled: you can do labs 2, 3, 4 and 6 before 1. The others build on your own earlier ones: 5 on 2; 7 on 4 and 6;/' "$stage/README.md"
    [ -z "$independent" ] || sed -i 's/^Une balise repose sur les précédentes : 2, 3, 4 et 6 sur 1 ; 5 sur 1 et 2 ; 7 sur 1, 4 et 6 ;$/f et g sont déjà dans le kit, compilés : les balises 2, 3, 4 et 6 peuvent se faire avant la 1. Les autres reposent sur vos balises précédentes : 5 sur 2 ; 7 sur 4 et 6 ;/' "$stage/README.fr.md"
    put .gitignore .vscode/* .devcontainer/*
    [ ! -e LICENSE ] || put LICENSE
}

put_labs() {
    local lab
    for lab in $labs; do
        put "labs/${lab%/*}"/README{,.fr}.md "labs/${lab%/*}"/hints/*.md
        # Without a reference, labs build on the student's own, and make layouts has nothing to
        # train.
        sed -Ei '/# (on the reference.s labs? |(sur|avec) (la|les) balises? .* de la référence)/d; /^.make layouts. /,/^$/d; s/(make grade LAB=[0-9]+) STACK=mine/\1           /; /^\((If some lab is not done|Si l.une des balises n.est pas faite)/,/\)$/d' \
            "$stage/labs/${lab%/*}"/README{,.fr}.md
        [[ $lab != 09-* ]] || continue # it begins from the student's own lab 1
        put "grader/start/$lab"
        install -m 644 "grader/start/$lab" "$stage/labs/$lab"
    done
}

# The solved lab 1 for this architecture, compiled like any lab, without line numbers.
put_given() { # put_given MACHINE PREFIX
    local tools=$work/tools-$1 out=$stage/grader/given/$1 tool
    command -v "$2gcc" > /dev/null || give_up "$(said 'there is no compiler for %s: %s' "$1" "$2gcc")" \
        "$(said "apt-get install gcc-%s, or leave out INDEPENDENT=1, so that each lab builds on the student's own earlier ones" "${2%-}")"
    mkdir -p "$tools" "$out"
    for tool in as objcopy objdump size addr2line strip; do
        ln -sf "$(command -v "$2$tool")" "$tools/$tool"
    done
    PATH=$tools:$PATH CC="$2gcc" CFLAGS="$GIVEN_CFLAGS${2:+ -I/usr/${2%-}/include}" grader/compile-lab.sh 1 "solutions/${labs%% *}" "$out/1.o" "$GIVEN_EXPORTS" ||
        give_up "$(said 'lab 1 does not compile for %s: %s' "$1" "$(cat "$out/1.o.failed")")" "make grade SOLUTION=1 LAB=1"
    "$tools/strip" -g "$out/1.o"
}

pack() {
    local archive
    grader/handout/sums.sh "$stage" > "$work/kit.sums"
    mv "$work/kit.sums" "$stage/grader/kit.sums"
    find "$stage" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || date +%s)}" {} +
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n > "$build/$name.tar.gz.new"
    rm -f "$build/$name.zip.new"
    (cd "$work" && find "$name" -type f | sort | TZ=UTC zip -q -X -@ "$work/out.zip")
    mv "$work/out.zip" "$build/$name.zip.new"
    for archive in "$build/$name.tar.gz" "$build/$name.zip"; do
        mv "$archive.new" "$archive"
        tell '%-32s %4d kB, %d files' "$archive" $(($(stat -c %s "$archive") / 1000)) "$(find "$stage" -type f | wc -l)"
    done
}

command -v zip > /dev/null || give_up "$(say 'zip is not installed')" "$(say 'make setup installs it')"
put_runtime
put_labs
if [ -n "$independent" ]; then
    put_given "$(uname -m)" ''
    if [ "$(uname -m)" = x86_64 ]; then put_given aarch64 aarch64-linux-gnu-; else put_given x86_64 x86-64-linux-gnu-; fi
fi
pack
