#!/usr/bin/env bash
# Which wrong and unusual right answers make mutants.sh fail. Runs beside other tests.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree mutants_red
rm grader && cp -rp "$ROOT/grader" grader # keeps the times, so that nothing is built again
rm grader/{mutants,accepts}/*.txt

# answers KIND TEXT: runs only these answers; writes the output to the file out, sets $status.
answers() {
    rm -f grader/{mutants,accepts}/06-colrow-pair.txt
    printf '# Planted.\n\n%s\n' "$2" > "grader/$1/06-colrow-pair.txt"
    ROOT=$tree BUILD=build bash grader/tests/mutants.sh > out 2>&1
    status=$?
}
is_green() { [ "$status" = 0 ]; }
is_red() { [ "$status" != 0 ] && grep -q "$1" out; }
listed() { [ "$(grep -c '^said otherwise: .*expected "word.*the report: "linear: .*put x through duplication' out)" = "$1" ]; }

answers mutants '[no_f] fails: input gradient; says: word 1; says: word 2; says: word 3
-x = duplication(x, mesh);'
check "three sentences other than the expected ones leave a run with a caught wrong answer green" is_green
check "each of them is listed with both wordings" listed 3
answers mutants '[no_f] fails: input gradient; says: word 1; says: word 2; says: word 3; says: word 4
-x = duplication(x, mesh);'
check "the fourth makes the run red" is_red '^mutation score 1/1'
check "all four sentences are listed" listed 4
answers mutants '[two_names] fails: input gradient
-x = duplication(x, mesh);
+Tensor *whole = duplication(x, mesh);
-linear(x, layer->up)
+linear(whole, layer->up)'
check "a wrong answer that is not caught is red" is_red '^survivor: lab 6 mutant two_names: .*input gradient does not fail'
answers mutants '[no_f] fails: input gradient; says: put x through
-x = duplication(x, mesh);
+x = duplicate(x, mesh);'
check "a wrong answer that does not build is red, if other words were expected" is_red '^survivor: lab 6 mutant no_f: does not say: put x through'
answers accepts '[no_f] expects: full
-x = duplication(x, mesh);'
check "a right answer that is rejected is red" is_red '^survivor: lab 6 accept no_f'

verdict() {
    build/grade --lab 6 --author mutant --runners build/mutants/accepts/06-no_f --seed 1 --margins "$@" | sed -E 's/, [0-9.]+ s\)//'
}
same_from_files() {
    mkdir expected
    verdict > as_ever
    verdict --expected expected > computed
    [ "$(find expected -type f | wc -l)" -gt 10 ] && cmp as_ever computed || return
    verdict --expected expected > taken
    cmp as_ever taken
}
check "expected values stored by an earlier answer give the same verdict, margins included" same_from_files

answers mutants '[no_f] fails: input gradient
-x = duplication(y, mesh);'
check "a change of text that the solution lacks is an error with its line" is_red \
    '^error: grader/mutants/06-colrow-pair.txt:3: 06-no_f: this occurs 0 times in the solution'
answers mutants '[no_f] fails: input gradient
-layer->
+the_layer->'
check "a change of text that occurs more than once is an error" is_red '06-no_f: this occurs [0-9]* times in the solution'
finish
