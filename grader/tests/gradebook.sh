#!/usr/bin/env bash
# gradebook.sh [small|all]: handing in, and grading a folder of submissions of every kind
# (submissions.py): the table is right; after a kill and a restart it is the same; labs that did not
# change are not graded again. Checks the table and the reports.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
export ROOT
size=${1:-small}
make_tree "gradebook-$size"
make --silent build/gradebook build/hand-in build/generated/kit.txt > out 2>&1 || cat out
submissions=$ROOT/grader/tests/submissions.py
check "the submissions are created" python3 "$submissions" make many "$size"
verdicts() { # verdicts [TABLE]
    find "${1:-grades}-reports/.state/verdicts" -name '*.json' -printf '%i %f\n' 2> /dev/null | sort
}

# ---- handing in
refused() { # SENTENCE, WORDS, ARGUMENTS...
    local sentence=$1 words=$2
    shift 2
    "$@" > out 2>&1
    [ "$(grep -c '^error: ' out)" = 1 ] && grep -q '^  HINT: ' out && says "$words"
    check "$sentence" [ $? = 0 ]
}
refused "a missing NAME is refused" "NAME is missing" env NAME=machine make --silent hand-in
for name in ../x .x -x 'a/b' '=x' 'a;b' $'a\nb' $'\xff' "$(printf 'x%.0s' {1..65})"; do
    refused "NAME='$(printf %q "$name")' is refused" "this is not a valid NAME" build/hand-in --name "$name" --out x.tar.gz
done
check "a refused hand-in writes no file" [ ! -e x.tar.gz ]
copy_solution 1
copy_solution 2
make --silent hand-in NAME=" Zoë d'Été-天 " OUT="zoë.tar.gz" > out 2>&1
check "hand-in lists the labs that were not started" grep -qE '^   3 .* not started$' out
check "hand-in lists a started lab" grep -qE '^   2 .* bytes$' out
cp -r labs with-helper
echo '#include "helper.h"' | tee with-helper/02-colwise-linear/helper.h >> with-helper/02-colwise-linear/colwise-linear.c
build/hand-in --name x --labs with-helper --out helper.tar.gz > helper.out 2>&1
check "hand-in names a header that is not handed in" grep -q 'helper.h is not handed in, so the lab will not build' helper.out
check "hand-in says which lab has no file" grep -qE '^   9 .* no file$' out
check "the archive has labs/NN-slug/FILE.c and a manifest" \
    [ "$(tar tzf zoë.tar.gz | grep -c '^labs/[0-9][0-9]-[a-z0-9-]*/[a-z0-9-]*\.c$') $(tar tzf zoë.tar.gz | tail -1)" = "$(find labs -name '*.c' -printf x | wc -c) manifest.json" ]
mkdir handed damaged
tar xzf zoë.tar.gz -C damaged
echo "/* later */" >> damaged/labs/01-*/collectives.c
mkdir -p odd/09-grouped-collectives && mkfifo odd/09-grouped-collectives/grouped-collectives.c
refused "a FIFO in place of a lab is refused" "it cannot be read: it is not a file" timeout 20 build/hand-in --name x --labs odd --out x.tar.gz
cp "$(lab_file 1)" lab.kept
tar czf other.tar.gz lab.kept
for name in "$(lab_file 1)" other.tar.gz; do
    refused "a hand-in does not replace ${name##*/}" "the file exists, and is not a hand-in" build/hand-in --name x --out "$name"
done
check "the lab is as it was" cmp -s lab.kept "$(lab_file 1)"
build/hand-in --name "Zoë d'Été-天" --out zoë.tar.gz > out 2>&1
check "an earlier hand-in is replaced" [ $? = 0 ]
refused "an OUT that cannot be written is refused" "cannot be written" build/hand-in --name x --out none/x.tar.gz

