#!/usr/bin/env bash
# make NAME=... accepts only settings, and each command reports once why it cannot begin.
# shellcheck disable=SC2016,SC2317 # make expands what is quoted; functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/../../../grader/tests/tree.sh"
make_tree settings
unset MAKELEVEL # as if typed by a student, not run by another make

# stops WORDS COMMAND...: make stops it before any work, with one line each for the error, its HINT
# and make's own error.
stops() {
    local words=$1
    shift
    ! "$@" > out 2>&1 && sed -i '/^make: .*\(TMPDIR value\|default temporary directory\)/d' out && [ "$(wc -l < out)" = 3 ] && sed -n 1p out | grep -- '^error: ' | grep -qF -- "$words" &&
        sed -n 2p out | grep -q '^  HINT: ' && sed -n 3p out | grep -qE '^[^ ]*: \*\*\* see the error above\. +Stop\.$'
}
refused() {
    local word=$1
    shift
    check "make $* is refused: there is no setting $word" stops "there is no setting $word" make "$@"
}
# options_are FILE COMMAND: the options that the program's source reads are those that the table of
# settings has for the command, besides the launcher's and the tests' own, and TEST.
options_are() {
    diff <(grep -oE '_OPTION\("[a-z-]+"' "$1" | grep -oE '[a-z-]{2,}' | grep -vxE 'cache|counts|dry|gpu|labs|perturb|ranks|test' | sort) \
        <(common/setup/settings.sh options "$2" | tr ' ' '\n' | sed "s/=.*//${3:-}" | sort) > out
}
check "every option of the training program is a setting of make check, and no other" options_are common/train/config.c check
check "make train has all settings of make check except RANK and VOCAB_SIZE" diff <(common/setup/settings.sh options check | tr ' ' '\n' | grep -vE '^(rank|vocab-size)=') \
    <(common/setup/settings.sh options train | tr ' ' '\n')
check "every option of the program of texts is a setting of make story" options_are common/story/config.c story '; $a threads'
passed() { # passed WORDS COMMAND...: make passes a program these words
    "${@:2}" > out 2>&1 && grep -qF -- "$1" out
}
check "make train passes them on, with their values" passed "--max-predictions '3'" make -n train MAX_PREDICTIONS=3
check "also from the environment" passed "--weight-decay '0'" env WEIGHT_DECAY=0 make -n train
check "REPORT=1 names the files of the page" passed "--metrics '$BUILD/report/metrics.jsonl'" make -n train REPORT=1 BUILD="$BUILD"
check "the settings of a cluster may stand on the command line, as in site.mk" make -n sbatch NTASKS=1 START=mpirun MODULES=gcc SBATCH=--exclusive SETUP=: NODES=1 NAME=box
refused SOLUTON grade SOLUTON=1 LAB=2
check "a similar setting is suggested" grep -qF 'HINT: did you mean SOLUTION?' out
refused lab grade lab=1
check "the right setting is suggested for one in small letters" grep -qF 'HINT: did you mean LAB?' out
refused EPOCH train EPOCH=2
check "the right setting is suggested for one that lacks a letter" grep -qF 'HINT: did you mean EPOCHS? make help train describes it' out
refused near grade near=2
refused QQQ grade QQQ=2
check "nothing is suggested if no setting is similar" grep -qF 'HINT: make help and its topics list the settings' out
check "an error quotes a value with an apostrophe as it is" stops "there is no stack 'm'ien'" make grade LAB=1 "STACK=m'ien"
# an_error WORDS COMMAND...: the command fails with an error of its program, not of the shell.
an_error() {
    local words=$1
    shift
    ! "$@" > out 2>&1 && [ "$(grep -c '^error: ' out)" = 1 ] && grep -qF -- "$words" out && ! grep -qi 'syntax error\|unterminated' out
}
check "a program's error quotes a value with an apostrophe as it is" an_error "6'7" make --silent grade "LAB=6'7"
check "the error about a stack for training quotes a value with an apostrophe as it is" stops "'m'ien'" make --silent train "STACK=m'ien"
check "a program's error quotes a value with a line break as it is" an_error $'6\n7' make --silent grade $'LAB=6\n7'
check "a PROMPT may have line breaks and apostrophes" an_error "no model is given" make --silent story $'PROMPT=I\'m\n\n"here"'
check "a file name may have an apostrophe" an_error "l'essai.csv" make --silent train "DATA=l'essai.csv" "TEST=l'autre.csv" VOCAB=none.txt
for value in '$(touch x)' '$(shell touch x)' 'a$b' '$$$b' '${HOME}'; do
    check "a METRICS of $value is refused: make would expand it" stops 'make expands the $ in METRICS' make train VOCAB=none.txt "METRICS=$value"
