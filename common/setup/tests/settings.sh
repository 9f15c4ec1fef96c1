#!/usr/bin/env bash
# make NAME=... accepts only settings, and each command reports once what prevents it.
# shellcheck disable=SC2016,SC2317 # make expands what is quoted; functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/../../../grader/tests/tree.sh"
make_tree settings
unset MAKELEVEL # as if typed by a student, not run by another make

stops() { # stops WORDS COMMAND...: make stops it before any work, with one sentence and a HINT
    local words=$1
    shift
    ! "$@" > out 2>&1 && [ "$(grep -c '\*\*\*' out)" = 1 ] && grep -qF -- "$words" out && grep -q 'HINT: ' out
}
refused() {
    local word=$1
    shift
    check "make $* is refused: there is no setting $word" stops "there is no setting $word" make "$@"
}
refused SOLUTON grade SOLUTON=1 LAB=2
check "a similar setting is suggested" grep -qF 'HINT: did you mean SOLUTION?' out
refused lab grade lab=1
check "also for one in small letters" grep -qF 'HINT: did you mean LAB?' out
refused EPOCH train EPOCH=2
check "and for one that lacks a letter" grep -qF 'HINT: did you mean EPOCHS?' out
refused near grade near=2
refused QQQ grade QQQ=2
check "nothing is suggested if no setting is similar" grep -qF 'HINT: make help lists them' out
check "an error quotes a value with an apostrophe as it is" stops "there is no stack 'm'ien'" make grade LAB=1 "STACK=m'ien"
an_error() { # an_error WORDS COMMAND...: the program itself reports the error, not the shell
    local words=$1
    shift
    ! "$@" > out 2>&1 && [ "$(grep -c '^error: ' out)" = 1 ] && grep -qF -- "$words" out && ! grep -qi 'syntax error\|unterminated' out
}
check "so does the error of a program" an_error "6'7" make --silent grade "LAB=6'7"
check "and the error about a stack for training" stops "'m'ien'" make --silent train "STACK=m'ien"
check "a file name may have an apostrophe" an_error "l'essai.csv" make --silent train "DATA=l'essai.csv" "TEST=l'autre.csv" VOCAB=none.txt
for value in '$(touch x)' '$(shell touch x)' 'a$b' '$$$b' '${HOME}'; do
    check "a METRICS of $value is refused: make would expand it" stops 'make expands the $ in METRICS' make train VOCAB=none.txt "METRICS=$value"
done
check "so is a LAB that would run a command, before it does" stops 'make expands the $ in LAB' make grade 'LAB=$(shell touch x)'
check "and a NAME" stops 'make expands the $ in NAME' make hand-in 'NAME=A$(id)B'
check "a command in a setting has not run" [ ! -e x ]
check "\$\$ is a dollar sign" an_error 'l$b.csv' make --silent train 'DATA=l$$b.csv' VOCAB=none.txt
for setting in DATA VOCAB SAVE RESUME METRICS LR TP STEPS; do
    check "make train $setting= is refused: it would silently be the default" stops "$setting is empty" make train "$setting="
done
check "TEST, STACK and UPTO may be empty" an_error none.txt make --silent train TEST= STACK= UPTO= VOCAB=none.txt
check "an unknown stack is refused" stops "there is no stack 'mien'" make grade LAB=1 STACK=mien

check "a REPORT that is neither 0 nor 1 is refused" stops "REPORT cannot be 'maybe'" make train VOCAB=none.txt REPORT=maybe
check "a LAB with a PART is refused: the PART would be ignored" stops "LAB and PART are both given" make grade LAB=1 PART=2

every_setting() {
    local unknown
    mapfile -t names < <(grep -oE '\b[A-Z]+=' common/setup/help.txt | tr -d = | sort -u)
    unknown=$(common/setup/check.sh --unknown "${names[@]}" BUILD V CC CFLAGS CUDA OPTIMISE LANG LC_ALL SITE BARE_FULL REAL_DATA)
    echo "${#names[@]} names; unknown: $unknown" > out
    [ "${#names[@]}" -gt 40 ] && [ -z "$unknown" ]
}
check "every setting that the help names exists" every_setting
every_variable_is_passed() {
    local name
    for name in $(grep -v '^#' common/setup/check.sh | grep -oE '[$]\{?[A-Z_]+' | tr -d '\044{' | sort -u); do
        case $name in BASH_SOURCE | LANG | LANGUAGE | LC_* | MAKELEVEL | TMPDIR) continue ;; esac
        sed -n '/^CHECKED = /,/[^\\]$/p' Makefile | grep -qw "$name" || { echo "CHECKED lacks $name" > out && return 1; }
    done
}
check "the Makefile passes check.sh every variable that it reads" every_variable_is_passed
check "a missing TMPDIR is one error" stops "TMPDIR='/nonexistent' is not a writable folder" env TMPDIR=/nonexistent make grade LAB=1
check "a missing compiler is one error" stops "there is no compiler, no-such-compiler" make grade LAB=1 CC=no-such-compiler
check "a build folder that cannot be created is one error" stops "the folder /proc/build is not writable" make grade LAB=1 BUILD=/proc/build

if unshare -rm mount -t tmpfs none build 2> /dev/null; then
    # shellcheck disable=SC2016 # the inner shell's
    check "a build folder on a full disk is one error" stops "the disk of the folder build is full" \
        unshare -rm bash -c 'mount -t tmpfs -o size=2m none build && { head -c 2M /dev/zero > build/full 2> /dev/null; make grade LAB=1; }'
else
    echo "skip - a build folder on a full disk is one error: this user may mount nothing (unshare -rm)"
fi

a_failing_check() {
    rm common && cp -r "$ROOT/common" common # it was a link
    printf '#!/bin/sh\nexit 3\n' > common/setup/check.sh
    ! make help > out 2>&1 && grep -q 'check.sh: 3' out
}
check "make stops if check.sh itself fails" a_failing_check
finish
