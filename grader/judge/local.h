/** @file
 * An instructor's own cases and points, from the file grader/cases.local; grader/README.md
 * describes its format.
 */
#pragma once

#include "grader/judge/diagnose/result.h"

enum {
    MOST_SEEDS = 8,   /**< seeds in the file */
    MOST_SHAPES = 32, /**< shape lines in the file */
};

/** A `shape` line. */
typedef struct LocalShape {
    int lab, line; /**< the lab; the line's number */
    int world, tp; /**< the only layout that it applies to; 0: all layouts of the lab */
    Case sizes;    /**< the sizes that the line sets; the others are 0 */
} LocalShape;

/** The contents of the file, except layouts and points. */
typedef struct Local {
    uint64_t seeds[MOST_SEEDS];     /**< seeds whose cases run in addition */
    LocalShape shapes[MOST_SHAPES]; /**< in the order of the file */
    int seed_count, shape_count;    /**< lengths of these arrays */
} Local;

/** Reads the file. Its layouts and points take effect at once (see lab_set_layouts()).
 *  @return false with `problem`, which names the line */
bool local_read(const char *path, Local *local, Problem *problem);

/** Appends this lab's cases from shape lines; returns the new number of cases. */
int local_cases(const Local *local, const Lab *lab, uint64_t seed, Case *cases, int count);
