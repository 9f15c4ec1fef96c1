#!/usr/bin/env bash
# Adds a lab 99 to a copy of the kit by the steps of CONTRIBUTING.md ("A new lab"), and grades it.
# Runs beside other tests.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree new_lab
for path in common grader solutions; do # this test writes there
    rm "$path" && cp -rp "$ROOT/$path" "$path"
done

# 1. The text, the solution and the start file.
mkdir {labs,solutions,grader/start}/99-part-of-sum
cat > labs/99-part-of-sum/README.md << 'MD'
# Lab 99: a part of the sum

> **Predict, then measure.** Three ranks run part_of_sum on x of 6 x 40 fp32 elements. How many bytes
> do the ranks send in all? `make predict LAB=99 IS=12345`, then `make measure LAB=99`.
MD
cp labs/99-part-of-sum/README.md labs/99-part-of-sum/README.fr.md
cat > solutions/99-part-of-sum/part-of-sum.c << 'C'
/* Lab 99: each rank gets its rows of the sum over the world. */
#include "balise.h"

/* x [B,H] -> [B/tp,H] */
Tensor *part_of_sum(Tensor *x, const Mesh *mesh)
{
    return group_reduce_scatter(mesh->world, x, 0);
}
C
sed 's/    return .*/    TODO(99); \/* 1 line *\//' solutions/99-part-of-sum/part-of-sum.c > grader/start/99-part-of-sum/part-of-sum.c
# 2. A line in grader/labs.mk.
echo "\$(call add_lab,99,99-part-of-sum/part-of-sum.c,,8 10,part_of_sum)" >> grader/labs.mk
# 3. The declaration of the function to write.
printf '\n/** Lab 99. x [B,H], of which each rank has its own -> [B/tp,H], rows of the sum. */\nTensor *part_of_sum(Tensor *x, const Mesh *mesh);\n' >> common/balise.h
# 4. The record.
cat > grader/labs/lab99.c << 'C'
/* Lab 99, Part of the sum: a reduce-scatter over the world. */
#include "grader/labs/lab.h"

static Shape shape_of(const Case *c)
{
    return SHAPE(c->B * c->tp, c->H);
}

static Label about(What what)
{
    Label label = label_named("part_of_sum");
    label.what = what;
    return label;
}

#ifndef BALISE_DOUBLE
void scenario_99(Scenario *run)
{
    Sizes sizes = {.N = shape_count(shape_of(&run->c))};
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key, .samples = run->samples});
    Tensor *x = random_input(run, "x", group_rank(run->mesh->world), shape_of(&run->c), false);
    at(run, about(FORWARD_PASS_OF));
    traffic_begin(run);
    Tensor *y = part_of_sum(x, run->mesh);
    traffic_end(run, about(FORWARD_OF), FORWARD_BUDGET, &sizes);
    write_values(run, FORWARD, about(OUTPUT_OF), y);
}
#else
static void expect_part(const Case *c, int rank, Stream stream)
{
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1};
    Scenario run = {.c = *c, .mesh = &mesh, .stream = stream, .pool = pool_new(0, false)};
    Sizes sizes = {.N = shape_count(shape_of(c))};
    run.tape = tape_new(run.pool, &mesh);
    traffic_end(&run, about(FORWARD_OF), FORWARD_BUDGET, &sizes);
    Tensor *sum = random_input(&run, "x", 0, shape_of(c), false);
    for (int r = 1; r < c->world; r++)
        sum = add(sum, random_input(&run, "x", r, shape_of(c), false));
    Tensor *part = tape_tensor(run.tape, REAL, SHAPE(c->B, c->H), whole());
    for (int64_t i = 0, count = tensor_count(part); i < count; i++)
        reals(part)[i] = reals(sum)[rank * count + i];
    write_values(&run, FORWARD, about(OUTPUT_OF), part);
    tape_free(run.tape);
    pool_free(run.pool);
}

static Allowance sent(int64_t n, const Sizes *z)
{
    return (Allowance){(n - 1) * z->N, 1};
}

