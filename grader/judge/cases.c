/* The situations in which each lab is tried. B, S and H differ, so that swapped dimensions show; each rank has two heads
 * where that can be. At each layout some sizes are always the same and others are drawn from the seed. */
#include <stdlib.h>

#include "grader/judge/judge.h"
#include "grader/plays/lab11.h"

typedef struct Draw {
    PhiloxKey key;
    uint64_t next;
} Draw;

static int draw(Draw *d, int low, int high)
{
    return low + (int)(philox_uniform_at(d->key, d->next++) * (high - low + 1));
}

static Case usual(const Lab *lab, Draw *d, int world)
{
    Case c = {.lab = lab->number, .world = world, .tp = world, .B = 2, .S = 3, .H = 24, .F = 36, .V = 10};
    c.A = world % 3 == 0 ? 2 * world : 8;
    c.out = 48;
    c.more_B = lab->number > 1 && lab->number < 8; /* memory that just fits the first batch */
    c.idle = 1;
    if (world == 8)
        c.F = 40;
    c.p = 0.375; /* not 1/2: what is kept is then not doubled, as a sum over two ranks is */
    c.training = 1;
    c.key = ((uint64_t)draw(d, 0, 1 << 23) << 24) | (uint64_t)draw(d, 0, 1 << 23);
    return c;
}

/* Nothing cuts what goes into these layers. */
static bool has_any_width(const Lab *lab)
{
    return lab->number == 2 || lab->number == 5 || lab->number == 6;
}

/* A width that is cut nowhere, of a tensor whose numbers no number of ranks divides. */
static int any_width(Draw *d, const Case *c, int world)
{
    int width = draw(d, 17, 40);
    while (world > 1 && width * c->B * c->S % world == 0)
        width++;
    return width;
}

/* Other sizes, drawn: all of them distinct, B and S odd or small, a multiple of `world` where something is cut, and none where
 * nothing is; but V is any number, so that the parts of a table can be uneven. */
static Case drawn(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.B = world % 2 ? 2 : 3;
    c.S = 5 + 2 * draw(d, 0, 1);
    c.A = 2 * world;
    c.H = c.A * draw(d, 2, 5);
    c.more_B = -c.more_B; /* the last batch of an epoch may be smaller */
    c.idle = 0;
    c.F = world * (5 + 2 * draw(d, 0, 3));
    c.out = world * (1 + 2 * draw(d, 0, 1)); /* less than H here, and more in the usual sizes */
    c.V = draw(d, 3, 17);
    if (has_any_width(lab))
        c.H = any_width(d, &c, world);
    c.reverse = 1;
    if (lab->number == 1) /* a sum has no size of its own: neither millions nor millionths are to be lost */
        c.exponent = world % 2 ? -24 : 30;
    else if (lab->number == 4 || lab->number == 7) /* attention on thousands is a maximum */
        c.dy_exponent = world % 2 ? -24 : 20;
    else
        c.exponent = world % 2 ? -12 : 20;
    int sixteenths = draw(d, 1, 12);
    c.p = (sixteenths + (sixteenths >= 8)) / 16.0; /* not 1/2, see above */
    return c;
}

static Case single(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.B = c.S = 1;
    c.more_B = c.idle = 0;
    c.H = c.out = world == 8 ? 40 : 36; /* beside a weight, what else a rank holds is little */
    if (world == 2 && has_any_width(lab))
        c.H = c.out = 292; /* more than a byte counts */
    c.A = world == 8 ? 8 : world % 3 == 0 ? 6 : 4;
    c.training = world == 2;
    c.flat = lab->number == 6; /* as a classifier has it */
    c.delay = 1;
    c.V = 9; /* four parts of 3, 3, 3 and 0 rows */
    return c;
}

/* Fewer than there are ranks: not every one has a part of its own. */
static Case few_numbers(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.B = c.S = c.H = 1;
    return c;
}

/* The local width is divisible by the number of all heads, so that a wrong count of heads is not refused. */
static Case few_heads(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.A = world < 3 ? 4 : world;
    c.H = world == 3 ? 18 : world < 3 ? 16 : world * world;
    c.B = 1;
    c.S = 5;
    c.training = 0;
    return c;
}

static Case one_side(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.integers = 1;
    return c;
}

/* Long texts: with ten heads on a rank, and more numbers than fit a page of memory; or, where positions do not meet, of many
 * positions and few weights, more numbers than 16 bits count. */
static Case long_texts(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.B = 2;
    c.S = 67;
    c.more_B = 0;
    c.A = 10 * world;
    c.H = 2 * c.A;
    if (has_any_width(lab)) {
        c.B = 33;
        c.S = 31;
        c.H = 34;
        c.F = 2 * world;
        c.out = lab->number == 2 ? 2 * world : c.H;
    }
    return c;
}

