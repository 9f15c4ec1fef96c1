#include "grader/plays/lab01.h"

typedef struct Pass {
    Tensor *x, *y;
} Pass;

/* What f is given is the same on every rank, what the others are given is not; f's dy differs, the others'
 * does not. */
static Pass forward(Play *play, int part, int call)
{
    const Mesh *mesh = play->mesh;
    char name[NAME_SIZE];
    Pass pass;
    lab01_name(name, "x", part, call);
    int world_rank = group_rank(mesh->world), shared = lab01_shared(&play->c, world_rank);
    int rank = part == F ? shared : world_rank;
    pass.x = random_input(play, name, rank, lab01_shape(&play->c, call), true);
    if (part == F)
        pass.y = duplication(pass.x, mesh);
    else if (part == G)
        pass.y = all_reduce(pass.x, mesh);
    else if (part == GATHER_LAST || part == GATHER_FIRST)
        pass.y =
            all_gather(pass.x, part == GATHER_LAST ? LAST : lab01_dimension(part, call, pass.x->shape), mesh);
    else if (part == READ_TWICE) { /* g must not have changed what gelu reads */
        Tensor *sum = all_reduce(pass.x, mesh);
        pass.y = add(sum, placed(gelu(pass.x), whole()));
    } else { /* nor what linear has kept for its weight's gradient */
        lab01_name(name, "weight", part, call);
        int64_t width = shape_last(pass.x->shape);
        Tensor *w = random_input(play, name, shared, SHAPE(width, width), true);
        Tensor *h = linear(placed(pass.x, whole()), w);
        pass.y = add(all_reduce(pass.x, mesh), h);
        pass.x = w;
    }
    return pass;
}

static void backward(Play *play, const Pass *pass, int part, int call)
{
    char name[NAME_SIZE];
    lab01_name(name, "dy", part, call);
    int world_rank = group_rank(play->mesh->world);
    int rank = part == F ? world_rank : lab01_shared(&play->c, world_rank);
    tape_backward(play->tape, pass->y, random_input(play, name, rank, pass->y->shape, false));
}

static void play_part(Play *play, int part)
{
    static const char *const short_names[PARTS] = {"f", "g", "all_gather", "all_gather", "g", "g"};
    Pass pass[CALLS];
    char name[NAME_SIZE];
    tape_reset(play->tape, (TapeBatch){.seed = play->c.key, .samples = play->samples});
    for (int call = 0; call < CALLS; call++) {
        Shape shape = lab01_shape(&play->c, call);
        Sizes sizes = {.N = shape_count(shape) *
                            (part == GATHER_LAST || part == GATHER_FIRST ? play->c.tp : 1),
                       .part = part};
        at(play, "%s, forward, call %d", short_names[part], call + 1);
        traffic_begin(play);
        pass[call] = forward(play, part, call);
        lab01_name(name, "forward", part, call);
        traffic_end(play, name, FORWARD_BUDGET, &sizes);
    }
    for (int call = 0; call < CALLS; call++) {
        lab01_name(name, "output", part, call);
        write_values(play, FORWARD, name, pass[call].y);
    }
    for (int i = 0; i < CALLS; i++) {
        int call = play->c.reverse ? CALLS - 1 - i : i;
        Shape shape = lab01_shape(&play->c, call);
        Sizes sizes = {.N = shape_count(shape) *
                            (part == GATHER_LAST || part == GATHER_FIRST ? play->c.tp : 1),
                       .part = part};
        at(play, "%s, backward, call %d", short_names[part], call + 1);
        traffic_begin(play);
        backward(play, &pass[call], part, call);
        lab01_name(name, "backward", part, call);
        traffic_end(play, name, BACKWARD_BUDGET, &sizes);
        lab01_name(name, "gradient", part, call);
        write_values(play, INPUT_GRADIENT, name, pass[call].x->gradient);
    }
}

/* A replica has nothing to wait for in another: one of them makes some calls more. */
static void some_calls_more(Play *play)
{
    if (replicas_of(&play->c) < 2 || group_rank(play->mesh->world) >= play->c.tp)
        return;
    for (int part = F; part <= GATHER_LAST; part++) {
        tape_reset(play->tape, (TapeBatch){.seed = play->c.key, .samples = play->samples});
        at(play, "once more, in the first replica only");
        Pass pass = forward(play, part, 0);
        backward(play, &pass, part, 0);
    }
}

void PLAY(Play *play)
{
    int parts = play->c.kind == LARGE ? G + 1 : PARTS;
    for (int part = 0; part < parts; part++)
        play_part(play, part);
    some_calls_more(play);
}
