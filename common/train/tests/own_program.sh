#!/usr/bin/env bash
# make run: a program of the user's own, on the labs.
# shellcheck disable=SC2016,SC2317 # awk expands $; functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/../../../grader/tests/tree.sh"
make_tree own_program
unset MAKELEVEL # as if typed by a user, not run by another make

example=common/train/pair_main.c
runs() { make --silent run "$@" > out 2>&1; }
# same_losses FILE: the losses in out and in FILE differ by rounding at most.
same_losses() {
    [ "$(wc -l < "$1")" = "$(grep -c '^step' out)" ] && paste -d ' ' "$1" <(grep '^step' out) |
        awk '{ d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || !(d <= 1e-5)) bad = 1 } END { exit bad || NR < 40 }'
}
check "the example runs on one rank" runs PROGRAM=$example NTASKS=1
grep '^step' out > one
check "it prints each loss once, and learns" awk '{ last = $4 } NR == 1 { first = $4 } END { exit !(NR == 40 && last < first / 2) }' one
for layout in "NTASKS=2 TP=2" "NTASKS=2 DP=2" "NTASKS=4 TP=2" "NTASKS=4 TP=4" "NTASKS=4 DP=4"; do
    # shellcheck disable=SC2086 # settings are words
    check "the example runs with $layout" runs PROGRAM=$example $layout
    check "with the losses of one rank" same_losses one
done
for lab in 1 3 4 6 7; do copy_solution $lab; done
cp $example "my pair.c"
check "a program with a blank in its name runs on the student's labs" runs PROGRAM="my pair.c" NTASKS=2 TP=2 STACK=mine
check "which are listed, and give the same losses" eval 'grep -q "your labs: 1 3 4 6 7" out && same_losses one'

# a pipeline of the user's own, with dropout: the first stage sends h, the last one dh
cat > pipeline.c << 'END'
#include <stdio.h>
#include "balise_program.h"
int main(int argc, char **argv)
{
    Program *p = program_open(argc, argv);
    const Mesh *mesh = &p->mesh;
    const bool first = mesh->pp_rank == 0, last = mesh->pp_rank + 1 == mesh->pp_degree;
    Tensor *up = first ? parameter(p->builder, "up", SHAPE(8, 4), shard(0)) : NULL;
    Tensor *down = last ? parameter(p->builder, "down", SHAPE(3, 8), shard(1)) : NULL;
    LayerNorm *norm = first ? layer_norm_new(within(p->builder, "norm"), 4) : NULL;
    Dropout *drop = first ? dropout_new(within(p->builder, "drop"), 0.25f) : NULL;
    for (int step = 0; step < 40; step++) {
        float x[8][4], room[8 * 8] = {0};
        int32_t labels[8];
        for (int i = 0; i < 32; i++)
            x[i / 4][i % 4] = (float)((i * 7 + 5 * (i / 4) * (i % 4)) % 11) / 5 - 1;
        for (int i = 0; i < 8; i++)
            labels[i] = i % 3;
        Range mine = program_begin_step(p, 8);
        const int64_t rows = mine.end - mine.begin;
        Tensor *h = first ? dropout(drop, layer_norm(norm, program_reals(p, SHAPE(rows, 4), x[mine.begin]))) : NULL, *y = NULL, *loss = NULL;
        double sum = 0;
        if (first)
            y = h = gelu(linear(duplication(h, mesh), up));
        if (first && !last)
            group_send(mesh->pp, h, 1);
        if (!first) {
            Tensor *received = program_reals(p, SHAPE(rows, 8 / mesh->tp_degree), room);
            group_receive(mesh->pp, received, 0);
            h = leaf(placed(received, shard(LAST)));
        }
        if (last) {
            y = loss = cross_entropy(all_reduce(linear(h, down), mesh), program_ints(p, SHAPE(rows), labels + mine.begin));
            sum = tensor_data(loss)[0];
        }
        Tensor *dh = NULL;
        if (first && !last) {
            dh = program_reals(p, SHAPE(rows, 8 / mesh->tp_degree), room);
            group_receive(mesh->pp, dh, 1);
        }
        program_backward(p, y, dh);
        if (!first)
            group_send(mesh->pp, leaf_gradient(h), 0);
        program_update(p, 0.01);
        group_sum(mesh->world, &sum, 1);
        if (group_rank(mesh->world) == 0)
            printf("step %d: loss %.6f\n", step, sum / mesh->tp_degree / mesh->dp_degree);
    }
    return program_close(p);
}
END
check "a pipeline of the user's own runs as one stage" runs PROGRAM=pipeline.c NTASKS=1
grep '^step' out > one
for layout in "NTASKS=2 PP=2" "NTASKS=4 PP=2 TP=2" "NTASKS=4 PP=2 DP=2"; do
    # shellcheck disable=SC2086 # settings are words
    check "and with $layout" runs PROGRAM=pipeline.c $layout
    check "with the losses of one stage, dropout included" same_losses one