done
check "a LAB with a command is refused before the command runs" stops 'make expands the $ in LAB' make grade 'LAB=$(shell touch x)'
check "a NAME with a command is refused" stops 'make expands the $ in NAME' make hand-in 'NAME=A$(id)B'
check "a command in a setting has not run" [ ! -e x ]
check "\$\$ is a dollar sign" an_error 'l$b.csv' make --silent train 'DATA=l$$b.csv' VOCAB=none.txt
for setting in DATA VOCAB SAVE RESUME METRICS LR TP STEPS; do
    check "make train $setting= is refused: it would silently be the default" stops "$setting is empty" make train "$setting="
done
check "a negative TP is named, not the NTASKS computed from it" an_error "TP cannot be '-2'" make --silent train TP=-2
check "TEST= is a value, and so is a stack that is not named" an_error none.txt make --silent train TEST= STACK= UPTO= VOCAB=none.txt
for name in colwise-linear ColWiseLinear colwise_linear 2; do
    check "LAB=$name is lab 2 for make" eval "make -n grade LAB=$name > out && grep -q -- \"--lab '2'\" out && grep -q 'build/verdicts/2.json' out"
done
check "LAB='Block and Classifier' is lab 7, and LAB=RowParallelLinear lab 20" eval \
    "make -n grade LAB='Block and Classifier' | grep -q -- \"--lab '7'\" && make -n watch LAB=RowParallelLinear | grep -q \"LAB='20'\""
check "hints are for a lab's name, too" eval "make --silent hint LAB=colwise_linear > out && cmp -s <(head -1 out) <(make --silent hint LAB=2 AGAIN=1 | head -1)"
check "a name that no lab has is refused, with the most similar one" stops "there is no lab 'ColWiseLiner'" make grade LAB=ColWiseLiner
check "which the HINT names, before the numbers of all labs" grep -q 'HINT: did you mean LAB=colwise-linear? the labs are: 1 2 3' out
check "for a name that is like no other, the HINT names no lab" eval "! make grade LAB=xyzzy 2> out && grep -q 'HINT: the labs are: 1 2 3' out"
check "a stack on which no lab is graded is refused" stops "cannot be graded on STACK='serial'" make grade LAB=1 STACK=serial

no_command() { # no_command GOAL WORDS
    check "make $1 is refused: there is no such command" stops "there is no command make $1" make "$1"
    check "the error for make $1 names '$2'" grep -qF "HINT: $2" out
}
no_command grad "did you mean make grade? make help"
no_command nosuchgoal "make help lists the commands"
no_command handout_ "did you mean make handout?"
# ignored SETTING OTHER COMMAND...: COMMAND rejects SETTING, which only other commands, such as
# OTHER, take.
ignored() {
    local name=$1 other=$2
    shift 2
    check "make $* is refused: it would ignore $name" stops "make $1 has no setting $name" make "$@"
    check "the error names make $other, which takes $name" grep -qE "HINT: leave it out; the commands that take it: .*\b$other(,|\$)" out
}
ignored OUT hand-in handout OUT=/nonexistent/x
ignored NTASKS train grade LAB=1 NTASKS=2
ignored SAN grade trace LAB=1 SAN=1
ignored CASE trace measure LAB=6 CASE=1
ignored LAB grade train LAB=6
ignored CASE grade train STEPS=1 CASE=2
ignored ASK solution hint LAB=1 ASK=1
ignored JOBS gradebook progress JOBS=2
ignored LR train bench LR=1
ignored DP train model NTASKS=4 DP=2
ignored BACKEND grade gradebook DIR=x BACKEND=emulated
ignored TRANSPORT bench progress TRANSPORT=mpi
ignored CUDA model docs CUDA=/usr
taken() { # taken SENTENCE COMMAND...: check.sh does not refuse the settings
    check "$1" test -z "$(make --dry-run "${@:2}" 2>&1 | grep 'no setting')"
}
taken "make grade ON=slurm takes a job's settings" grade LAB=1 ON=slurm PARTITION=x TIME=10 NODES=1
taken "make sbatch takes a run's settings and a job's" sbatch NTASKS=2 TP=2 LR=1 PARTITION=x NAME=a METRICS=m SAVE=s
taken "make model takes a model's and a layout's" model NTASKS=4 TP=2 SCHEDULE=gpipe LAYERS=2 HEADS=4 AMP=bf16 WEAK=1 MODEL=llama TASK=mlm
for command in grade trace tape report debug measure bench model train sbatch; do
    taken "make $command takes a backend" "$command" BACKEND=emulated
