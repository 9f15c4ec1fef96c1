/** @file
 * Lab 19: segments of a model, which run one after the other, and again in the backward pass.
 */
#pragma once

#include "grader/labs/lab.h"

/** The kinds of cases: what the segments are. */
typedef enum SegmentKind {
    SEGMENT_BLOCKS, /**< blocks of a transformer, each called once in a pass */
    SEGMENT_ATTENTION, /**< the attention of each block, between a norm and a residual sum, which are not segments */
    SEGMENT_TWICE, /**< blocks, each of them called twice in a pass */
} SegmentKind;

enum { ALL_CALLS = -1 }; /**< the index of a label of all calls of a pass */

/** How often a pass calls each segment. */
static inline int segment_rounds(const Case *c)
{
    return c->kind == SEGMENT_TWICE ? 2 : 1;
}

/** How many calls a pass makes. */
static inline int segment_calls(const Case *c)
{
    return segment_rounds(c) * c->blocks;
}

/** The label of a call in a pass, or of all. */
static inline Label segment_label(What what, int call, int step)
{
    return label_of(what, A_SEGMENT, call, step);
}

/** What a rank does in a case. In each step, all passes run once without recomputation, by the kit
 *  alone; the lab's gradients must equal the gradients of that run bit for bit. */
ScenarioFunction run_segments;

/** In the judge: compares the ranks' multiplications with those of the segment runs that they need,
 *  and their memory with the inputs of the segments and the activations of one segment. */
void compare_work_of_segments(struct Trial *t, const Entry *want);
/** In the judge: fails if right gradients differ in any bit from those without recomputation. */
void compare_bits(struct Trial *t, const Entry *got, const Entry *want);
/** In the judge: why gradients are wrong. */
extern Finder *const segments_reasons[];
