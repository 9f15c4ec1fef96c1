/* Labs 1 and 9: f, g and the gather, run by ranks, and what each rank must see. */
#include "grader/labs/f_and_g.h"

#include <stdio.h>

#include "grader/labs/groups.h"

#ifdef BALISE_DOUBLE
#include "backend/reference/arithmetic.h"
#endif

Shape operation_shape(const Case *c, int call)
{
    return call != 1 || c->reverse ? SHAPE(c->B, c->S, c->H) /* equal calls, or different sizes */
                                   : SHAPE((c->B + 1) * c->S, c->H / 2 + 1);
}

int operation_dimension(int part, int call, Shape shape)
{
    return part == GATHER_LAST ? shape.rank - 1 : call == 2 ? 1 : 0;
}

static Label labelled(What what, int part, int call)
{
    return label_of(what, AN_OPERATION, part, call);
}

static bool is_gather(int part)
{
    return part == GATHER_LAST || part == GATHER_FIRST;
}

int operation_shared(const Case *c, int rank)
{
    return -1 - tp_group(c, rank).first;
}

void operation_key(char key[KEY_SIZE], const char *what, int part, int call)
{
    snprintf(key, KEY_SIZE, "%s of %s, call %d", what, operation_names[part], call + 1);
}

#ifndef BALISE_DOUBLE
/* ---- what a rank does ------------------------------------------------------------------------------------ */

typedef struct Pass {
    Tensor *x, *y;
} Pass;

/* The inputs of f are the same on every rank of a group; the inputs of the other parts differ. With dy
 * it is the other way round. */
static Pass forward(Scenario *run, int part, int call)
{
    const Mesh *mesh = run->mesh;
    char key[KEY_SIZE];
    Pass pass;
    operation_key(key, "x", part, call);
    int world_rank = group_rank(mesh->world), shared = operation_shared(&run->c, world_rank);
    int rank = part == F ? shared : world_rank;
    pass.x = random_input(run, key, rank, operation_shape(&run->c, call), true);
    if (part == F)
        pass.y = duplication(pass.x, mesh);
    else if (part == G)
        pass.y = all_reduce(pass.x, mesh);
    else if (is_gather(part))
        pass.y = all_gather(
            pass.x, part == GATHER_LAST ? LAST : operation_dimension(part, call, pass.x->shape),
            mesh);
    else if (part == READ_TWICE) { /* g must not have changed what gelu reads */
        Tensor *sum = all_reduce(pass.x, mesh);
        pass.y = add(sum, placed(gelu(pass.x), whole()));
    } else { /* g must not have changed what linear kept for its weight's gradient */
        operation_key(key, "weight", part, call);
        int64_t width = shape_last(pass.x->shape);
        Tensor *w = random_input(run, key, shared, SHAPE(width, width), true);
        Tensor *h = linear(placed(pass.x, whole()), w);
        pass.y = add(all_reduce(pass.x, mesh), h);
        pass.x = w;
    }
    return pass;
}

static void backward(Scenario *run, const Pass *pass, int part, int call)
{
    char key[KEY_SIZE];
    operation_key(key, "dy", part, call);
    int world_rank = group_rank(run->mesh->world);
    int rank = part == F ? world_rank : operation_shared(&run->c, world_rank);
    tape_backward(run->tape, pass->y, random_input(run, key, rank, pass->y->shape, false));
}

static void run_part(Scenario *run, int part)
{
    Pass pass[CALLS];
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key, .samples = run->samples});
    for (int call = 0; call < CALLS; call++) {
        Shape shape = operation_shape(&run->c, call);
        Sizes sizes = {.N = shape_count(shape) * (is_gather(part) ? run->c.tp : 1), .part = part};
        at(run, labelled(FORWARD_PASS_OF, part, call));
        traffic_begin(run);
        pass[call] = forward(run, part, call);
        traffic_end(run, labelled(FORWARD_OF, part, call), FORWARD_BUDGET, &sizes);
    }
    for (int call = 0; call < CALLS; call++) {
        write_values(run, FORWARD, labelled(OUTPUT_OF, part, call), pass[call].y);
    }
    for (int i = 0; i < CALLS; i++) {
        int call = run->c.reverse ? CALLS - 1 - i : i;
        Shape shape = operation_shape(&run->c, call);
        Sizes sizes = {.N = shape_count(shape) * (is_gather(part) ? run->c.tp : 1), .part = part};
        at(run, labelled(BACKWARD_PASS_OF, part, call));
        traffic_begin(run);
        backward(run, &pass[call], part, call);
        traffic_end(run, labelled(BACKWARD_OF, part, call), BACKWARD_BUDGET, &sizes);
        write_values(run, INPUT_GRADIENT, labelled(GRADIENT_OF, part, call),
                     pass[call].x->gradient);
    }
}