done

# refused WORDS SETTINGS...: one error with these words, one HINT, status 2.
refused() {
    local words=$1
    shift
    ! runs "$@" && [ "$(grep -c '^error: ' out)" = 1 ] && [ "$(grep -c 'HINT: ' out)" = 1 ] && grep -qF -- "$words" out
}
check "make run without a program is refused" refused "make run needs a program"
check "a missing file is refused" refused "cannot be read: none.c" PROGRAM=none.c
check "a folder is refused" refused "cannot be read: labs" PROGRAM=labs
check "NTASKS that is not the product of the degrees is refused" refused "NTASKS=3 cannot be split by TP=2" PROGRAM=$example NTASKS=3 TP=2
check "NTASKS that is no number is refused" refused "NTASKS cannot be 'many'" PROGRAM=$example NTASKS=many
check "a stack that does not exist is refused" refused "there is no stack 'ours'" PROGRAM=$example STACK=ours
check "a setting of make train alone is refused" refused "make run has no setting LR" PROGRAM=$example LR=1
printf '#include "balise_program.h"\nint main(void)\n{\n    return programme();\n}\n' > broken.c
check "a program that does not compile is one error" refused "the program does not compile: broken.c" PROGRAM=broken.c
check "after the compiler's messages, which quote the line" grep -q "| *return programme();" out
printf 'int undeclared(void);\nint main(void)\n{\n    return undeclared();\n}\n' > broken.c
check "a program that does not link is one error" refused "the program does not link: broken" PROGRAM=broken.c
check "after the linker's messages" grep -q "undefined reference to .undeclared" out
# program NAME BODY: a program that opens, then runs BODY.
program() {
    printf '#include <signal.h>\n#include "balise_program.h"\nint main(int argc, char **argv)\n{\n    Program *p = program_open(argc, argv);\n    %s\n    return program_close(p);\n}\n' "$2" > "$1.c"
}
program dies 'if (p->mesh.tp_rank == 1) raise(SIGKILL);  program_begin_step(p, 2);'
check "a rank that dies ends the run with its name" refused "rank 1 was killed by signal 9" PROGRAM=dies.c NTASKS=2 TP=2
program misuses 'program_begin_step(p, 3);'
check "rows that the replicas cannot share are refused" refused "3 rows cannot be split evenly over 2 replicas" PROGRAM=misuses.c NTASKS=2 DP=2
check "at the line of the program" grep -q 'at misuses.c:6' out
program misuses 'program_reals(p, SHAPE(1), (float[]){1});'
check "a tensor before the first step is refused" refused "program_reals: no step has begun" PROGRAM=misuses.c
program misuses 'program_begin_step(p, 1); Tensor *x = program_reals(p, SHAPE(1, 2), (float[]){1, 2}); program_backward(p, x, NULL);'
check "a backward pass from two numbers needs their gradient" refused "program_backward: y is" PROGRAM=misuses.c
program misuses 'Tensor *w = parameter(p->builder, "w", SHAPE(2, 2), shard(0)); program_begin_step(p, 1); linear(program_reals(p, SHAPE(1, 2), (float[]){1, 2}), w);'
check "a placement rule that the program breaks is refused" refused "put x through duplication (f) first" PROGRAM=misuses.c NTASKS=2 TP=2
finish
