/** @file
 * Labs 8, 10 and 14: which ranks are in a group, in which order, and what the mesh says about it.
 */
#pragma once

#include "grader/labs/lab.h"

/** Which group; the index in its labels. */
typedef enum GroupName {
    TP,   /**< mesh->tp */
    DP,   /**< mesh->dp */
    PP,   /**< mesh->pp */
    AXES, /**< how many there are */
} GroupName;
extern const char *const group_names[AXES]; /**< "tp", "dp", "pp" */

/** Writes the members of one of the mesh's groups, found by an exchange in it, and the rank and
 *  degree according to the mesh. */
void write_group(Scenario *run, GroupName name);

/** The ranks of a group in order: first, first + stride, ... */
typedef struct Members {
    int first;  /**< a rank of the world */
    int stride; /**< distance to the next */
    int count;  /**< number of ranks */
} Members;
/** In the judge: writes what write_group() must write on this rank. */
void write_expected_group(Stream *stream, const Case *c, GroupName name, int rank);
/** What rank 5 gets from a sum of the members' world ranks over its group. */
CountFunction tp_sum_on_rank_5, dp_sum_on_rank_5;
/** The group that a rank must be in. */
static inline Members group_members(const Case *c, GroupName name, int rank)
{
    const int tp = c->tp, dp = replicas_of(c), stage = tp * dp;
    if (name == TP && c->apart)
        return (Members){rank % dp, dp, tp};
    return name == TP   ? (Members){rank / tp * tp, 1, tp}
           : name == DP ? (Members){rank / stage * stage + rank % tp, tp, dp}
                        : (Members){rank % stage, stage, c->pp};
}
/** Is a rank in a sum over the stages alone here? */
static inline bool is_over_stages(const Label *where)
{
    return where->of == METRICS_OF_STAGES;
}
/** Is it in the norm of the gradient, which sums nothing over the replicas? */
static inline bool is_in_norm(const Label *where)
{
    return where->of == THE_NORM;
}
/** The tp group that a rank is in. */
static inline Members tp_group(const Case *c, int rank)
{
    return group_members(c, TP, rank);
}
/** The first rank that holds the same pieces of the weights as this one. */
static inline int first_with_pieces(const Case *c, int rank)
{
    return group_members(c, DP, rank).first;
}
/** The members, a bit each. */
static inline uint64_t ranks_of(Members m)
{
    uint64_t ranks = 0;
    for (int i = 0; i < m.count; i++)
        ranks |= (uint64_t)1 << (m.first + i * m.stride);
    return ranks;
}
/** The place of a member in its group, from 0. */
static inline int place_in(Members m, int rank)
{
    return (rank - m.first) / m.stride;
}
/** The replica that a rank is in. */
static inline int replica_of_rank(const Case *c, int rank)
{
    return place_in(group_members(c, DP, rank), rank);
}
/** The stage that a rank is in. */
static inline int stage_of_rank(const Case *c, int rank)
{
    return rank / (c->world / c->pp);
}

/** In the judge: what a wrong group, or a wrong rank or degree in it, most likely is. */
const char *wrong_group(const struct Trial *t, const Entry *got, const Entry *want);
