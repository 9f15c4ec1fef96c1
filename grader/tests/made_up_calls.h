/** @file
 * Makes up calls of four ranks, for tests of how the judge reads calls.
 */
#ifndef BALISE_GRADER_TESTS_MADE_UP_CALLS_H
#define BALISE_GRADER_TESTS_MADE_UP_CALLS_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "grader/judge/mpi/recorded.h"

enum {
    FLOAT_TYPE = BASIC(FLOATING, 4),
    DOUBLE_TYPE = BASIC(FLOATING, 8),
    INT_TYPE = BASIC(SIGNED, 4)
};
enum { WORLD = 1, OTHER = 7 };

static Calls *calls;
static int64_t now;

static inline void begin(void)
{
    calls = calloc(1, sizeof *calls);
    calls->ranks = 4;
    for (int r = 0; r < 4; r++) {
        calls->rank[r].call = calloc(64, sizeof(Call));
        calls->rank[r].operation = calloc(64, sizeof(TapeOperation));
    }
    now = 0;
}

static inline void end(void)
{
    calls_free(calls);
}

static inline Signature numbers(int64_t count, int32_t basic)
{
    return (Signature){count, basic};
}

static inline Call *new_call(int rank, const char *name, Rule rule)
{
    RankCalls *mine = &calls->rank[rank];
    Call *call = &mine->call[mine->count++];
    *call = (Call){.rule = (int32_t)rule,
                   .root = NOBODY,
                   .to = NOBODY,
                   .from = NOBODY,
                   .waited_by = -1,
                   .time = ++now,
                   .returned = 1};
    strcpy(call->name, name);
    return call;
}

static inline Call *of_group(int rank, const char *name, Rule rule, uint64_t group,
                             uint64_t members, int64_t number)
{
    Call *call = new_call(rank, name, rule);
    call->group = group;
    call->members = members;
    call->number = number;
    return call;
}

/* Appends an all-reduce to this rank's calls, in a group of ranks 0 and 1. */
static inline Call *sum(int rank, int64_t number, int64_t count)
{
    Call *call = of_group(rank, "all_reduce", REDUCTION, WORLD, 3, number);
    call->sent[0] = numbers(count, FLOAT_TYPE);
    call->reduction = SUM_OF;
    return call;
}

static inline Call *gather(int rank, int64_t number, int64_t sent, int64_t received)
{
    Call *call = of_group(rank, "all_gather", EXCHANGE, WORLD, 3, number);
    for (int r = 0; r < 2; r++) {
        call->sent[r] = numbers(sent, FLOAT_TYPE);
        call->received[r] = numbers(received, FLOAT_TYPE);
    }
    return call;
}

static inline Call *message(int rank, const char *name, int to, int from, int tag, int64_t count,
                            int32_t basic)
{
    Call *call = new_call(rank, name, MESSAGE);
    call->group = WORLD;
    call->members = 3;
    call->to = to;
    call->from = from;
    call->to_tag = call->from_tag = tag;
    call->sent[0] = call->received[0] = numbers(count, basic);
    return call;
}

static inline Call *a_send(int rank, int to, int tag, int64_t count)
{
    return message(rank, "send", to, NOBODY, tag, count, FLOAT_TYPE);
}

static inline Call *a_receive(int rank, int from, int tag, int64_t count)
{
    return message(rank, "receive", NOBODY, from, tag, count, FLOAT_TYPE);
}

static inline DifferenceKind error(void)
{
    return first_error(calls, true).kind;
}

static inline void waits(int rank)
{
    calls->rank[rank].call[calls->rank[rank].count - 1].returned = 0;
}

static inline void leaves(int rank)
{
    calls->rank[rank].left = true;
}

#endif
