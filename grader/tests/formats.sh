#!/usr/bin/env bash
# The six output formats: written from one verdict with every kind of result, and read by other
# projects' parsers and schemas (formats.py). No file is ever half-written.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree formats
nasty=$'bad \xff\x01 \x1b[31m ]]> <b> & "quote" # \\ \xe2\x9c end \xef\xbf\xbe'

copy_solution 1
copy_solution 2
sed -i 's/duplication(x, mesh)/x/' "$(lab_file 2)" # wrong
copy_solution 3
sed -i 's/^    return all_gather/    *(volatile int *)8 = 1;\n&/' "$(lab_file 3)" # crashes
sed -i 's/, undecided(4)); .*/, shard(0));/; s/undecided(4)/shard(0)/; s/"output", \(.*\)shard(0)/"output", \1shard(1)/' "$(lab_file 4)" # a TODO remains
echo 'extern int begun;' >> "$(lab_file 5)" # started, but splits nothing yet
copy_solution 6
printf '#error %s\n' "$nasty" >> "$(lab_file 6)" # does not build
copy_solution 8
sed -i 's/^    int rank = .*/&\n    if (rank == 1)\n        return;/' "$(lab_file 8)" # hangs

written() { # PREFIX STATUS ARGUMENTS...: writes one file per format, from one verdict
    local prefix=$1 expected=$2 format outputs=()
    shift 2
    for format in json junit tap gradescope autolab github; do
        outputs+=(--format "$format" --out "$prefix.$format")
    done
    build/grade --author student --seed 1 "${outputs[@]}" "$@" > out 2>&1
    [ $? = "$expected" ]
}
grade LAB=1 FORMAT=json OUT="$tree/one file.json"
check "make grade FORMAT=json OUT=... writes a file" [ -s "one file.json" ]
make --silent "build/runners/0"{2,3,4,5,6,7,8,9}-student build/runners/1{0,1}-student > out 2>&1
check "less than full marks are exit status 1, whatever is written" written all 1
check "full marks are exit status 0, whatever is written" written full 0 --lab 1
check "all formats are written without a sandbox" written bare 0 --lab 1 --sandbox off

# refused SENTENCE WORDS ARGUMENTS...: one error with a HINT, before any lab is graded
refused() {
    local sentence=$1 words=$2
    shift 2
    build/grade --author student --lab 1 "$@" > out 2>&1
    [ $? = 2 ] && [ "$(grep -c '^error: ' out)" = 1 ] && grep -q '^  HINT: ' out && says "$words" && ! grep -q '^Lab ' out
    check "$sentence" [ $? = 0 ]
}
cp full.json kept.json
refused "a case that does not exist is refused, and an earlier file stays" "lab 1 has cases 0 to" --case 999 --format json --out kept.json
check "the earlier file is as it was" cmp -s full.json kept.json
refused "a format that does not exist is refused" "there is no format 'xml'" --format xml --out x
refused "a seed beyond 64 bits is refused" "SEED cannot be" --seed 99999999999999999999
refused "FORMAT alone is refused" "OUT" --format json
refused "OUT alone is refused" "FORMAT" --out x
refused "an OUT without a name is refused" "it has no name" --format json --out ''
refused "an OUT that is a folder is refused before grading" "it is a folder" --format json --out build
refused "an OUT in a folder that does not exist is refused before grading" "No such file" --format json --out none/x
cp "$(lab_file 1)" lab.kept
ln -s "$(lab_file 1)" link
for format in json junit tap gradescope autolab github; do
    refused "a lab's file is not replaced by a result for $format" "the file exists, and is not a result in this format" --format $format --out "$(lab_file 1)"
    refused "nor is a result for another platform" "is not a result in this format" --format $format --out "full.$([ $format = tap ] && echo json || echo tap)"
done
refused "nor is a lab's file behind a link" "is not a result in this format" --format tap --out link
check "the lab is as it was" cmp -s lab.kept "$(lab_file 1)"
check "earlier results are replaced" written full 0 --lab 1
refused "an OUT that is a device is refused before grading" "not a file" --format json --out /dev/null
refused "sizes that no lab can have are refused" "do not determine how much it may send: ' n=0'" --may-send "B=8 n=0"
# shellcheck disable=SC2016 # for the judge
may_send() { # LAB SIZES NUMBERS: what it may send forward and backward
    [ "$(build/grade --lab "$1" --may-send "$2" 2>&1 | tee out)" = "$3" ]
}
# One stage on one rank sends nothing; two stages send a batch of 2 * 3 * 4 numbers forward, then
# its gradient. In lab 14, the norm is an all-reduce of 2 numbers over two stages, so it sends 4
# numbers. A step sends these, too, and 12 for the all-reduce of 6 numbers of the metrics.
check "lab 12 on one rank without TP may send nothing" may_send 12 "B=2 S=3 H=4" "0 0"
check "two stages of lab 12 may send a batch each way" may_send 12 "n=2 STAGES=2 B=2 S=3 H=4" "24 48"
check "two stages of lab 13 may send a batch each way, whatever the micro-batches" may_send 13 "n=2 STAGES=2 B=2 S=3 H=4 MICROS=2" "24 48"
check "two stages of lab 14 may also send the sums of lab 14" may_send 14 "n=2 STAGES=2 B=2 S=3 H=4" "4 64"

# Each of three signals ends the grader after lab 1, while lab 2, which never ends, is running.
sed -i 's/^    return/    for (volatile int forever = 1; forever;)\n        ;\n&/' "$(lab_file 2)"
make --silent build/runners/02-student > out 2>&1
files_need_names() {
    ! python3 -c 'import os; os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY))' 2> /dev/null
}
for signal in INT TERM KILL; do
    rm -f cut.json* out
    (trap - INT && exec build/grade --author student --seed 1 --format json --out cut.json) > out 2>&1 &
    grader=$!
    until grep -q '^Lab 2' out || ! kill -0 "$grader" 2> /dev/null; do sleep 0.05; done
    kill -"$signal" "$grader"
    wait "$grader" 2> /dev/null
    mv cut.json "cut-$signal.json"
    ! files_need_names || rm -f cut.json.partial # the next run replaces it (common/base/replacement.h)
    # shellcheck disable=SC2144 # at most one file matches
    check "SIG$signal leaves no partial file" [ ! -e cut.json.?* ]
done
BUILD=$BUILD python3 "$ROOT/grader/tests/formats.py" "$tree" | tee words
check "formats.py reads every file" [ "${PIPESTATUS[0]}" = 0 ]
failures=$((failures + $(grep -c '^not ok' words)))
finish