/* Many samples, and rows of many numbers where they cost little. */
static Case many_samples(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.B = 9;
    c.S = 1;
    c.more_B = 0;
    c.flat = lab->number == 6;
    c.H = c.A * draw(d, 6, 12);
    c.out = world * draw(d, 25, 60);
    if (lab->number == 2)
        c.out = 520;
    if (lab->number == 3)
        c.H = 520;
    if (lab->number == 5 || lab->number == 6)
        c.F = 528;
    if (lab->number == 3 || lab->number == 4 || lab->number == 7)
        c.B = 33;
    if (lab->number == 4 || lab->number == 7)
        c.H = c.A * draw(d, 3, 8);
    return c;
}

/* More than a message that MPI keeps for the receiver: who sends it waits, and what is not waited for is not there. */
static Case large(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.kind = 1;
    c.S = world == 2 ? 65 : 17; /* where it costs least, more than 16 bits count */
    c.H = 512;
    c.delay = 1;
    return c;
}

static Case classifier(Case c)
{
    c.kind = 1;
    c.F = c.H;
    return c;
}

static int cases_at(const Lab *lab, Draw *d, int world, Case *cases)
{
    int count = 0;
    cases[count++] = usual(lab, d, world);
    cases[count++] = drawn(lab, d, world);
    cases[count++] = single(lab, d, world);
    if (lab->number > 1 && world == 2) {
        cases[count++] = long_texts(lab, d, world);
        cases[count++] = many_samples(lab, d, world);
    }
    if (lab->number == 1) {
        cases[count++] = one_side(lab, d, world);
        cases[count++] = large(lab, d, world);
        if (world > 2)
            cases[count++] = few_numbers(lab, d, world);
    }
    if (lab->number == 3) {
        cases[count] = one_side(lab, d, world);
        cases[count++].V = world == 2 ? 2049 : 999; /* more than a byte counts */
    }
    if (lab->number == 4 || lab->number == 7)
        cases[count++] = few_heads(lab, d, world);
    if (lab->number == 7) {
        cases[count] = classifier(usual(lab, d, world));
        count++;
        cases[count] = classifier(drawn(lab, d, world));
        count++;
        cases[count] = classifier(world == 2 ? long_texts(lab, d, world) : single(lab, d, world));
        count++;
    }
    return count;
}

/* World and tp apart: labs 8 to 11. */
static Case grouped(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = usual(lab, d, tp);
    c.world = world;
    c.integers = lab->number == 9;
    c.reverse = draw(d, 0, 1);
    c.delay = lab->number == 11;
    c.V = draw(d, 12, 29); /* the rows that lab 11 deals out */
    return c;
}

/* Nothing is cut here but by labs 3 to 7. */
static Case other_sizes(Case c, Draw *d)
{
    c.B = draw(d, 2, 3);
    c.S = 5 + 2 * draw(d, 0, 1);
    c.H = 19 + 2 * draw(d, 0, 4);
    return c;
}

/* A global batch that every number of replicas divides, and sizes that tp divides. */
static Case whole_model(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = grouped(lab, d, world, tp);
    c.kind = WHOLE_MODEL;
    c.B = 12;
    while (c.B % replicas_of(&c))
        c.B += 6;
    c.S = 5 + 2 * draw(d, 0, 1);
    c.A = tp < 3 ? 4 : tp;
    c.H = c.A * draw(d, 3, 5);
    c.p = 0.1;
    return c;
}

static int grouped_cases_at(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    if (lab->number != 11)
        cases[count++] = grouped(lab, d, world, tp);
    if (lab->number == 9) {
        cases[count] = other_sizes(grouped(lab, d, world, tp), d);
        cases[count].integers = 0;
        cases[count].exponent = 12;
        if (world == 4 && tp == 2) { /* thousands of numbers */
            cases[count].S = 33;
            cases[count].H = 64;
        }
        cases[count++].delay = 1;
    }
    for (int kind = DEALING; lab->number == 11 && kind < WHOLE_MODEL; kind++) {
        cases[count] = other_sizes(grouped(lab, d, world, tp), d);
        cases[count].delay = kind != DEALING;
        if (kind ==
            AVERAGING) { /* a mean has no size of its own, and zeros are worth as much as other numbers */
            cases[count].exponent = tp == 1 ? 20 : world == 4 ? -24 : 0;
            cases[count].integers = world == 6;
        }
        cases[count++].kind = kind;
    }
    if (lab->number == 11)
        cases[count++] = whole_model(lab, d, world, tp);
    return count;
}

int lab_cases(const Lab *lab, uint64_t seed, Case cases[MAX_CASES])
{
    Draw d = {philox_key(seed, "cases", (uint64_t)lab->number), 0};
    int count = 0, world, tp;
    for (const char *at = lab->layouts; (at = next_layout(at, &world, &tp));)
        count += lab->number < 8 ? cases_at(lab, &d, world, cases + count)
                                 : grouped_cases_at(lab, &d, world, tp, cases + count);
    return count;
}

Case lab_usual_case(const Lab *lab, uint64_t seed, int number, int world, int tp)
{
    Draw d = {philox_key(seed, "local cases", (uint64_t)MAX_CASES * (uint64_t)lab->number + (uint64_t)number),
              0};
    return lab->number < 8 ? usual(lab, &d, world) : grouped(lab, &d, world, tp);
}
