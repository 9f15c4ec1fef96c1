# shellcheck shell=bash
# Sourced by the grader's tests: makes a folder with the kit, in which labs/ is a student's copy
# that the test can change. What does not depend on labs/ is copied from the kit's build instead of
# built again.
set -uo pipefail
ROOT=${ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
BUILD=${BUILD:-$ROOT/build}
[[ $BUILD = /* ]] || BUILD=$ROOT/$BUILD
export -n BUILD # make in the tree builds below the tree, not in the kit's build
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD_HOLDER

# make_tree NAME: makes the tree $BUILD/trees/NAME, sets $tree to its path and changes to it.
make_tree() {
    tree=$BUILD/trees/$1
    rm -rf "$tree"
    mkdir -p "$tree/build/labs"
    local path
    for path in common grader solutions data Makefile; do
        [ -e "$ROOT/$path" ] && ln -s "$ROOT/$path" "$tree/$path"
    done
    cp -r "$ROOT/labs" "$tree/labs"
    local part # what does not depend on labs/
    for part in float double generated labs/solution {libbalise,libbalise-double,judge,scenarios}.a grade enclose; do
        [ -e "$BUILD/$part" ] && cp -rp "$BUILD/$part" "$tree/build/$part"
    done
    cd "$tree" || exit 2
}

lab_file() { # the student's file of a lab
    echo labs/"$(printf %02d "$1")"-*/*.c
}

# copy_solution LAB: the student has solved it.
copy_solution() {
    local file
    file=$(lab_file "$1")
    cp "$ROOT/solutions/${file#labs/}" "$file"
}

failures=0
# check SENTENCE COMMAND...: a test.
check() {
    local sentence=$1
    shift
    if "$@"; then
        echo "ok - $sentence"
    else
        echo "not ok - $sentence"
        [ ! -e out ] || sed 's/^/    | /' out
        failures=$((failures + 1))
    fi
}

# grade ARGUMENTS...: runs make grade; writes the output to the file out, sets $status and $seconds.
grade() {
    local begin=$EPOCHREALTIME
    make --silent SEED=1 grade "$@" > out 2>&1
    status=$?
    # shellcheck disable=SC2034 # for the test
    seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
}

says() { # says WORDS: the report has these words, wherever its lines are broken
    tr -s ' \n' ' ' < out | grep -qF -- "$1"
}
fails_saying() {
    [ "$status" != 0 ] && says "$1"
}
scores() {
    [ "$(grep -c '^Score: ' out)" = 1 ] && [ "$(grep -v '^make' out | tail -1)" = "Score: $1" ]
}
finish() {
    cd "$ROOT" && rm -rf "$tree"
    [ "$failures" = 0 ]
    exit
}