static int cases_at(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    cases[0] = usual_case(lab, d, world);
    cases[1] = drawn_case(lab, d, world);
    return 2;
}

static double bytes_sent(int rank, const Entry *entry, const double *numbers)
{
    return entry->kind == TRAFFIC && entry->count == TRAFFIC_NUMBERS ? 4 * numbers[0] : 0;
}

Lab lab_99 = {
    LAB_FILES_99,
    .title = N_("Part of the sum"),
    .points = {[FORWARD] = 2, [COMMUNICATION] = 1},
    .layouts = "1 2 3",
    .sizes = SIZES_BSH,
    .predict = {.question = N_("Three ranks run part_of_sum on x of 6 x 40 fp32 elements. How many bytes do the ranks send in all?"),
                .unit = N_("bytes"),
                .at = {.world = 3, .tp = 3, .B = 2, .H = 40},
                .count = bytes_sent},
    .kinds = {{.expect = expect_part}},
    .forward = sent,
    .backward = sent,
    .cases = cases_at,
};
#endif
C
# 5. Grading.
make -j2 grade LAB=99 SOLUTION=1 SEED=1 > out 2>&1
status=$?
solved() {
    [ "$status" = 0 ] && says 'Score: 3/3'
}
check "the solution of a lab added by the steps of CONTRIBUTING.md has full marks, and make succeeds" solved
is_predicted() {
    make --silent predict LAB=99 IS=1920 > out 2>&1 && make --silent measure LAB=99 SOLUTION=1 > out 2>&1 && says "The reference: $((4 * (3 - 1) * 6 * 40)) bytes"
}
check "the number of its box can be predicted and measured" is_predicted
has_nothing_to_predict() { # a record without .predict
    cp grader/labs/lab99.c kept.c
    sed -i '/^    .predict = {/,/^                .count/d; /^static double bytes_sent/,/^}/d' grader/labs/lab99.c
    make --silent predict LAB=99 IS=1 > out 2>&1
    says 'lab 99 has no number to predict' && ! make --silent measure LAB=99 SOLUTION=1 > out 2>&1 && says 'lab 99 has no number to predict'
    local ended=$?
    cp kept.c grader/labs/lab99.c
    return "$ended"
}
check "a lab without .predict has no number to predict" has_nothing_to_predict
make start LAB=99 > out 2>&1 && make -j2 grade LAB=99 SEED=1 > out 2>&1
status=$?
is_to_do() {
    [ "$status" != 0 ] && says 'TODO(99) in part_of_sum' && says 'Score: 0/3'
}
check "the start file of a new lab counts as not started" is_to_do
sed -e 's/group_reduce_scatter(mesh->world, x, 0)/group_all_reduce(mesh->world, x)/' solutions/99-*/*.c > labs/99-part-of-sum/part-of-sum.c
make -j2 grade LAB=99 SEED=1 > out 2>&1
status=$?
is_wrong() {
    [ "$status" != 0 ] && says 'Score: 0/3' && says 'too large by a factor'
}
check "a wrong answer to it fails with a reason, and make fails" is_wrong
may_allocate() {
    cp solutions/06-*/*.c kept.c
    sed -i 's/^#include "balise.h"/&\n#include <stdlib.h>\nstatic void *kept;/; s/^    x = duplication(x, mesh);/    free(kept);\n    kept = malloc(10000);\n&/' solutions/06-*/*.c
    make -j2 grade LAB=7 SOLUTION=1 SEED=1 > out 2>&1
    local ended=$?
    grep -q 'kept = malloc' solutions/06-*/*.c || ended=1
    cp kept.c solutions/06-*/*.c
    return "$ended"
}
check "a reference solution may allocate memory, for which the lab that uses it is not blamed" may_allocate
counts_beside_the_hundred() {
    build/grade --list | python3 -c 'import json, sys; labs = json.load(sys.stdin); assert sum(sum(lab["points"].values()) for lab in labs if lab["part"] == 1) == 100 and labs[-1]["part"] == 2'
}
check "labs 1 to 11 still have a hundred points" counts_beside_the_hundred
finish
