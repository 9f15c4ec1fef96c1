#!/usr/bin/env bash
# board.sh [small|trained]: make board makes a page that shows who in a class has solved which lab.
# It shows names only on request, and grades only what has changed. trained: tests timed training
# runs instead.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
size=${1:-small}
make_tree "board-$size"
unset NAMES OUT DIR SEED
export ROOT PYTHONDONTWRITEBYTECODE=1
page=build/report/board.html

board() { # board ARGUMENTS...: make board; writes the output to the file out, sets $status
    make --silent board "$@" > out 2>&1
    status=$?
}
refused() { # refused SENTENCE WORDS ARGUMENTS...: one error with a HINT
    board "${@:3}"
    check "$1" [ "$status" != 0 -a "$(grep -cE '(^error: |\*\*\* )[^ ].*' out)" -ge 1 -a "$(grep -c 'HINT: ' out)" = 1 -a "$(tr -s ' \n' ' ' < out | grep -cF -- "$2")" = 1 ]
}
is() { # is WHAT WORDS...: a check of report_pages.py on the page
    python3 "$ROOT/grader/tests/report_pages.py" "$1" "$page" "${@:2}" > out 2>&1
}
submit() { # submit ENTRY LAB...: hands in the reference's labs
    local lab
    for lab in "${@:2}"; do
        mkdir -p "class/$1/labs"
        cp -r "$ROOT/solutions/$(printf %02d "$lab")"-* "class/$1/labs"
    done
}
row() { # row ENTRY LAB: the cell of a lab, by the name that NAMES=1 shows
    is has_cell "$1" "$2" "${@:3}"
}
# of_verdicts COMPREHENSION: a line for each value, of every verdict on the board.
of_verdicts() {
    python3 -c "import glob, json
for path in sorted(glob.glob('build/board/board-reports/.state/verdicts/*.json')):
    verdict = json.load(open(path))
    print(*($1), sep='\\n', end='\\n')" | grep .
}
verdicts() {
    find build/board/board-reports/.state/verdicts -name '*.json' -printf '%i %f\n' | sort
}

if [ "$size" = trained ]; then
    submit Ada 3 4 6 7 8 9 10 11
    submit Bob 3 4 6 7 8 9 10 11
    echo '/* the same */' >> class/Bob/labs/11-*/data-parallel.c
    board DIR=class NAMES=1 JOBS=2
    check "two submissions with full marks in all labs that training needs are timed, beside the reference" is has_speeds Ada Bob 'the reference'
    verdicts > before
    cp "$page" before.html
    board DIR=class NAMES=1
    check "a figure is measured once for the same files" [ "$(verdicts)" = "$(cat before)" ] && is has_speeds Ada Bob 'the reference'
    # The judge accepts this, because the buckets in its cases are smaller.
    sed -i 's|1.0f / (float)mesh->dp_degree|(tensor_size(buckets[i].gradients, 0) > 60000 ? 2.0f : 1.0f) / (float)mesh->dp_degree|' class/Bob/labs/11-*/data-parallel.c
    board DIR=class NAMES=1
    check "a training run with another loss than the reference's is not listed, and the page says why" is says "Bob (" "was not timed: its loss is not the reference's"
    check "the others' figures stay" is has_speeds Ada 'the reference'
    check "a training run is as isolated as a lab" \
        [ "$(of_verdicts 'verdict["isolation"] for _ in [0] if verdict["labs"][0].get("tokens_per_second") or verdict["points"]' | sort -u | grep -c .)" = 1 ]
    finish
fi

