/** @file
 * An instructor's own cases and points, from a file beside the kit (grader/cases.local); its format is described in
 * grader/README.md.
 */
#pragma once

#include "grader/judge/diagnose/result.h"

enum {
    MOST_SEEDS = 8,   /**< seed lines' numbers */
    MOST_SHAPES = 32, /**< shape lines */
};

/** A `shape` line. */
typedef struct LocalShape {
    int lab, line; /**< the lab it is for; its line in the file */
    int world, tp; /**< of the one layout it is for, or 0: every layout of the lab */
    Case sizes;    /**< 0 where the line says nothing */
} LocalShape;

/** What the file says, but for layouts and points. */
typedef struct Local {
    uint64_t seeds[MOST_SEEDS];     /**< whose cases are run beside those of the run's seed */
    LocalShape shapes[MOST_SHAPES]; /**< in the order of the file */
    int seed_count, shape_count;    /**< of these two arrays */
} Local;

/** Reads the file. Layouts and points that it names take effect at once (see lab_set_layouts()).
 *  @return false with `problem`, which names the line */
bool local_read(const char *path, Local *local, Problem *problem);

/** Appends the cases of the shapes for this lab; returns how many there are then. */
int local_cases(const Local *local, const Lab *lab, uint64_t seed, Case *cases, int count);
