#!/usr/bin/env bash
# The ways in which a lab can end its runner: the case ends at once, with the true reason, and keeps
# the points of checks that were right.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree endings
g='    return group_all_reduce(mesh->world, x);'

# lab_1 CODE [INCLUDE]: lab 1 is solved, with CODE before the sum of g.
lab_1() {
    copy_solution 1
    awk -v g="$g" -v code="$1" -v include="${2:-}" 'NR == 2 { print include } $0 == g { print code } { print }' \
        "$(lab_file 1)" > lab.new && mv lab.new "$(lab_file 1)"
}
keeps() { # keeps CHECK: a check that was right before the end keeps its points
    grep -qE "^  ✓ $1 +" out
}

# Two ranks take part in case 5, so one launch of it suffices.
lab_1 '    if (mesh->tp_rank == 1)
        return x;'
grade LAB=1 CASE=5
check "a rank that skips a collective is a failure" fails_saying "wait for each other forever"
check "a hang names the ranks that wait" says "rank 0 waits in all_reduce"
check "a hang names the line of the lab" says "at collectives.c:"
check "a call that a rank left out is not told as the first difference too" eval 'says "rank 1 left out the all_reduce" && ! says "first difference"'
told_once() {
    [ "$(tr -s ' \n' ' ' < out | grep -o "wait for each other forever" | wc -l)" = 1 ] && says "also failing for this reason: input gradient, communication"
}
check "a cause that fails several checks is explained once" told_once
failing_with() { # failing_with NAME CHECKS: the answer's one reason names these checks
    python3 "$ROOT/grader/tests/answer.py" "$1" > "$(lab_file "$((10#${1%%-*}))")"
    grade LAB="$((10#${1%%-*}))" SEED=1
    tr -s ' \n' ' ' < out | grep -qE "also failing for this reason: $2 (again:|✗)"
}
check "a finding with the same HINT is one reason" failing_with 02-no_gather "input gradient, weight gradient, step"
check "what fails at the same line with other numbers is one reason" failing_with 03-v_floor "weight gradient, step"
check "a step that follows a wrong gradient is not a reason of its own" failing_with 02-values_gather "step"

lab_1 '    for (volatile int go = mesh->tp_rank == 1; go;)
        ;'
grade LAB=1 CASE=5
check "an endless loop on one rank is a failure" fails_saying "Rank 1 did not return within the time limit"
check "in a file, there is no line about waiting" eval '! says "waiting for rank"'
script -qec "make --silent SEED=1 grade LAB=1 CASE=5" /dev/null < /dev/null > out 2>&1
files_are_counted() {
    rm "$tree/build/float/grader/runner/yield.o"
    script -qec "make --silent build/float/grader/runner/yield.o" /dev/null < /dev/null > counted 2>&1
    grep -q "building: 1 of 1 files" counted
}
check "on a terminal, the files that a build compiles are counted" files_are_counted
check "on a terminal, there is one line about waiting" [ "$(grep -c 'waiting for rank 1, which has made no MPI call' out)" = 1 ]

lab_1 '    while (mesh->tp_rank == 1) {
        for (volatile int i = 0; i < 2000000000; i++)
            ;
        memset(malloc(6 << 20), 1, 6 << 20);
    }' '#include <stdlib.h>
#include <string.h>'
grade LAB=1 CASE=5
check "an endless loop that takes a little memory in each turn is one" fails_saying "Rank 1 did not return within the time limit"

lab_1 '    if (mesh->tp_rank == 1)
        *(volatile int *)8 = 1;'
grade LAB=1
check "once every check has failed, the ranks are not started again" fails_saying "not run: 22 of 28 cases, since every check has failed in earlier ones"
grade LAB=1 CASE=5
check "a crash names the rank and the signal" fails_saying "rank 1 was killed by signal 11"
check "a crash names the line of the lab" says "at collectives.c:"

[[ $(uname -m) == x86_64 ]] && trap=int3 || trap='brk #0'
lab_1 "    if (mesh->tp_rank == 1)
        __asm__(\"$trap\");"
grade LAB=1 CASE=5
check "so does a trap" fails_saying "rank 1 was killed by signal 5"
check "a trap names the line of the lab" says "at collectives.c:"

lab_1 '    printf("rank %d has %d numbers", mesh->tp_rank, (int)tensor_count(x));
    puts("");
    puts("Score: 100/100");' '#include <stdio.h>'
grade LAB=1
check "the report says that a lab printed, and where its output is" says "lines, in build/runners/01-student.log"
check "the report on all cases does not show the output" test "$(grep -c "| rank" out)" = 0
grade LAB=1 CASE=5
check "the report on one case shows it" says "| rank 1 has 144 numbers"
check "the output cannot be mistaken for the grader's" test "$(grep -c '^Score: ' out)" = 0
lab_1 '    puts("so far");
    if (mesh->tp_rank == 1)
        *(volatile int *)8 = 1;' '#include <stdio.h>'
grade LAB=1 CASE=5
check "the report shows what was printed before a crash" says "| so far"
lab_1 '    fwrite("a\\0b\\nc\\n", 1, 6, stdout);' '#include <stdio.h>'
grade LAB=1 CASE=5
check "a zero byte does not hide the rest of its line" says "| a b"
check "a zero byte does not hide the next line" says "| c"
copy_solution 1
grade LAB=1 CASE=5
check "without output, the report does not mention any" test "$(grep -c "printed:" out)" = 0

for call in "exit(0)" "_exit(0)" "abort()"; do
    lab_1 "    if (mesh->tp_rank == 1)
        $call;" '#include <stdlib.h>
#include <unistd.h>'
    grade LAB=1 CASE=5
    check "$call on one rank is a failure that names it" fails_saying "${call%(*}() was called"
    check "$call is reported with its rank" says "(rank 1)"
done
for call in "MPI_Abort(MPI_COMM_WORLD, 0)" "MPI_Finalize()"; do
    lab_1 "    $call;" '#include "balise_mpi.h"'
    grade LAB=1 CASE=5
    check "$call is a failure that names it" fails_saying "${call%%(*} was called"
done

# Lab 2 with a backward pass that crashes: checks that had passed stay passed.
copy_solution 2
cat >> "$(lab_file 2)" << 'END'
static Tensor *same(Tensor *x, const Mesh *mesh)
{
    return x;
}
static Tensor *crash(Tensor *dy, const Mesh *mesh)
{
    if (mesh->tp_rank == 1)
        *(volatile int *)8 = 1;
    return dy;
}
static const Op crashes = {"crashes", same, crash};
Tensor *with_crash(Tensor *x, const Mesh *mesh)
{
    return apply(&crashes, x, mesh);
}
END
sed -i 's/^#include "balise.h"/&\nTensor *with_crash(Tensor *x, const Mesh *mesh);/; s/return all_gather(y, LAST, mesh);/return with_crash(all_gather(y, LAST, mesh), mesh);/' "$(lab_file 2)"
grade LAB=2 CASE=3
for name in forward "initial values" sharding; do
    check "a crash in the backward pass keeps the points of: $name" keeps "$name"
done
check "a crash in the backward pass loses the points of the gradients" fails_saying "rank 1 was killed"

# The same with a send that MPI could have buffered: only many polls show that it hangs.
sed -i 's/^#include "balise.h"/&\n#include "balise_mpi.h"/
    s/^        \*(volatile int \*)8 = 1;/        MPI_Isend(much, 1 << 20, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, \&request);\n    MPI_Wait(\&request, MPI_STATUS_IGNORE);/
    s/^static Tensor \*crash(.*/static float much[1 << 20];\n&/; s/^    if (mesh->tp_rank == 1)/    MPI_Request request = MPI_REQUEST_NULL;\n&/' "$(lab_file 2)"
grade LAB=2
check "if ranks wait long in several cases, the others are not run, and the report says why" fails_saying "cases, since ranks wait forever in earlier ones"
check "that report does not speak of a rank that computes" eval '! says "computes forever"'

# Rank 1 crashes in the first forward pass before rank 0 has made its layer.
copy_solution 3
sed -i 's/^#include "balise.h"/&\n#include "balise_mpi.h"/
    s/^    Embedding \*layer = NEW/    int rank;\n    MPI_Comm_rank(MPI_COMM_WORLD, \&rank);\n    for (volatile int i = 0; rank == 0 \&\& i < 100000000; i++)\n        ;\n&/
    s/^    return all_gather/    *(volatile int *)8 = 1;\n&/' "$(lab_file 3)"
grade LAB=3 CASE=6
for name in "initial values" sharding; do
    check "a rank that crashes takes no points from a late one: $name" keeps "$name"
done
check "if all ranks crash, the first is reported" says "rank 0 was killed"

lab_1 '    puts("Score: 100/100");
    scale(x, 0);' '#include <stdio.h>'
grade LAB=1
check "a printed score changes nothing" scores 2/9

lab_1 '' '#include "ballise.h"'
grade LAB=1
check "a missing file in an #include is named" says 'ballise.h: No such file'

mkdir "$(dirname "$(lab_file 1)")/below"
for name in below/mine.h .mine.h; do
    touch "$(dirname "$(lab_file 1)")/$name"
    lab_1 '' "#include \"$name\""
    grade LAB=1
    check "a lab may not include $name, whose changes would not be noticed" says "/$name, which is not a header of the kit or the system"
done

lab_1 '' "$(printf '#warning "\x9b31m \xd8\x9c \xff \x1b[31m"')"
grade LAB=1
warning_is_clean() {
    scores 9/9 && grep -q "warning:" out && ! LC_ALL=C grep -qE "$(printf '\x1b|\xff|\xd8\x9c|\x9b')" out
}
check "a warning's bytes that are no text do not reach the terminal" warning_is_clean

# clang compares for equality with bcmp().
lab_1 '    char other[8] = {0};
    if (memcmp(x, other, sizeof other) == 0)
        return NULL;' '#include <string.h>'
! command -v clang > /dev/null || {
    rm -f build/labs/student/1.o
    make --silent CC=clang build/labs/student/1.o > out 2>&1 # the kit is gcc's
    grade LAB=1
    check "a lab may call memcmp, whatever the compiler makes of it" eval 'scores 9/9 && readelf -p .comment build/labs/student/1.o | grep -q clang'
}

lab_1 '    nonsense'
grade LAB=1
check "a lab that does not compile fails with a sentence that says so" fails_saying "lab 1 does not compile"
check "a lab that does not compile gets no points" scores 0/9
check "the line of the mistake follows the compiler's message, and a caret below its column" eval "grep -A 1 '20 |     nonsense' out | grep -q '|     ^'"
LANG=fr_FR.UTF-8 grade LAB=1
check "for a reader of another language, the error is in that language" says "la balise 1 ne compile pas"
grade LAB=1
check "and then again in the first one" says "lab 1 does not compile"
lab_1 "$(printf '    y%d;\n' {1..30})"
grade LAB=1
check "the report has the first ten of many errors" [ "$(grep -c 'error: .y[0-9]*. undeclared' out) $(grep -c "error: .y1. undeclared" out)" = "10 1" ]

copy_solution 1
lab=$(lab_file 1)
for name in Collectives.C collectives.c.txt; do
    mv "$lab" "${lab%/*}/$name"
    grade LAB=1
    check "the HINT about a missing lab names $name beside it" says "there is ${lab%/*}/$name: rename it"
    mv "${lab%/*}/$name" "$lab"
done
iconv -f utf-8 -t utf-16 "$(lab_file 1)" > wide.c && mv wide.c "$(lab_file 1)"
grade LAB=1
check "a lab in UTF-16 fails with a sentence that says so" fails_saying "lab 1 is in UTF-16"
check "the HINT names the conversion" says "iconv -f utf-16 -t utf-8"
iconv -f utf-16 -t utf-16le "$(lab_file 1)" > wide.c && mv wide.c "$(lab_file 1)"
grade LAB=1
check "a lab in UTF-16 without a byte order mark fails with the same sentence" fails_saying "lab 1 is in UTF-16"
truncate -s 300G "$(lab_file 1)"
grade LAB=1
check "a lab of 300 GB fails with a sentence about its size" fails_saying "lab 1 is larger than 256 KB"
copy_solution 1
beside=$(dirname "$(lab_file 1)")
for i in {1..400}; do truncate -s 63M "$beside/$i.h"; done
ln -s /proc/kmsg "$beside/endless.h"
ln -s "$(printf 'loop\u202e.h')" "$beside/$(printf 'loop\u202e.h')"
timeout 60 make --silent grade LAB=1 > out 2>&1
check "25 GB of files and endless ones beside a lab, which it does not include, are not read" scores 9/9
check "the names of such files are not printed" eval '! grep -q "loop" out'
rm "$beside"/*.h

copy_solution 1
sed -i 's/all_reduce_forward/all_reduce_forwards/' "$(lab_file 1)"
grade LAB=1
check "a function that the lab does not define is named" fails_saying "lab 1 does not define all_reduce_forward"

copy_solution 1
grade LAB=1 RUNNER_LDLIBS=-lm
check "the functions of a library that the machine lacks are not said to be the lab's" fails_saying "lab 1 does not link"

copy_solution 1
sed -i 's/group_all_reduce(mesh->world, x)/group_all_reduces(mesh->world, x)/' "$(lab_file 1)"
grade LAB=1
check "an undefined function that the lab calls is named" fails_saying "group_all_reduces"

copy_solution 1
began=$(date +%s.%N)
grade LAB=1 V=1
check "V=1 prints in one line where the time went" [ "$(grep -cE '^time [0-9.]+ s: make and compiler [0-9.]+, launch [0-9.]+, ranks [0-9.]+, judge [0-9.]+$' out)" = 1 ]
are_true() { # are_true SECONDS: the printed times fit a run of this duration
    awk -v wall="$1" '/^time/ { gsub(/[^0-9. ]/, "")
        good = $1 <= wall && $1 > wall / 2 && $2 > 0 && $3 > 0 && $4 > 0 && $5 > 0 } END { exit !good }' out
}
check "the times belong to this run" are_true "$(awk "BEGIN { print $(date +%s.%N) - $began }")"

rm "$(lab_file 1)"
make --silent SEED=1 LAB=1 grade > out 2>&1
status=$?
check "if a lab's file is missing, the report says how to get it" fails_saying "make start LAB=1"
rm -r labs/01-*
make --silent SEED=1 LAB=1 grade > out 2>&1
status=$?
check "so it does if the lab's folder is missing" fails_saying "make start LAB=1"
# A full disk or a power cut may cut a file short that make then takes for complete.
damaged_kit() { # damaged_kit BYTES: only the first so many bytes of an archive are left
    head -c "$1" whole > build/scenarios.a && touch -r whole build/scenarios.a && rm -f build/runners/02-student
    ! make --silent SEED=1 LAB=2 grade > out 2>&1 && says "the kit cannot be linked: a file that make has built is damaged" && says "HINT: make clean" && ! says "lab 2 does not link"
}
copy_solution 2 && cp -p build/scenarios.a whole
# The index of the archive has a header of 60 bytes after the 8 of the archive's own, and in it its size.
first=$((68 + $(head -c 66 whole | tail -c 10)))
check "a kit's file that is cut within a part is not the lab's fault" damaged_kit 100000
check "a kit's file that is cut between two parts is not the lab's fault" damaged_kit "$first"
check "a kit's file that is cut within the header of a part is not the lab's fault" damaged_kit "$((first + 90))"
finish
