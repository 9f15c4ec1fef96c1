/** @file
 * Labs 8 and 10: which ranks are in a group, in which order, and what this rank believes.
 */
#pragma once

#include "grader/labs/lab.h"

/** Which group; the index in its labels. */
typedef enum GroupName {
    TP, /**< mesh->tp */
    DP, /**< mesh->dp */
} GroupName;

/** Writes the group's members, found by an exchange in it, and the rank and degree according to the
 *  mesh. */
void write_group(Scenario *run, GroupName name, Group *group, int rank, int degree);

/** The ranks of a group in order: first, first + stride, ... */
typedef struct Members {
    int first;  /**< a rank of the world */
    int stride; /**< distance to the next */
    int count;  /**< number of ranks */
} Members;
/** The tp group that a rank must be in. */
Members tp_group(const Case *c, int rank);
/** The dp group that a rank must be in. */
Members dp_group(const Case *c, int rank);