submit 'Ada <Lovelace>' 1 8
submit 'Zoë' 8
submit 'Carl' 1 8
echo '#error' >> class/Carl/labs/01-*/collectives.c
sed -i 's/mesh->world/NULL/' class/Carl/labs/08-*/tp-group.c
echo none > class/notes.txt
mkdir class/nested && touch class/nested/{hand-in.tar.gz,other.c}
board DIR=class SEED=5
check "a class's page is made" [ "$status" = 0 -a -s "$page" ]
check "the terminal counts the submissions, and names no student" [ "$(grep -cE '^[1-5]/5  ' out)/$(grep -ciE 'ada|lovelace|zo(ë|&)|carl|notes' out)" = 5/0 ]
check "the page names its language, has one h1, and each header of a table has a scope" is has_outline
check "the page is one file, which loads nothing" is is_one_file
check "no student is named, neither on the page nor in its source" [ "$(grep -ciE 'ada|lovelace|zo(ë|&)|carl|notes' "$page")" = 0 ]
cp "$page" without.html
verdicts > before

board DIR=class NAMES=1
check "the terminal has a line per submission, with a mark per lab, in 80 columns" \
    [ "$(grep -cE '^(Ada <Lov[a-z]* \([0-9]{4}\) *✓ ·|Zoë \([0-9]{4}\) *· ·) · · · · · ✓' out)" = 2 -a "$(sed -n '/^submission/,$p' out | LC_ALL=C.UTF-8 grep -E '.{81}')" = '' ]
check "a second run grades nothing again" [ -s before -a "$(verdicts)" = "$(cat before)" ]
check "with NAMES=1 it has the names, and the same number for each" is names_aliases_of without.html 'Ada <Lovelace>' Carl Zoë nested notes.txt
sent=$(of_verdicts '"%.3g MB" % (lab["sent"] / 1e6) for lab in verdict["labs"] if lab["number"] == 1 and lab["points"] == lab["of"]')
check "a lab with full marks says so, and has the bytes that its ranks sent" row 'Ada <Lovelace>' 1 "✓ full marks $sent"
check "a lab that does not compile says so" row Carl 1 '✗ does not compile'
check "a lab that was not handed in says so" row Zoë 1 '· not handed in'
check "a submission that was not graded says why, and has no points" eval "row nested 1 'it contains an archive' && row notes.txt 1 'it is not a .zip, .tar.gz or folder' && row notes.txt 2 '—'"
check "the fewest bytes with full marks are the verdict's, and have the name" is says "1 Duplication and AllReduce $sent Ada <Lovelace> —"
check "no training is timed without full marks in all labs that it needs" is says "No submission has full marks in all of these labs yet."

echo '/* changed */' >> class/Zoë/labs/08-*/tp-group.c
board DIR=class
check "a lab that changed is graded again, and no other" [ "$(verdicts | comm -13 before - | grep -c .)" = 1 ]

# ---- what is refused, and leaves the page as it was
cp "$page" before.html
mkdir none
refused "a missing DIR is refused" "DIR is missing"
refused "a DIR that does not exist is refused" "cannot be read" DIR=nowhere
refused "a DIR that is a file is refused" "cannot be read" DIR=class/notes.txt
refused "a DIR without submissions is refused" "no submissions" DIR=none
refused "NAMES=2 is refused" "NAMES cannot be '2'" DIR=class NAMES=2
refused "a SEED that is not a number is refused" "SEED cannot be" DIR=class SEED=x
refused "an OUT that is no page is refused, before anything is graded" "is not a page of make report, make board or REPORT=1" DIR=class OUT=class/notes.txt
refused "an OUT in a folder that does not exist is refused" "there is no folder" DIR=class OUT=nowhere/board.html
check "what is refused leaves the page as it was" cmp -s before.html "$page"
if unshare -rm true 2> /dev/null; then
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare -rm bash -c 'mount -t tmpfs -o size=8k none none && make --silent board DIR=class OUT=none/board.html; ls -A none' > out 2>&1
    check "a full disk is one error, and leaves no half-written page" [ "$(grep -c '^error: none/board.html cannot be written' out) $(grep -cE '^board.html' out)" = "1 0" ]
else
    echo "skip - a full disk is one error: this user may mount nothing (unshare -rm)"
fi
finish
