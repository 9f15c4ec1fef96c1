/* Lab 1: what each rank must see, from the inputs of all ranks. f: y = x, dx = sum of dy. g: y = sum of x, dx
 * = dy. The gather: y = all x side by side, dx = this rank's part of dy. */
#include <string.h>

#include "backend/reference/arithmetic.h"
#include "grader/judge/judge.h"
#include "grader/judge/plays.h"
#include "grader/judge/suspects.h"
#include "grader/plays/lab01.h"

typedef struct World {
    Play play;
    int rank, suspect;
} World;

static Tensor *input_of(World *world, const char *what, int part, int call, int rank, Shape shape)
{
    char name[NAME_SIZE];
    lab01_name(name, what, part, call);
    return random_input(&world->play, name, rank, shape, false);
}

/* Does a wrong sum leave out this rank's contribution? */
static bool left_out(const World *world, int rank)
{
    return rank != world->rank &&
           (world->suspect == OWN_ONLY || (world->suspect == PAIRS_ONLY && rank != (world->rank ^ 1)));
}

/* In single precision, too, whose errors are measured, each run adds in another order. */
static Tensor *sum_of_all(World *world, const char *what, int part, int call, Shape shape)
{
    Tensor *sum = NULL;
    bool over_world = world->suspect == OTHER_REPLICAS;
    int first = over_world ? 0 : lab01_first(&world->play.c, world->rank),
        count = over_world ? world->play.c.world : world->play.c.tp;
    const Order order = reference_order(count);
    for (int64_t n = 0, k = order.first; n < count; n++, k = order_next(order, k)) {
        const int rank = first + (int)k;
        Tensor *x = left_out(world, rank) ? NULL : input_of(world, what, part, call, rank, shape);
        sum = sum && x ? add(sum, x) : sum ? sum : x;
    }
    return sum;
}

static bool is_gather(int part)
{
    return part == GATHER_LAST || part == GATHER_FIRST;
}

static Shape gathered(const Case *c, int part, int call, Shape shape)
{
    if (is_gather(part))
        shape.size[lab01_dimension(part, call, shape)] *= c->tp;
    return shape;
}

/* Moves block `rank` along the joined dimension between the whole and the part. */
static void block(Tensor *all, Tensor *part_of_it, int dimension, int rank, bool into)
{
    int64_t count = tensor_count(part_of_it), columns = 1, stride;
    for (int i = dimension; i < part_of_it->shape.rank; i++)
        columns *= part_of_it->shape.size[i];
    stride = columns / part_of_it->shape.size[dimension] * all->shape.size[dimension];
    for (int64_t i = 0; i < count; i++) {
        real *whole_one = reals(all) + i / columns * stride + rank * columns + i % columns;
        real *part_one = reals(part_of_it) + i;
        *(into ? whole_one : part_one) = *(into ? part_one : whole_one);
    }
}

static Tensor *output_of(World *world, int part, int call)
{
    const Case *c = &world->play.c;
    Shape shape = lab01_shape(c, call);
    if (part == F)
        return input_of(world, "x", part, call, lab01_shared(&world->play.c, world->rank), shape);
    if (is_gather(part)) {
        Tensor *all = tape_tensor(world->play.tape, REAL, gathered(c, part, call, shape), whole());
        for (int rank = 0; rank < c->tp; rank++)
            block(all, input_of(world, "x", part, call, lab01_first(c, world->rank) + rank, shape),
                  lab01_dimension(part, call, shape), rank, true);
        return all;
    }
    Tensor *sum = sum_of_all(world, "x", part, call, shape);
    Tensor *own = input_of(world, "x", part, call, world->rank, shape);
    if (world->suspect == CHANGED_INPUT)
        own = sum;
    if (part == READ_TWICE)
        return add(sum, gelu(own));
    int64_t width = shape_last(shape);
    if (part == WEIGHT_KEPT) {
        own = input_of(world, "x", part, call, world->rank, shape);
        return add(sum,
                   linear(own, input_of(world, "weight", part, call,
                                        lab01_shared(&world->play.c, world->rank), SHAPE(width, width))));
    }
    return sum;
}

static Tensor *gradient_of(World *world, int part, int call)
{
    const Case *c = &world->play.c;
    Shape shape = lab01_shape(c, call);
    Tensor *dy = input_of(world, "dy", part, call, lab01_shared(&world->play.c, world->rank),
                          gathered(c, part, call, shape));
    Tape *tape = world->play.tape;
    if (part == F) {
        Tensor *sum = sum_of_all(world, "dy", part, call, shape);
        return world->suspect == COUNTED_TWICE
                   ? add(sum, input_of(world, "dy", part, call, world->rank, shape))
                   : sum;
    }
    if (is_gather(part)) {
        Tensor *mine = tape_tensor(tape, REAL, shape, whole());
        block(dy, mine, lab01_dimension(part, call, shape), world->rank % c->tp, false);
        return mine;
    }
    dy = input_of(world, "dy", part, call, lab01_shared(&world->play.c, world->rank), shape);
    if (part == G)
        return dy;
    Tensor *own = input_of(world, "x", part, call, world->rank, shape);
    Tensor *x = world->suspect == CHANGED_INPUT ? sum_of_all(world, "x", part, call, shape) : own;
    if (part == READ_TWICE) {
        Tensor *dx = tape_tensor(tape, REAL, shape, whole());
        kernel_gelu_backward(tensor_count(x), reals(dy), reals(x), reals(dx));
        return add(dy, dx);
    }
    int64_t width = shape_last(shape), rows = shape_count(shape) / width;
    Tensor *dw = tape_tensor(tape, REAL, SHAPE(width, width), whole());
    kernel_linear_backward_weight(rows, width, width, reals(dy), reals(x), reals(dw), false);
    return dw;
}

static void write_part(World *world, int part)
{
    char name[NAME_SIZE];
    Play *play = &world->play;
    for (int call = 0; call < CALLS; call++) {
        Shape shape = lab01_shape(&play->c, call);
        Sizes sizes = {.N = shape_count(gathered(&play->c, part, call, shape)), .part = part};
        lab01_name(name, "forward", part, call);
        traffic_end(play, name, FORWARD_BUDGET, &sizes);
        lab01_name(name, "backward", part, call);
        traffic_end(play, name, BACKWARD_BUDGET, &sizes);
        lab01_name(name, "output", part, call);
        write_values(play, FORWARD, name, output_of(world, part, call));
        lab01_name(name, "gradient", part, call);
        write_values(play, INPUT_GRADIENT, name, gradient_of(world, part, call));
        tape_reset(play->tape, (TapeBatch){.seed = play->c.key});
    }
}

void expect_collectives(const Case *c, int rank, int suspect, Stream stream)
{
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1};
    World world = {.play = {.c = *c, .mesh = &mesh, .stream = stream}, .rank = rank, .suspect = suspect};
    world.play.pool = pool_new(0, false);
    world.play.tape = tape_new(world.play.pool, &mesh);
    int parts = c->kind == LARGE ? G + 1 : PARTS;
    for (int part = 0; part < parts; part++)
        write_part(&world, part);
    tape_free(world.play.tape);
    pool_free(world.play.pool);
}