/* One replica makes some extra calls: no replica may wait for another. */
static void some_calls_more(Scenario *run)
{
    if (replicas_of(&run->c) < 2 || tp_group(&run->c, group_rank(run->mesh->world)).first > 0)
        return;
    for (int part = F; part <= GATHER_LAST; part++) {
        tape_reset(run->tape, (TapeBatch){.seed = run->c.key, .samples = run->samples});
        at(run, labelled(ITSELF, part, NO_STEP));
        Pass pass = forward(run, part, 0);
        backward(run, &pass, part, 0);
    }
}

void run_operations(Scenario *run)
{
    int parts = run->c.kind == LARGE ? G + 1 : PARTS;
    for (int part = 0; part < parts; part++)
        run_part(run, part);
    some_calls_more(run);
}
#else
/* ---- what a rank must see -------------------------------------------------------------------------------- */

/* f: y = x, dx = sum of dy. g: y = sum of x, dx = dy. The gather: y = all x side by side, dx = this
 * rank's part of dy. */
typedef struct World {
    Scenario run;
    int rank, place; /* place: of the rank in its tp group */
    Members group;
} World;

static Tensor *input_of(World *world, const char *what, int part, int call, int rank, Shape shape)
{
    char key[KEY_SIZE];
    operation_key(key, what, part, call);
    return random_input(&world->run, key, rank, shape, false);
}

/* The sum over the ranks. In emulated single precision, each run adds in a different order, to measure
 * the rounding error. */
static Tensor *sum_of_all(World *world, const char *what, int part, int call, Shape shape)
{
    Tensor *sum = NULL;
    const Members of = world->group;
    const Order order = reference_order(of.count);
    for (int64_t n = 0, k = order.first; n < of.count; n++, k = order_next(order, k)) {
        Tensor *x = input_of(world, what, part, call, of.first + (int)k * of.stride, shape);
        sum = sum ? add(sum, x) : x;
    }
    return sum;
}

static Shape gathered(const Case *c, int part, int call, Shape shape)
{
    if (is_gather(part))
        shape.size[operation_dimension(part, call, shape)] *= c->tp;
    return shape;
}

/* Copies part_of_it to block `rank` of `all` along `dimension` if `into`, otherwise that block to
 * part_of_it. */
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
    const Case *c = &world->run.c;
    Shape shape = operation_shape(c, call);
    if (part == F)
        return input_of(world, "x", part, call, operation_shared(&world->run.c, world->rank),
                        shape);
    if (is_gather(part)) {
        Tensor *all = tape_tensor(world->run.tape, REAL, gathered(c, part, call, shape), whole());
        for (int k = 0; k < c->tp; k++)
            block(all,
                  input_of(world, "x", part, call, world->group.first + k * world->group.stride,
                           shape),
                  operation_dimension(part, call, shape), k, true);
        return all;
    }
    Tensor *sum = sum_of_all(world, "x", part, call, shape);
    Tensor *own = input_of(world, "x", part, call, world->rank, shape);
    if (part == READ_TWICE)
        return add(sum, gelu(own));
    int64_t width = shape_last(shape);
    if (part == WEIGHT_KEPT) {
        own = input_of(world, "x", part, call, world->rank, shape);
        return add(sum, linear(own, input_of(world, "weight", part, call,
                                             operation_shared(&world->run.c, world->rank),
                                             SHAPE(width, width))));
    }
    return sum;
}

