/** @file
 * Lab 15: a reduce-scatter and an all-gather around a ring.
 */
#pragma once

#include "grader/labs/groups.h"

/** The parts of a case; the index in their labels. */
typedef enum RingPart {
    RING_REDUCE_SCATTER, /**< ring_reduce_scatter() */
    RING_ALL_GATHER,     /**< ring_all_gather() */
    RING_PARTS,          /**< how many there are */
} RingPart;
/** The functions, for reports. */
static const char *const ring_functions[RING_PARTS] = {"ring_reduce_scatter", "ring_all_gather"};

/** Calls of each part; the second has a tensor of a different size. */
enum { RING_CALLS_OF_PART = 3 };

enum {
    RING_EXTREMES = 3, /**< the number of counts that only ring_chunk() is tested with */
    RING_MANY = 196, /**< the number of chunks; in floating point, 2.0 / 196 * 196 is less than 2 */
};
/** The counts that only ring_chunk() is tested with: a count smaller than the number of chunks, and
 *  two too large for an int, of which RING_MANY divides only the first. */
static const int64_t ring_extremes[RING_EXTREMES] = {2, 5000000180, 5000000033};
/** The label of the chunks of such a count: where each begins and ends. */
static inline Label ring_extreme_label(int extreme)
{
    return label_of(VALUE_OF, A_RING, RING_PARTS, extreme);
}

/** How many numbers x has in a call. */
int64_t ring_count(const Case *c, int call);

/** The check of a part's numbers. */
static inline Check ring_check(int part)
{
    return part == RING_REDUCE_SCATTER ? RING_SUM : RING_GATHER;
}

/** A label of a call of a part. */
static inline Label ring_label(What what, int part, int call)
{
    return label_of(what, A_RING, part, call);
}

/** What rank `rank` of the world has before a reduce-scatter: [count]. For the all-gather: what
 *  every rank of the group must have in the end; before the call, a rank has only its own chunk of
 *  it. */
Tensor *ring_input(Scenario *run, int part, int call, int rank);
/** What a rank has instead of the other chunks before an all-gather: [count]. */
Tensor *ring_rest(Scenario *run, int call, int rank);

/** In the judge: checks to whom each rank sends, how much, and in how many rounds. */
void compare_ring(struct Trial *t);
/** In the judge: why chunks are wrong. */
extern Finder *const ring_reasons[];
/** In the judge: appends a sentence if each rank of a ring waits for the next one to receive, or to
 *  send. */
void ring_ending(const struct Trial *t, char *text, size_t size);