# ---- grading many
refused "a missing DIR is refused" "DIR is missing" make --silent gradebook OUT=grades.csv
refused "a missing OUT is refused" "OUT is missing" make --silent gradebook DIR=many
refused "a DIR that does not exist is refused" "cannot be read" build/gradebook --dir none --out none.csv
check "a refused gradebook leaves nothing of OUT" [ -z "$(find . -maxdepth 1 -name 'none*')" ]
refused "a DIR without submissions is refused" "no submissions" build/gradebook --dir handed --out none.csv
refused "an OUT that is a folder is refused" "cannot be written" build/gradebook --dir many --out many
refused "a table does not replace a submission" "the file exists, and is not a table of grades" build/gradebook --dir many --out zoë.tar.gz
check "OUT may be beside the submissions: its table and reports are none, however often it runs" [ "$(mkdir -p beside && cp zoë.tar.gz beside && for _ in 1 2; do build/gradebook --dir beside --out beside/grades.csv --seed 5 > out 2>&1 || cat out; done; wc -l < beside/grades.csv)" = 2 ]
check "the summary has one line for the labs that nobody started" [ "$(grep -c '^Lab ' beside/grades-reports/summary) $(grep -c '^Not started by anybody: labs 3-11$' beside/grades-reports/summary)" = "2 1" ]
mkdir french
cp zoë.tar.gz french
for language in fr_FR.UTF-8 C.UTF-8; do
    LANG=$language TEXTDOMAIN=balise TEXTDOMAINDIR=$BUILD/locale build/gradebook --dir french --out french/grades.csv --seed 5 > out 2>&1
    cp french/grades-reports/zoë.tar.gz.txt "$language.txt"
done
check "a verdict in one reader's language is not shown to a reader of another" \
    [ "$(grep -c '^Balise 2 ' fr_FR.UTF-8.txt) $(grep -c '^Lab 2 ' C.UTF-8.txt) $(grep -c '^Balise' C.UTF-8.txt)" = "1 1 0" ]
# In gcc 12, 60,000 such lines are 120,000 warnings, which take 40 seconds.
mkdir -p long/labs/02-colwise-linear
yes 'x;' | head -60000 > long/labs/02-colwise-linear/colwise-linear.c
begin=$SECONDS
build/gradebook --dir long --out long.csv --seed 5 > out 2>&1
check "a lab with thousands of errors takes seconds, and its report is short" [ $((SECONDS - begin)) -lt 15 -a "$(wc -c < long-reports/labs.txt)" -lt 3000 ]
check "the report shows the first error with its line and a caret" eval "grep -A 2 'colwise-linear.c:1:1: error: ' long-reports/labs.txt | tail -1 | grep -q '^ *| ^$'"
# A limit that ends a build, as on a loaded machine: the next gradebook tries again.
mkdir stuck slow
printf '#!/bin/sh\nsleep 30\n' > stuck/readelf
chmod +x stuck/readelf
cp zoë.tar.gz slow
COMPILE_SECONDS=1 PATH=$PWD/stuck:$PATH build/gradebook --dir slow --out slow.csv --seed 5 > out 2>&1
check "a lab whose build a limit ended has no points" grep -q '",0,0,0,.*does not build: labs 1' slow.csv
build/gradebook --dir slow --out slow.csv --seed 5 > out 2>&1
check "the next gradebook grades it again" grep -q '"20[0-9T:-]*Z",9,9,0,' slow.csv
limited() { (ulimit -f 0 && exec "$@") 2>&1 | cat; }
refused "a gradebook that may write no file is one error" "File too large" limited build/gradebook --dir beside --out beside/grades.csv
check "the table of an earlier run stays" [ "$(wc -l < beside/grades.csv)" = 2 ]
refused "JOBS=0 is refused" "JOBS cannot be" build/gradebook --dir many --out none.csv --jobs 0
refused "a SEED that is not a number is refused" "SEED cannot be" build/gradebook --dir many --out none.csv --seed x
refused "a SEED beyond 64 bits is refused" "SEED cannot be" build/gradebook --dir many --out none.csv --seed 99999999999999999999

