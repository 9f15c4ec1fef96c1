/* The situations in which each lab is tried. Sizes are odd and distinct (B, S, H), so that swapped dimensions
 * show; each rank has two heads or more; the second set of sizes is drawn from the seed. */
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
    c.A = world == 3 ? 6 : 8;
    c.out = 48;
    c.p = 0.5;
    c.training = 1;
    c.key = ((uint64_t)draw(d, 0, 1 << 23) << 24) | (uint64_t)draw(d, 0, 1 << 23);
    return c;
}

/* Other sizes, drawn; a multiple of `world` where something is cut. */
static Case drawn(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.B = draw(d, 1, 4);
    c.S = draw(d, 4, 7);
    c.A = 2 * world;
    c.H = c.A * draw(d, 2, 5);
    c.F = world * draw(d, 3, 9);
    c.out = world * draw(d, 2, 7);
    c.V = draw(d, 3, 17);
    c.p = 0.25;
    c.reverse = 1;
    return c;
}

static Case single(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.B = c.S = 1;
    c.H = 12;
    c.A = world == 3 ? 6 : 4;
    c.out = 12;
    c.training = 0;
    c.delay = 1;
    c.V = 9; /* four parts of 3, 3, 3 and 0 rows */
    return c;
}

/* The local width is divisible by the number of all heads, so that a wrong count of heads is not refused. */
static Case few_heads(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.H = world == 3 ? 18 : 16;
    c.A = world == 3 ? 3 : 4;
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

/* More than a message that MPI keeps for the receiver: who sends it waits, and what is not waited for is not there. */
static Case large(const Lab *lab, Draw *d, int world)
{
    Case c = usual(lab, d, world);
    c.kind = 1;
    c.S = 17;
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
    if (lab->number == 1) {
        cases[count++] = one_side(lab, d, world);
        cases[count++] = large(lab, d, world);
    }
    if (lab->number == 3)
        cases[count++] = one_side(lab, d, world);
    if (lab->number == 4 || lab->number == 7)
        cases[count++] = few_heads(lab, d, world);
    if (lab->number == 7) {
        cases[count] = classifier(usual(lab, d, world));
        count++;
        cases[count] = classifier(drawn(lab, d, world));
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

/* A global batch that every number of replicas up to 4 divides, and sizes that tp divides. */
static Case whole_model(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = grouped(lab, d, world, tp);
    c.kind = WHOLE_MODEL;
    c.B = 12;
    c.S = 5;
    c.H = tp == 3 ? 12 : 16;
    c.A = tp == 3 ? 3 : 4;
    c.p = 0.1;
    return c;
}

static int grouped_cases_at(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    if (lab->number != 11)
        cases[count++] = grouped(lab, d, world, tp);
    if (lab->number == 9) {
        cases[count] = grouped(lab, d, world, tp);
        cases[count].integers = 0;
        cases[count++].delay = 1;
    }
    for (int kind = DEALING; lab->number == 11 && kind < WHOLE_MODEL; kind++) {
        cases[count] = grouped(lab, d, world, tp);
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
