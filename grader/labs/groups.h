/** @file
 * Labs 8 and 10: who is in a group, in which order, and what this rank believes to be in it.
 */
#pragma once

#include "grader/labs/lab.h"

/** Which group: the index of its labels. */
typedef enum GroupName {
    TP, /**< mesh->tp */
    DP, /**< mesh->dp */
} GroupName;

/** Writes the members of the group, found out by an exchange in it, and the rank and degree that the mesh says. */
void write_group(Scenario *run, GroupName name, Group *group, int rank, int degree);

/** The ranks of a group in order: first, first + stride, ... */
typedef struct Members {
    int first;  /**< its rank of the world */
    int stride; /**< from one to the next */
    int count;  /**< of the ranks */
} Members;
/** The sum of the members' numbers in the world, in an entry about the members of this group; else 0. */
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