done
taken "make layouts takes a language model, a task and their text" layouts MODEL=llama TASK=mlm DATA=x VOCAB=y
taken "two commands take the settings of both" grade train LAB=1 STEPS=2

check "a stack that is none is refused" stops "there is no stack 'mien'" make grade LAB=1 STACK=mien

# a_switch SETTING COMMAND...: SETTING can only be 1 or empty; any other value is rejected.
a_switch() {
    local value
    for value in 0 no maybe; do
        check "make ${*:2} $1=$value is refused: it would turn $1 on" stops "$1 cannot be '$value'" make "${@:2}" "$1=$value"
    done
    check "make ${*:2} $1=1 is not, nor is $1=" test -z "$(make --dry-run "${@:2}" "$1=1" 2>&1 | grep 'cannot be')$(make --dry-run "${@:2}" "$1=" 2>&1 | grep 'cannot be')"
}
a_switch REPORT train VOCAB=none.txt
a_switch ASK solution LAB=6
a_switch AGAIN hint LAB=6
a_switch SOLUTION grade LAB=8
a_switch SOLUTION trace LAB=8
a_switch SAN grade LAB=8
a_switch INDEPENDENT handout
# A lab's file must be a regular file, for every command that reads it.
one=labs/01-duplication-allreduce/collectives.c
mv "$one" kept.c
in_place_of_a_lab() { # in_place_of_a_lab WHAT WORDS
    local goal
    for goal in grade watch report debug trace start hand-in; do
        check "make $goal refuses $1 in place of a lab" stops "lab 1 cannot be read from $one: $2" \
            timeout 20 make "$goal" "$([ "$goal" = hand-in ] && echo NAME=Ada || echo LAB=1)"
    done
    check "make train STACK=mine refuses $1 in place of a lab" stops "lab 1 cannot be read from $one: $2" timeout 20 make train STACK=mine
}
mkfifo "$one"
in_place_of_a_lab "a FIFO" "it is not a file"
rm "$one" && ln -s /dev/zero "$one"
in_place_of_a_lab "a link to a device" "it is not a file"
rm "$one" && mkdir "$one"
in_place_of_a_lab "a folder" "it is a folder"
check "a link to a regular file is accepted as a lab" test -z "$(rmdir "$one" && ln -s "$PWD/kept.c" "$one" && make --dry-run grade LAB=1 2>&1 | grep 'cannot be read')"
rm "$one" && mv kept.c "$one"
# A missing GPU is reported before the kernels are compiled, which takes minutes.
mkdir -p cuda/bin
printf '#!/bin/sh\necho "$*" >> "%s/compiled"\nexit 1\n' "$PWD" > cuda/bin/nvcc && chmod +x cuda/bin/nvcc
for goal in train "grade LAB=1" bench test; do
    # shellcheck disable=SC2086 # words
    check "make $goal BACKEND=cuda without a GPU says so before it compiles" \
        env CUDA_VISIBLE_DEVICES= "$(command -v bash)" -c '! make "$@" > out 2>&1 && grep -qE "^error: BACKEND=cuda: .*(no NVIDIA driver|there is no GPU)" out && grep -q "^  HINT: make doctor" out && [ ! -e compiled ]' \
        - $goal BACKEND=cuda CUDA="$PWD/cuda" BUILD=fresh
done
for goal in build "sbatch NTASKS=2 TP=2" "grade ON=slurm"; do
    # shellcheck disable=SC2086 # words
    check "make $goal BACKEND=cuda needs no GPU here" \
        test -z "$(CUDA_VISIBLE_DEVICES='' make --dry-run $goal BACKEND=cuda CUDA="$PWD/cuda" BUILD=fresh 2>&1 | grep 'HINT: make doctor')"
