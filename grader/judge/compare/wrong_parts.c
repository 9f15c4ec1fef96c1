/* The operations of wrong_operations.h that compute with a mistake, and their backward passes. */
#include "grader/judge/compare/wrong_operations.h"

#include <stdlib.h>

#include "grader/labs/groups.h"

/* A tensor of two numbers that an operation keeps for its backward pass. */
static Tensor *kept_numbers(Tape *tape, double first, double second)
{
    Tensor *kept = tape_tensor(tape, REAL, SHAPE(2), whole());
    reals(kept)[0] = (real)first;
    reals(kept)[1] = (real)second;
    return kept;
}

static Node *on_tape(const char *name, void (*backward)(Node *node, Tensor *dy), Tensor *x,
                     Tensor *y, Tensor *kept)
{
    Node *node = tape_operation(x->tape, name, backward, y, 1, &x);
    if (node)
        node_keep(node, 0, kept);
    return node;
}

static Tensor *like(Tensor *x)
{
    return tape_tensor(x->tape, REAL, x->shape, whole());
}

static double kept_number(const Node *node, int i)
{
    return reals(node->saved[0])[i];
}

static void scaled_gradient(Node *node, Tensor *dy)
{
    Tensor *dx = like(dy);
    for (int64_t i = 0; i < tensor_count(dy); i++)
        reals(dx)[i] = (real)kept_number(node, 0) * reals(dy)[i];
    gradient_add(node->input[0], dx);
}

Tensor *with_gradient_times(Tensor *x, double factor)
{
    Tensor *y = tape_view(x->tape, ready(x), whole());
    on_tape("wrong gradient", scaled_gradient, x, y, kept_numbers(x->tape, factor, 0));
    return y;
}

/* ---- dropout ------------------------------------------------------------------------------------------- */

/* Dropout as if each rank drew the mask of the first columns for its own columns.
 * @param kept [rows, words]: the mask of one rank's columns */
static Tensor *repeated_dropout(double probability, const Tensor *kept, Tensor *x, int ranks)
{
    int64_t columns = shape_last(x->shape), mine = columns / ranks,
            rows = tensor_count(x) / columns;
    Shape shape = SHAPE(rows, mine);
    Tensor *y = like(x);
    for (int k = 0; k < ranks; k++) {
        Tensor *part_of_x = tape_tensor(x->tape, REAL, shape, whole()),
               *part_of_y = tape_tensor(x->tape, REAL, shape, whole());
        kernel_copy_rows(rows, mine, reals(x) + k * mine, columns, reals(part_of_x), mine);
        kernel_dropout(DROPOUT, rows, mine, probability, (const uint32_t *)ints(kept), NULL,
                       reals(part_of_x), reals(part_of_y));
        kernel_copy_rows(rows, mine, reals(part_of_y), mine, reals(y) + k * mine, columns);
    }
    return y;
}

static void repeated_dropout_gradient(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], repeated_dropout(node->with.probability, node->saved[1], dy,
                                                  (int)kept_number(node, 0)));
}

Tensor *dropout_repeated(Tensor *x, const char *name, double probability, int ranks)
{
    const TapeBatch *batch = &x->tape->batch;
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns,
            mine = columns / ranks;
    DropoutMask mask = {.key = philox_key(batch->seed, name, (uint64_t)batch->step),
                        .probability = probability,
                        .samples = batch->samples,
                        .positions = x->shape.rank == 3 ? x->shape.size[1] : 1};
    Tensor *kept = tape_tensor(x->tape, INT32, SHAPE(rows, dropout_words(mine)), whole());
    kernel_dropout_draw(rows, mine, &mask, (uint32_t *)ints(kept));
    Tensor *y = repeated_dropout(probability, kept, ready(x), ranks);
    Node *node =
        on_tape("dropout", repeated_dropout_gradient, x, y, kept_numbers(x->tape, ranks, 0));
    if (node) {
        node->with.probability = probability;
        node_keep(node, 1, kept);
    }
    return y;
}