# Kills the gradebook once some verdicts exist.
build/gradebook --dir many --out grades.csv --seed 5 --jobs 2 > out 2>&1 &
gradebook=$!
until [ "$(verdicts | wc -l)" -ge 3 ] || ! kill -0 "$gradebook" 2> /dev/null; do sleep 0.1; done
refused "a second gradebook with the same OUT is refused" "another make gradebook" build/gradebook --dir many --out grades.csv
kill -KILL "$gradebook" 2> /dev/null
wait "$gradebook" 2> /dev/null
check "killed, it leaves no partial table" [ ! -e grades.csv ]
verdicts > before
make --silent gradebook DIR=many OUT=grades.csv JOBS=2 > out 2>&1
status=$?
check "resumed, it completes" [ "$status" = 0 ]
check "resumed, it keeps the seed" grep -qx 'seed 5' out
check "resumed, it keeps finished verdicts" [ -s before ] && [ -z "$(verdicts | comm -23 before -)" ]
[ "$status" = 0 ] || sed 's/^/    | /' out
python3 "$submissions" check many grades.csv "$size" | tee words
check "every row of the table is checked" [ "${PIPESTATUS[0]}" = 0 ]
failures=$((failures + $(grep -c '^not ok' words)))
check "each submission has a report" [ "$(find grades-reports -maxdepth 1 -name '*.txt' -printf x)" = "$(find many -mindepth 1 -maxdepth 1 -printf x)" ]
check "a report has the reason and the command" grep -rqF 'make grade LAB=2 SEED=5' grades-reports/wrong.txt
check "a report has no control characters" [ -z "$(grep -lrP '[\x00-\x08\x0b-\x1f\x7f]' --include='*.txt' grades-reports)" ]
check "a report says that a lab printed, and names no removed folder" \
    [ "$(grep -c "^  printed: [0-9]* lines$" grades-reports/prints.txt)" = 1 -a -z "$(grep -lr gradebook-work --include='*.txt' grades-reports)" ]
check "the summary counts a lab's commonest causes" grep -qE '^  +[0-9]+  ' grades-reports/summary
counts_add_up() { # full marks, less, not started, not handed in and no result, of each lab that somebody started
    awk -v students="$(($(grep -c '' grades.csv) - 1))" '/^  .* not handed in, / { labs++; missing += $9; wrong += $1 + $4 + $6 + $9 + $13 != students }
        END { exit !(labs > 1 && missing > 0 && wrong == 0) }' grades-reports/summary
}
check "the summary counts each student once for each lab, some as not handed in" counts_add_up
check "no line of the summary is longer than 80 columns" eval '! LC_ALL=C.UTF-8 grep -E ".{81}" grades-reports/summary'
check "nothing was written outside" [ ! -e ../outside ] && [ ! -e outside ] && [ ! -e /tmp/balise-outside ]
check "the build areas are removed" [ -z "$(find build/gradebook-work -mindepth 2 2> /dev/null)" ]
[ "$size" = small ] || finish

identical() { # identical ENTRY: what the table says of its files
    sed -nE "s/^\"[^\"]*\",\"$1\",.*\"([^\"]*)\",\"[^\"]*\"\r$/\1/p" grades.csv
}
check "the column 'identical' names who has the same file for which labs" \
    [ "$(identical wrong)|$(identical without\ labs.zip)|$(identical prints)" = "right.tar.gz: lab 1; without labs.zip: lab 1|right.tar.gz: labs 1, 2; wrong: lab 1|" ]
check "the summary counts them, and no student's report names them" \
    [ "$(grep -c '^8 submissions have files identical to another' grades-reports/summary) $(cat grades-reports/*.txt | grep -c 'identical')" = "1 0" ]