done
check "a LAB with a PART is refused: the PART would be ignored" stops "LAB and PART are both given" make grade LAB=1 PART=2

for setting in STEPS=x NTASKS=9 PP=3 METRICS=a.jsonl STACK=mine BACKEND=emulated; do
    check "make layouts $setting is refused: it would be ignored" stops "make layouts has no setting ${setting%=*}" make layouts "$setting"
done
check "make doctor PP=3 is refused: it would be ignored" stops "make doctor has no setting PP" make doctor PP=3
check "make doctor ALL=0 is refused" an_error "ALL cannot be '0'" make --silent doctor ALL=0
check "make doctor NTASKS=x is refused" an_error "NTASKS cannot be 'x'" make --silent doctor NTASKS=x

# A first build runs as many compilers as there are cores, within limits.
mkdir -p cores
at_a_time() { # at_a_time CORES JOBS COMMAND...: with CORES cores, make grade compiles JOBS files at a time
    printf '#!/bin/sh\necho %s\n' "$1" > cores/nproc && chmod +x cores/nproc
    PATH=$PWD/cores:$PATH "${@:3}" --dry-run --print-data-base LAB=1 > database 2>&1
    grep '^MAKEFLAGS' database > out
    grep -qE -- " -j$2( |\$)" out && ! grep 'forced in makefile' database >> out
}
check "make grade compiles as many files at a time as there are cores" at_a_time 3 3 make grade
check "also with OMP_NUM_THREADS" at_a_time 3 3 env OMP_NUM_THREADS=1 make grade
check "at most 8" at_a_time 64 8 make grade
check "the user's -j stands" at_a_time 64 12 make -j12 grade
check "also in the environment, as from an outer make" at_a_time 64 12 env MAKEFLAGS=-j12 make grade

every_setting() {
    local unknown
    mapfile -t names < <(grep -rohE --include='*.md' '\bmake [a-z]+( [A-Z_]+=[^ `]+)+' "$ROOT"/{README.md,CONTRIBUTING.md,labs,common,grader} | grep -oE '\b[A-Z_]+=' | tr -d = | sort -u)
    unknown=$(common/setup/check.sh --unknown "${names[@]}" BUILD V CC CFLAGS CUDA OPTIMISE LANG LC_ALL SITE BARE_FULL REAL_DATA)
    echo "${#names[@]} names; unknown: $unknown" > out
    [ "${#names[@]}" -gt 40 ] && [ -z "$unknown" ]
}
check "every setting that the documents give a command exists" every_setting
every_variable_is_passed() {
    local name
    for name in $(grep -v '^#' common/setup/check.sh | grep -oE '[$]\{?[A-Z_]+' | tr -d '\044{' | sort -u); do
        case $name in BASH_SOURCE | CUDA_VISIBLE_DEVICES | LANG | LANGUAGE | LC_* | MAKELEVEL | TMPDIR) continue ;; esac
        sed -n '/^CHECKED = /,/[^\\]$/p' Makefile | grep -qw "$name" || { echo "CHECKED lacks $name" > out && return 1; }
    done
}
check "the Makefile passes check.sh every variable that it reads" every_variable_is_passed
limited() { # limited LIMIT COMMAND...
    (ulimit "${@:1:2}" && "${@:3}")
}
check "a stack too small for compilers is one error" stops "ulimit -s is 64" limited -s 64 make grade LAB=1
check "so is an address space too small for a rank" stops "ulimit -v is 300000" limited -v 300000 make grade LAB=1
# ---- what a user's shell may export
printf 'echo hello\ncd /\n' > rc
for stray in BASH_ENV="$PWD/rc" CDPATH="$PWD" CDPATH=/:/tmp GREP_OPTIONS=-v POSIXLY_CORRECT=1 PYTHONPATH=/nowhere LC_ALL=xx_YY.UTF-8; do
    check "$stray changes nothing" stops 'there is no command make tain' env "$stray" make tain
