#!/usr/bin/env bash
# make debug: gdb on one rank of a case, with the real gdb and commands from a file.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
if ! command -v gdb > /dev/null; then
    echo "skip - make debug: gdb is not installed"
    exit 0
fi
make_tree debug
unset STACK SEED LAB

debug() { # debug COMMANDS ARGUMENTS...: runs make debug with these commands of gdb, one per line
    printf '%b' "$1" | timeout 300 make --silent debug "${@:2}" > out 2>&1
    status=$?
}
one_error() { # one_error WORDS ARGUMENTS...
    debug '' "${@:2}"
    [ "$status" = 2 ] && [ "$(grep -c '^error: ' out)" = 1 ] && [ "$(grep -c 'HINT: ' out)" = 1 ] && says "$1"
}
nothing_is_left() { # waits a while, because other tests have short-lived folders there too
    local folder tries folders
    mapfile -t folders < <(find /dev/shm -maxdepth 1 -name 'balise.*' -newer start 2> /dev/null)
    for folder in "${folders[@]}"; do
        for ((tries = 0; tries < 600; tries++)); do
            [ -e "$folder" ] || break
            sleep 0.1
        done
        [ ! -e "$folder" ] || return 1
    done
}
touch start
stops_in_the_lab() {
    debug 'bt 1\ninfo locals\n' LAB=6 RANK=1 SEED=3
    [ "$status" = 0 ] && says "gdb is attached to rank 1" && says "at labs/06-colrow-pair/colrow-pair.c:" && says "#0 col_row_linear_pair_new"
}
shows_every_variable() { # even one that is not used after its line
    copy_solution 6
    debug 'delete\nbreak col_row_linear_pair_forward\ncontinue\nnext\nnext\ninfo args\ninfo locals\n' LAB=6 RANK=1 SEED=3 CASE=3
    [ "$status" = 0 ] && says "mesh = 0x" && says "layer = 0x" && says "h = 0x" && ! grep -q 'optimized out' out
}
shows_tensors() {
    debug 'delete\nbreak col_row_linear_pair_forward\ncontinue\nprint *x\nfinish\nprint *$\n' LAB=6 RANK=1 SEED=3 CASE=3
    [ "$status" = 0 ] && grep -q '= \[2,3,24\] whole: ' out && grep -qE '= \[2,3,48\] whole:( -?[0-9.e+-]+){6} \.\.\.$' out
}
calls_tensor_print() {
    if grep -q "Couldn't write extended state status" out; then # on this kernel, gdb calls no function
        echo "skip - gdb can call tensor_print: $(grep -o "Couldn't write.*" out)"
    else
        check "gdb can call tensor_print" grep -q 'rank 1: seen \[2,3,24\] whole' out
    fi
}
goes_to_the_end() {
    debug 'delete\ncontinue\n' LAB=6 RANK=0 SEED=3 CASE=1
    [ "$status" = 0 ] && says "exited normally" && says "SEED=3 CASE=1"
}
takes_what_failed() {
    sed -i 's/gelu(linear(x, layer->up))/linear(x, layer->up)/' "$(lab_file 6)"
    make --silent grade LAB=6 SEED=77 > out 2>&1
    local case
    case=$(sed -nE 's/.*again: make grade .*CASE=([0-9]+).*/\1/p' out | head -1)
    debug 'bt 1\nquit\n' LAB=6
    [ -n "$case" ] && says "SEED=77 CASE=$case:" && says "#0 col_row_linear_pair_forward"
}
does_not_build() {
    echo 'typo' >> "$(lab_file 6)"
    debug '' LAB=6
    [ "$status" != 0 ] && says "does not build"
}

copy_solution 6
check "gdb stops in the lab, on the requested rank, and shows the line" stops_in_the_lab
check "gdb finds every variable" shows_every_variable
check "print *x shows a tensor's shape, placement and first numbers" shows_tensors
debug 'delete\nbreak col_row_linear_pair_forward\ncontinue\ncall tensor_print("seen", x, mesh)\n' LAB=6 RANK=1 SEED=3 CASE=3
calls_tensor_print
check "a rank that continues runs to the end of the chosen case" goes_to_the_end
check "the ranks leave no files behind" nothing_is_left
check "without SEED and CASE, gdb shows the case that failed last, and stops in the forward pass" takes_what_failed
check "a lab that does not build is reported as such" does_not_build
check "a RANK out of range is one error" one_error "RANK cannot be" LAB=1 RANK=9
check "the HINT about a RANK out of range is not about make grade" eval '! says "make grade"'
check "a RANK that the case does not have is one error" one_error "this case has ranks 0 to" LAB=1 RANK=7
check "a missing LAB is one error" one_error "LAB is missing"
finish