static void first_positions_gradient(Node *node, Tensor *dy)
{
    const int64_t columns = shape_last(dy->shape), rows = tensor_count(dy) / columns;
    Tensor *dx = like(dy);
    kernel_dropout(DROPOUT, rows, columns, node->with.probability,
                   (const uint32_t *)ints(node->saved[0]), NULL, reals(dy), reals(dx));
    gradient_add(node->input[0], dx);
}

Tensor *dropout_of_first_positions(Tensor *x, const char *name, double probability, int ranks)
{
    const TapeBatch *batch = &x->tape->batch;
    const int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns,
                  texts = x->shape.size[0];
    int64_t *samples = malloc((size_t)(texts * ranks) * sizeof *samples);
    for (int64_t i = 0; i < texts * ranks; i++)
        samples[i] = batch->samples[i / ranks];
    const DropoutMask mask = {.key = philox_key(batch->seed, name, (uint64_t)batch->step),
                              .probability = probability,
                              .samples = samples,
                              .positions = x->shape.size[1] / ranks};
    Tensor *kept = tape_tensor(x->tape, INT32, SHAPE(rows, dropout_words(columns)), whole());
    kernel_dropout_draw(rows, columns, &mask, (uint32_t *)ints(kept));
    free(samples);
    Tensor *y = like(x);
    kernel_dropout(DROPOUT, rows, columns, probability, (const uint32_t *)ints(kept), NULL,
                   reals(ready(x)), reals(y));
    Node *node = on_tape("dropout", first_positions_gradient, x, y, kept);
    if (node)
        node->with.probability = probability;
    return y;
}

Tensor *as_length(Tensor *mask)
{
    int64_t positions = mask->shape.size[1];
    mask = tape_ints(mask->tape, mask->shape, ints(mask));
    for (int64_t row = 0; row < tensor_count(mask); row += positions) {
        int64_t length = 0;
        for (int64_t s = 0; s < positions; s++)
            length += ints(mask)[row + s] != 0;
        for (int64_t s = 0; s < positions; s++)
            ints(mask)[row + s] = s < length;
    }
    return mask;
}

/* ---- columns ------------------------------------------------------------------------------------------- */

/* The index of the element that replaces element i: from another column of the same row. */
static int64_t column_for(const Tensor *x, int64_t i, int ranks, Rearranged how)
{
    const int64_t columns = shape_last(x->shape), mine = columns / ranks, column = i % columns;
    if (how == DEALT_OUT)
        return i - column + column % mine * ranks + column / mine;
    if (how != OF_WORLD_RANK)
        return i - column + column % mine;
    const Case *c;
    mistake_now(&c);
    const Members group = tp_group(c, 0);
    return i - column + (group.first + column / mine * group.stride) % ranks * mine + column % mine;
}

static void rearranged_gradient(Node *node, Tensor *dy)
{
    const int ranks = (int)kept_number(node, 0), how = (int)kept_number(node, 1);
    Tensor *dx = like(dy);
    for (int64_t i = 0; i < tensor_count(dy); i++)
        reals(dx)[i] = 0;
    for (int64_t i = 0; i < tensor_count(dy); i++) {
        const int64_t other = how == OF_WORLD_RANK ? i : column_for(dy, i, ranks, (Rearranged)how);
        if (how == OWN_ONLY_BACKWARDS && other != i)
            continue;
        reals(dx)[how == BACKWARDS ? i : other] += reals(dy)[how == BACKWARDS ? other : i];
    }
    gradient_add(node->input[0], dx);
}

Tensor *rearranged(Tensor *x, int ranks, Rearranged how)
{
    if (shape_last(x->shape) % ranks)
        return x;
    Tensor *y = like(x);
    const real *from = reals(ready(x));
    for (int64_t i = 0; i < tensor_count(x); i++)
        reals(y)[i] =
            from[how == BACKWARDS || how == OWN_ONLY_BACKWARDS ? i : column_for(x, i, ranks, how)];
    on_tape("columns", rearranged_gradient, x, y, kept_numbers(x->tape, ranks, how));
    return y;
}
