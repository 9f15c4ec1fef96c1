#!/usr/bin/env bash
# SAN=1: finds undefined behaviour in a lab, with the line, the kind and the sizes; right labs keep
# their points.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree sanitizers
mkdir build/checked # the tests' programs have the same sanitizers
for part in float generated libbalise.a; do cp -rp "$BUILD/sanitized/$part" build/checked/ 2> /dev/null; done
g='    return group_all_reduce(mesh->world, x);'

# lab_1 CODE: lab 1 is solved, with CODE before the sum of g.
lab_1() {
    copy_solution 1
    awk -v g="$g" -v code="$1" 'NR == 2 { print "#include <stdlib.h>\n#include <string.h>" } $0 == g { print code } { print }' \
        "$(lab_file 1)" > lab.new && mv lab.new "$(lab_file 1)"
}
# finds CODE WORDS...: with SAN=1, in a case of two ranks, CODE fails, and the report has all WORDS.
finds() {
    local words
    lab_1 "$1"
    shift
    grade LAB=1 CASE=5 SAN=1
    [ "$status" != 0 ] || return 1
    for words in "sanitizer: " "at collectives.c:" "HINT:" "$@"; do says "$words" || return 1; done
    grep -q "again: make grade LAB=1 SEED=1 SAN=1 CASE=5" out
}

check "a write past an allocated block is found, with its sizes" finds '    int64_t n = tensor_count(x);
    float *own = malloc((size_t)n * sizeof *own);
    for (int64_t i = 0; i <= n; i++)
        own[i] = 0;
    free(own);' "4 bytes are written outside of an allocated block: 0 bytes past the end of a block of 576 bytes"
check "a read of freed memory is found" finds '    volatile float *own = malloc(40);
    own[3] = 1;
    free((void *)own);
    if (own[3] > 7)
        return x;' "4 bytes are read in memory that was already freed: 12 bytes into a block of 40 bytes"
check "a write past a local array is found, with its name" finds '    float own[5];
    float *volatile at = own;
    at[5] = 1;' "4 bytes are written outside of a local array: '"'own'"'"
check "an index past the end of a local array is found" finds '    volatile float own[5];
    for (volatile int i = 0; i <= 5; i++)
        own[i] = 1;' "index 5 out of bounds for type"
check "a sum that overflows is found" finds '    volatile int most = 0x7fffffff;
    most = most + 1;' "signed integer overflow: 2147483647 + 1"
check "a division by zero is found" finds '    volatile int none = 0;
    none = 7 / none;' "division by zero"
check "an error on a single rank is found" finds '    if (mesh->tp_rank == 1) {
        char *volatile own = malloc(3);
        if (own[mesh->tp_degree + 1] == 5)
            return x;
        free(own);
    }' "1 byte is read outside of an allocated block: 0 bytes past the end of a block of 3 bytes" "(rank 1)"
check "a block that is freed twice is found" finds '    void *volatile own = malloc(8);
    free(own);
    free(own);' "free() is called for a pointer that malloc() did not return, or that was already freed"

copy_solution 8
sed -i 's/^#include "balise.h"/&\n#include <stdlib.h>/; s/^void mesh_init_tp(.*/&\n{\n    char *volatile own = malloc(3);\n    own[tp + 1] = 1;\n    if (own[tp + 1] != 1)\n        abort();/' "$(lab_file 8)"
awk '/^void mesh_init_tp/ { inside = 1 } inside && /^{/ && ++braces == 2 { next } { print }' "$(lab_file 8)" > lab.new && mv lab.new "$(lab_file 8)"
grade LAB=8 CASE=0 SAN=1
check "an error that changes no number is a failure" fails_saying "0 bytes past the end of a block of 3 bytes"

for kind in constructor destructor; do # with the priority of the sanitizers' own
    copy_solution 6
    printf '#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"\n__attribute__((%s(99))) static void own(void) { static volatile int runs; runs++; }\n' "$kind" >> "$(lab_file 6)"
    grade LAB=6 SAN=1
    check "a $kind is refused with sanitizers, too" fails_saying "constructors, destructors and the like"
done

copy_solution 6
sed -i 's/^#include "balise.h"/&\n#include <stdio.h>\nstatic void own(void)\n{\n}\nstatic void (*entry)(void) __attribute__((section(".init_array.00099"))) = own;/' "$(lab_file 6)"
sed -i 's/^    x = duplication(x, mesh);/    int rank = mesh->tp_rank;\n    if (rank + 1 < rank)\n        printf("%p", (void *)\&entry);\n&/' "$(lab_file 6)"
grade LAB=6 SAN=1
check "a constructor that only sanitizers keep is refused" fails_saying "has a section .init_array: "
copy_solution 6
cat >> "$(lab_file 6)" << 'EOF'
static void begin(void)
{
    *(volatile int *)0 = 1;
}
__attribute__((used, section(".init_array.1,\"aw\",@init_array#"))) static void (*const own)(void) = begin;
EOF
grade LAB=6 SAN=1 CASE=0
check "what a lab starts beside the sanitizers runs within a case" fails_saying "store to null pointer of type"
copy_solution 6
grade LAB=6 SAN=1
check "a right lab has full marks with sanitizers, without reports about MPI itself" scores 10/10
check "grading with sanitizers leaves the other runners alone" [ ! -e build/runners/06-student ]

# clang's objects have sections of their own. Builds only a lab's object, not the kit.
clang_compiles() {
    make --silent CC=clang BUILD=build/clang "$@" build/clang/labs/solution/{1,6,11}.o > out 2>&1
}
if clang --version > /dev/null 2>&1; then
    check "a right lab may be compiled with clang" clang_compiles
    rm -rf build/clang
    check "a right lab may be compiled with clang's sanitizers" clang_compiles SANITIZE='-fsanitize=address,undefined -fsanitize-recover=address,undefined'
else
    echo "skip - a right lab may be compiled with clang: clang is not installed"
fi
finish
