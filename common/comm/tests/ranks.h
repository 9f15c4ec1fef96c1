/** @file
 * Sets up MPI for tests on several ranks, and groups of 1, 2, 3 and 4 of them.
 *
 * Each rank runs every test, and all ranks of a group call the same collectives: a test
 * communicates first, then checks.
 */
#pragma once

#include <check.h>
#include <string.h>

#include "comm/comm_parts.h"

enum {
    PIECE = 1 << 15, /**< numbers in a piece: SLOT_NUMBERS, and mpi_piece if a test sets it */
    MOST = 9 * PIECE /**< even a quarter is more than one piece; there are more than SLOTS */
};

static Group *world;

static inline const char *group_name(const Group *group)
{
    return group->name;
}

static inline Counter group_counter(const Group *group, Operation operation)
{
    return group->counter[operation];
}

static inline void group_reset_counters(Group *group)
{
    memset(group->counter, 0, sizeof group->counter);
}

static inline void ranks_up(void)
{
    MPI_Init(NULL, NULL);
    world = group_of(MPI_COMM_WORLD, "world");
}

static inline void ranks_down(void)
{
    group_free(world);
    MPI_Finalize();
}

/** Frees the groups that a test has made. */
static inline void free_groups(void)
{
    while (world->first_child) {
        Group *child = world->first_child;
        world->first_child = child->next_sibling;
        group_free(child);
    }
}

enum { GROUPS_TRIED = 9 /**< group_of_first() takes 1 to 8 */ };

/** Makes one group of the first 1, 2, 3 or 4 ranks, and another of the rest. Returns this rank's
 *  group. Groups 1 to 4 use MPI, 5 to 8 shared memory. */
static inline Group *group_of_first(int i)
{
    const int size = (i - 1) % 4 + 1;
    comm_share_memory(i > 4);
    Group *group = group_split(world, group_rank(world) < size ? 0 : 1, group_rank(world));
    comm_share_memory(false);
    return group;
}