cp grades.csv resumed.csv
build/gradebook --dir many --out other.csv --seed 5 --jobs 1 > out 2>&1
check "an uninterrupted gradebook ends with the same table" cmp -s resumed.csv other.csv
verdicts > before
build/gradebook --dir many --out grades.csv > out 2>&1
check "a second run grades nothing again" [ "$(verdicts)" = "$(cat before)" ] && cmp -s resumed.csv grades.csv
alike() { sed -nE '2,$s/^"[^"]*","([^"]*)",.*"([^"]+)"\r$/\1|\2/p' "$1"; }
check "the column 'alike' names a copy under other names for its lab, and no two answers that were written apart" \
    [ "$(alike grades.csv | LC_ALL=C sort | tr '\n' ';')" = "disguised ring|ring: lab 1 (100%);ring|disguised ring: lab 1 (100%);" ]
check "the summary counts them, and claims no copying" \
    [ "$(grep -A 1 "^2 submissions have labs like another's" grades-reports/summary | grep -c 'see the column "alike"; compare them')" = 1 ]
# Ctrl-C, as a terminal sends it: running jobs end and leave nothing; finished verdicts are kept.
mkdir few
cp -r many/right.tar.gz many/wrong few
env --default-signal=INT build/gradebook --dir few --out few.csv --seed 5 --jobs 1 > out 2>&1 &
gradebook=$!
until [ "$(verdicts few | wc -l)" -ge 2 ] || ! kill -0 "$gradebook" 2> /dev/null; do sleep 0.1; done
kill -INT "$gradebook"
wait "$gradebook"
status=$?
check "interrupted, it says how far it got and how to continue" \
    [ "$status" = 130 -a "$(grep -cE '^stopped after [2-9] of [0-9]+ labs;|HINT: the same command continues' out)" = 2 ]
check "an interrupted gradebook leaves no build areas" [ -z "$(find build/gradebook-work -mindepth 2 2> /dev/null)" ]
build/gradebook --dir few --out few.csv > out 2>&1
without_others() { sed 's/"[^"]*","[^"]*"\r$//' "$1"; } # the last columns are about the other submissions
check "an interrupted gradebook loses no verdict" [ "$(grep -cxFf <(without_others few.csv) <(without_others resumed.csv))" = 3 ]
verdicts few > before
build/gradebook --dir few --out few.csv --seed 6 --jobs 2 > out 2>&1
check "a different seed grades everything again" [ "$(verdicts few | wc -l)" -ge "$((2 * $(wc -l < before)))" ]
mv many/wrong taken-out
build/gradebook --dir many --out grades.csv > out 2>&1
check "the report of a removed submission is deleted, and no other" \
    [ ! -e grades-reports/wrong.txt -a "$(find grades-reports -maxdepth 1 -name '*.txt' -printf x)" = "$(find many -mindepth 1 -maxdepth 1 -printf x)" ]
mv taken-out many/wrong
build/gradebook --dir many --out grades.csv > out 2>&1
verdicts > before
echo "/* changed */" | tee -a many/wrong/labs/02-*/*.c > out
build/gradebook --dir many --out grades.csv > out 2>&1
check "a lab that changed is graded again, and no other" [ "$(verdicts | wc -l)" = "$(($(wc -l < before) + 1))" ]

# ---- how they were isolated
mkdir one
cp -r many/wrong one/wrong
refused "an invalid SANDBOX is refused" "SANDBOX cannot be" make --silent gradebook DIR=one OUT=bare.csv SANDBOX=maybe
make --silent gradebook DIR=one OUT=bare.csv SEED=5 SANDBOX=off > out 2>&1
check "without a sandbox, the summary says so once" \
    [ "$(grep -cxF 'no sandbox here (switched off): the ranks ran with resource limits only: 2 labs' bare-reports/summary)" = 1 ]
check "without a sandbox, each verdict says so" [ "$(grep -lr 'switched off' bare-reports/.state/verdicts --include='*.json' | wc -l)" = 2 ]
check "a report does not repeat at each lab that there was no sandbox" [ "$(grep -c 'sandbox' bare-reports/wrong.txt)" = 0 ]
walls=$(unshare --user --map-root-user true 2>&1)
if [ -z "$walls" ]; then
    make --silent gradebook DIR=one OUT=bare.csv SEED=5 SANDBOX=on > out 2>&1
    check "SANDBOX=on regrades labs that were graded without a sandbox" \
        [ "$(grep 'the ranks ran' bare-reports/summary)" = "the ranks ran in a sandbox: 2 labs" ]
    alone() { # without namespaces
        # shellcheck disable=SC2016 # the inner shell expands it
        unshare --user --map-root-user bash -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"' bash "$@"
    }
    refused "SANDBOX=on is refused if there is no sandbox, before anything is graded" "there is no sandbox here (namespaces" \
        alone build/gradebook --dir one --out walls.csv --sandbox on
    check "a refused SANDBOX=on leaves no file" [ ! -e walls-reports ]
    alone build/gradebook --dir one --out walls.csv --seed 5 > out 2>&1
    check "without a sandbox, there is a warning before the first submission" \
        grep -q '^warning: no sandbox here (namespaces' <(head -1 out)
    check "without a sandbox, the summary has a line about it" grep -q '^no sandbox here (namespaces.*: 2 labs$' walls-reports/summary
else
    echo "skip - SANDBOX=on in a gradebook: $walls"
fi

# The gradebook accepts what make hand-in packs.
rm -rf "$tree/handed"/*
cp zoë.tar.gz handed/zoë.tar.gz
cp -r damaged handed/damaged
mkdir handed/old && tar xzf zoë.tar.gz -C handed/old && sed -Ei 's/"kit": "[^"]*"/"kit": "1.0+01d"/; s/"name": "[^"]*"/"name": "Old"/' handed/old/manifest.json
mkdir "handed/Mo O'Dle_77_assignsubmission_file_" "handed/Two_78_assignsubmission_file_"
(mkdir -p moodle && cd moodle && cp -r ../damaged/labs . && rm -f ../moodle.tar.gz && tar czf ../moodle.tar.gz labs)
cp moodle.tar.gz "handed/Mo O'Dle_77_assignsubmission_file_/my labs.tar.gz"
cp moodle.tar.gz "handed/Two_78_assignsubmission_file_/a.tar.gz" && cp moodle.tar.gz "handed/Two_78_assignsubmission_file_/b.tar.gz"
echo damaged > handed/$'turned\u202egpj.zip'
build/gradebook --dir handed --out "handed in.csv" --seed 5 > out 2>&1
check "the name of an archive cannot turn the direction of text" \
    [ "$(LC_ALL=C grep -hc $'^"turned?gpj' "handed in.csv") $(cat out "handed in.csv" | LC_ALL=C grep -c $'\xe2\x80\xae')" = "1 0" ]
check "a hand-in is graded under its NAME" grep -q "^\"Zoë d'Été-天\",\"zoë.tar.gz\",\"20[0-9T:-]*Z\",9,9,0,0,0,0,0,0,0,0,0,18,100," "handed in.csv"
check "a file that does not match the manifest is reported" grep -q '"damaged",.*collectives.c does not match its checksum' "handed in.csv"
check "a hand-in made with an older handout is reported" grep -q '"old",.*made with version 1.0+01d of the kit, graded with 1.0+' "handed in.csv"
check "and no other" [ "$(grep -c 'made with version' "handed in.csv")" = 1 ]
check "an archive in a folder per student, as from Moodle, is graded under the student's name" \
    grep -q "^\"Mo O'Dle\",\"Mo O'Dle_77_assignsubmission_file_\",\"\",[0-9]*,9," "handed in.csv"
check "several archives in a folder are not graded, and the remark says why" grep -q '^"Two",.*it is a folder of 2 archives' "handed in.csv"
check "a report says what its labs were graded on" grep -q '^Each lab was graded on the reference solutions' "handed in-reports/zoë.tar.gz.txt"
check "two hand-ins with the same NAME are reported" grep -q '"damaged",.*has the same name' "handed in.csv"
finish
