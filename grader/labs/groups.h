/** @file
 * Labs 8 and 10: which ranks are in a group, in which order, and what the mesh says about it.
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
/** The sum of the members' world ranks, in an entry about the members of this group; otherwise
 *  0. */
double sum_of_members(const Entry *entry, const double *numbers, GroupName name);
/** The tp group that a rank is in. */
static inline Members tp_group(const Case *c, int rank)
{
    const int groups = replicas_of(c);
    return c->apart ? (Members){rank % groups, groups, c->tp}
                    : (Members){rank / c->tp * c->tp, 1, c->tp};
}
/** The place of a member in its group, from 0. */
static inline int place_in(Members m, int rank)
{
    return (rank - m.first) / m.stride;
}
/** The dp group that a rank must be in. */
Members dp_group(const Case *c, int rank);