static Tensor *gradient_of(World *world, int part, int call)
{
    const Case *c = &world->run.c;
    Shape shape = operation_shape(c, call);
    Tensor *dy = input_of(world, "dy", part, call, operation_shared(&world->run.c, world->rank),
                          gathered(c, part, call, shape));
    Tape *tape = world->run.tape;
    if (part == F)
        return sum_of_all(world, "dy", part, call, shape);
    if (is_gather(part)) {
        Tensor *mine = tape_tensor(tape, REAL, shape, whole());
        block(dy, mine, operation_dimension(part, call, shape), world->place, false);
        return mine;
    }
    dy = input_of(world, "dy", part, call, operation_shared(&world->run.c, world->rank), shape);
    if (part == G)
        return dy;
    Tensor *x = input_of(world, "x", part, call, world->rank, shape);
    if (part == READ_TWICE) {
        Tensor *dx = tape_tensor(tape, REAL, shape, whole());
        kernel_gelu_backward(tensor_count(x), in_full(reals(dy)), reals_or_halves(x),
                             in_full(reals(dx)));
        return add(dy, dx);
    }
    int64_t width = shape_last(shape), rows = shape_count(shape) / width;
    Tensor *dw = tape_tensor(tape, REAL, SHAPE(width, width), whole());
    kernel_linear_backward_weight(rows, width, width, in_full(reals(dy)), in_full(reals(x)),
                                  reals(dw), false);
    return dw;
}

static void write_part(World *world, int part)
{
    Scenario *run = &world->run;
    for (int call = 0; call < CALLS; call++) {
        Shape shape = operation_shape(&run->c, call);
        Sizes sizes = {.N = shape_count(gathered(&run->c, part, call, shape)), .part = part};
        traffic_end(run, labelled(FORWARD_OF, part, call), FORWARD_BUDGET, &sizes);
        traffic_end(run, labelled(BACKWARD_OF, part, call), BACKWARD_BUDGET, &sizes);
        write_values(run, FORWARD, labelled(OUTPUT_OF, part, call), output_of(world, part, call));
        write_values(run, INPUT_GRADIENT, labelled(GRADIENT_OF, part, call),
                     gradient_of(world, part, call));
        tape_reset(run->tape, (TapeBatch){.seed = run->c.key});
    }
}

void expect_operations(const Case *c, int rank, Stream stream)
{
    const Members group = tp_group(c, rank);
    World world = {.run = scenario_alone(c, stream),
                   .rank = rank,
                   .place = place_in(group, rank),
                   .group = group};
    int parts = c->kind == LARGE ? G + 1 : PARTS;
    for (int part = 0; part < parts; part++)
        write_part(&world, part);
    scenario_close(&world.run);
}

double bytes_of_f_and_g(int rank, const Entry *entry, const double *numbers)
{
    const bool first_call = entry->label.step == 0 && entry->count == TRAFFIC_NUMBERS;
    const bool counts = is_operation(entry, F) || is_operation(entry, G);
    return entry->kind == TRAFFIC && first_call && counts ? 4 * numbers[0] : 0;
}

Allowance operations_send_forward(int64_t n, const Sizes *z)
{
    return z->part == F              ? (Allowance){0, 1}
           : is_gather((int)z->part) ? (Allowance){sent_by_all_gather(n, z->N), 1}
                                     : (Allowance){sent_by_all_reduce(n, z->N), 1};
}

Allowance operations_send_backward(int64_t n, const Sizes *z)
{
    return (Allowance){z->part == F ? sent_by_all_reduce(n, z->N) : 0, 1};
}

Summand operation_summand(Scenario *run, const Entry *want, int of, int on)
{
    char key[KEY_SIZE];
    const bool forward = want->label.what == OUTPUT_OF && is_operation(want, G);
    if (!forward && !(want->label.what == GRADIENT_OF && is_operation(want, F)))
        return (Summand){0};
    operation_key(key, forward ? "x" : "dy", want->label.index, want->label.step);
    return (Summand){random_input(run, key, of, want->shape, false),
                     tp_group(&run->c, of).first == tp_group(&run->c, on).first, 1};
}
#endif
