#!/usr/bin/env bash
# What makes a run of the wrong and the unusual right answers fail. Runs beside other tests.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree mutants_red
cp -rp "$BUILD/labs" build/
rm grader && cp -r "$ROOT/grader" grader
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
listed() { [ "$(grep -c '^said otherwise: .*expected "word.*the report: "linear: .*put it through duplication' out)" = "$1" ]; }

answers mutants '[no_f] fails: input gradient; says: word 1; says: word 2; says: word 3
-x = duplication(x, mesh);'
check "a wrong answer that is caught is green with three sentences that are not those expected" is_green
check "each of which is listed with both wordings" listed 3
answers mutants '[no_f] fails: input gradient; says: word 1; says: word 2; says: word 3; says: word 4
-x = duplication(x, mesh);'
check "the fourth is red" is_red '^mutation score 1/1'
check "and all are listed" listed 4
answers mutants '[two_names] fails: input gradient
-x = duplication(x, mesh);
+Tensor *whole = duplication(x, mesh);
-linear(x, layer->up)
+linear(whole, layer->up)'
check "a wrong answer that is not caught is red" is_red '^survivor: lab 6 mutant two_names: .*input gradient does not fail'
answers mutants '[no_f] fails: input gradient; says: put it through
-x = duplication(x, mesh);
+x = duplicate(x, mesh);'
check "so is one that does not build, where other words were expected" is_red '^survivor: lab 6 mutant no_f: does not say: put it through'
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
check "an expectation that an earlier answer has left in a file gives the same verdict, margins too" same_from_files

answers mutants '[no_f] fails: input gradient
-x = duplication(y, mesh);'
check "a change of a text that the solution has not is an error that says where it stands" is_red \
    '^error: grader/mutants/06-colrow-pair.txt:3: 06-no_f: this stands 0 times in the solution'
answers mutants '[no_f] fails: input gradient
-layer->
+the_layer->'
check "so is a text that it has more than once" is_red '06-no_f: this stands [0-9]* times in the solution'
finish