done
check "a module of the user's does not stand in for Python's" grep -qF 'did you mean make train' out
names_environment() {
    env OUT=x SEED=7 NAME=box TIME=1 DIR=/tmp make LAB=99 grade > out 2>&1
    grep -qx 'from the environment, not from the command line: \(OUT, SEED\|SEED, OUT\)' out && ! make LAB=99 SEED=7 grade 2>&1 | grep 'from the environment'
}
check "settings of the command that come from the environment are named, and no others" names_environment
elsewhere() {
    (cd / && stops_here "$OLDPWD")
}
stops_here() {
    ! make -f "$1/Makefile" grade LAB=1 > "$1/out" 2>&1 && [ "$(grep -c '^error: make was started in /, ' "$1/out")" = 1 ] && grep -qF "make -C '$1'" "$1/out" && [ "$(wc -l < "$1/out")" = 3 ]
}
check "make -f from another folder is one error" elsewhere
check "a missing TMPDIR is one error" stops "TMPDIR='/nonexistent' is not a writable folder" env TMPDIR=/nonexistent make grade LAB=1
check "a missing compiler is one error" stops "there is no compiler, no-such-compiler" make grade LAB=1 CC=no-such-compiler
mkdir thesis && : > thesis/thesis.txt
check "make clean removes no folder in which make has built nothing" eval "stops 'make clean would remove thesis' env BUILD=thesis make clean && [ -e thesis/thesis.txt ]"
check "nor the labs" eval "stops 'make clean would remove labs' make clean BUILD=labs && [ -e labs/01-duplication-allreduce ]"
check "a BUILD with a blank is one error" stops "BUILD='a?b' has a character" make grade LAB=1 BUILD='a b'
check "a BUILD with a quote is one error" stops "has a character that make or a shell would interpret" make grade LAB=1 "BUILD=a'b"
check "BUILD with its whole path names its files as without, so that make finds their headers" \
    [ "$(make -n BUILD="$PWD/other" "$PWD/other/float/common/base/run.o" | grep -o -- "-o [^ ]*")" = "-o other/float/common/base/run.o" ]
check "a build folder that cannot be created is one error" stops "the folder /proc/build is not writable" make grade LAB=1 BUILD=/proc/build

if unshare -rm mount -t tmpfs none build 2> /dev/null; then
    # shellcheck disable=SC2016 # the inner shell's
    check "a build folder on a full disk is one error" stops "the disk of the folder build is full" \
        unshare -rm bash -c 'mount -t tmpfs -o size=2m none build && { head -c 2M /dev/zero > build/full 2> /dev/null; make grade LAB=1; }'
else
    echo "skip - a build folder on a full disk is one error: this user may mount nothing (unshare -rm)"
fi

# fits_a_terminal COMMAND: its error has lines of more than 80 characters, but not on a terminal.
fits_a_terminal() {
    ! bash -c "$1" > out 2>&1 && [ "$(LC_ALL=C.UTF-8 wc -L < out)" -gt 80 ] && tr -s ' \n' ' ' < out > words
    script -qec "$1" /dev/null < /dev/null 2>&1 | tr -d '\r' > out
    [ "$(LC_ALL=C.UTF-8 wc -L < out)" -le 80 ] && tr -s ' \n' ' ' < out | cmp - words
}
check "on a terminal, an error of make fits 80 columns" fits_a_terminal "make --silent progress LAB=6"
check "on a terminal, an error of a Python script fits 80 columns" fits_a_terminal "make --silent plot METRICS=none.jsonl OUT=a-picture-with-a-rather-long-name-of-a-kind-that-is-not-known.jpeg"
check "on a terminal, an error of make bench fits 80 columns" fits_a_terminal "ONLY=x common/bench/bench.py $BUILD"

# Its programs need what setup installs. (With MAKE=:, the makes after the installation do not run.)
nothing_is_asked_first() {
    make -npr "$1" MAKE=: > out 2>&1
    grep -q '^STACKED = ' out || { grep '^STACKED' out > less && mv less out && false; }
}
for command in demo setup; do
    check "make $command runs no program of the stacks before it installs packages" nothing_is_asked_first $command
done
a_failing_check() {
    rm common && cp -r "$ROOT/common" common # replaces the link by a copy
    printf '#!/bin/sh\nexit 3\n' > common/setup/check.sh
    ! make help > out 2>&1 && grep -q 'check.sh: 3' out
}
check "make stops if check.sh itself fails" a_failing_check
finish
