/* Cases: the situations in which each lab is tested. In the usual sizes, B, S and H differ, so that
 * swapped dimensions show, and each rank has at least two heads, except on eight ranks. At each
 * layout, some sizes are fixed and others are drawn from the seed. */
#include "grader/labs/lab.h"

int draw(Draw *d, int low, int high)
{
    return low + (int)(philox_uniform_at(d->key, d->next++) * (high - low + 1));
}

Case usual_case(const Lab *lab, Draw *d, int tp)
{
    Case c = {.lab = lab->number,
              .world = tp,
              .tp = tp,
              .pp = 1,
              .B = 2,
              .S = 3,
              .H = 24,
              .F = 36,
              .V = 10};
    c.A = tp % 3 == 0 ? 2 * tp : 8;
    c.out = 48;
    c.more_B = alike_on_ranks(&c); /* a buffer that just fits the first batch is too small */
    c.idle = 1;
    if (tp == 8)
        c.F = 40;
    c.p = 0.375; /* not 1/2, which would double what is kept, like a sum over two ranks */
    c.training = 1;
    c.key = ((uint64_t)draw(d, 0, 1 << 23) << 24) | (uint64_t)draw(d, 0, 1 << 23);
    return c;
}

Case usual_replicas(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = usual_case(lab, d, tp);
    c.world = world;
    c.reverse = draw(d, 0, 1);
    c.V = draw(d, 12, 29);
    return c;
}

const char *all_sizes_fit(const Case *c)
{
    return NULL;
}

Case other_sizes(Case c, Draw *d)
{
    c.B = draw(d, 2, 3);
    c.S = 5 + 2 * draw(d, 0, 1);
    c.H = 19 + 2 * draw(d, 0, 4);
    return c;
}

static bool has_heads(const Lab *lab)
{
    return lab->sizes & SIZE_A;
}

/* A width that is not split: the number of ranks does not divide the tensor's size. */
static int any_width(Draw *d, const Case *c, int world)
{
    int width = draw(d, 17, 40);
    while (world > 1 && width * c->B * c->S % world == 0)
        width++;
    return width;
}

Case drawn_case(const Lab *lab, Draw *d, int world)
{
    Case c = usual_case(lab, d, world);
    c.B = world % 2 ? 2 : 3;
    c.S = 5 + 2 * draw(d, 0, 1);
    c.A = 2 * world;
    c.H = c.A * draw(d, 2, 5);
    c.more_B = -c.more_B; /* the last batch of an epoch may be smaller */
    c.idle = 0;
    c.F = world * (5 + 2 * draw(d, 0, 3));
    c.out = world * (1 + 2 * draw(d, 0, 1)); /* less than H here, more in the usual sizes */
    c.V = draw(d, 3, 17);
    if (lab->any_width)
        c.H = any_width(d, &c, world);
    c.reverse = 1;
    if (has_heads(lab)) /* for large x, softmax becomes one-hot, so scale dy instead */
        c.dy_exponent = world % 2 ? -24 : 20;
    else
        c.exponent = world % 2 ? -12 : 20;
    int sixteenths = draw(d, 1, 12);
    c.p = (sixteenths + (sixteenths >= 8)) / 16.0; /* not 1/2, see above */
    if (world == 3)
        c.p = 0; /* with p = 0, dropout must change nothing */
    return c;
}

Case single_case(const Lab *lab, Draw *d, int world)
{
    Case c = usual_case(lab, d, world);
    c.B = c.S = 1;
    c.more_B = c.idle = 0;
    c.H = c.out = world == 8 ? 40 : 36; /* so that weights dominate the memory */
    if (world == 2 && lab->any_width)
        c.H = c.out = 292; /* more than a byte can count */
    c.A = world == 8 ? 8 : world % 3 == 0 ? 6 : 4;
    c.training = world == 2;
    c.delay = 1;
    c.V = 9; /* on four ranks, shards of 3, 3, 3 and 0 rows */
    return c;
}

Case long_case(const Lab *lab, Draw *d, int world)
{
    Case c = usual_case(lab, d, world);
    c.S = 67;
    c.more_B = 0;
    c.A = 10 * world;
    c.H = 2 * c.A;
    if (lab->any_width) {
        c.B = 33;
        c.S = 31;
        c.H = c.out = 34;
        c.F = 2 * world;
        if (!(lab->sizes & SIZE_F))
            c.out = 2 * world;
    }
    return c;
}

/* Many samples: attention has narrow heads, other layers have long rows. */
static Case many_case(const Lab *lab, Draw *d, int world)
{
    Case c = usual_case(lab, d, world);
    c.B = 9;
    c.S = 1;
    c.more_B = 0;
    c.p = NEARLY_ONE;
    c.H = c.A * draw(d, 6, 12);
    c.out = world * draw(d, 25, 60);
    if (has_heads(lab)) {
        c.B = 33;
        c.H = c.A * draw(d, 3, 8);
    } else if (lab->sizes & SIZE_F) {
        c.F = 528;
    } else if (lab->sizes & SIZE_OUT) {
        c.out = 520;
    }
    return c;
}

/* As many heads as ranks, or four heads on one or two ranks. The total number of heads divides the
 * local width, so the kit does not reject a rank that uses all of them. */
static Case few_heads_case(const Lab *lab, Draw *d, int world)
{
    Case c = usual_case(lab, d, world);
    c.A = world < 3 ? 4 : world;
    c.H = world == 3 ? 18 : world < 3 ? 16 : world * world;
    c.B = 1;
    c.S = 5;
    c.training = 0;
    return c;
}

int layer_cases(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    cases[count++] = usual_case(lab, d, world);
    cases[count++] = drawn_case(lab, d, world);
    cases[count++] = single_case(lab, d, world);
    if (world == 2) { /* the smallest world that communicates, where these cost least */
        cases[count++] = long_case(lab, d, world);
        cases[count++] = many_case(lab, d, world);
    }
    if (has_heads(lab))
        cases[count++] = few_heads_case(lab, d, world);
    return count;
}

static Case usual_at(const Lab *lab, Draw *d, int world, int tp)
{
    return lab->usual          ? lab->usual(lab, d, world, tp)
           : lab->has_replicas ? usual_replicas(lab, d, world, tp)
                               : usual_case(lab, d, world);
}

int lab_cases(const Lab *lab, uint64_t seed, Case cases[MAX_CASES])
{
    Draw d = {philox_key(seed, "cases", (uint64_t)lab->number), 0};
    int count = 0, world, tp;
    for (const char *at = lab->layouts; (at = next_layout(at, &world, &tp));)
        if (lab->cases)
            count += lab->cases(lab, &d, world, tp, cases + count);
        else
            cases[count++] = usual_at(lab, &d, world, tp);
    return count;
}

Case lab_usual_case(const Lab *lab, uint64_t seed, int number, int world, int tp)
{
    Draw d = {philox_key(seed, "local cases",
                         (uint64_t)MAX_CASES * (uint64_t)lab->number + (uint64_t)number),
              0};
    return usual_at(lab, &d, world, tp);
}

Case lab_case_with(const Lab *lab, uint64_t seed, int number, int world, int tp, const Case *sizes)
{
    Case c = lab_usual_case(lab, seed, number, world, tp);
    for (int i = 0; i < CASE_SIZES; i++) {
        int32_t size = *case_size_in((Case *)sizes, &case_sizes[i]);
        if (size)
            *case_size_in(&c, &case_sizes[i]) = size;
    }
    return c;
}
