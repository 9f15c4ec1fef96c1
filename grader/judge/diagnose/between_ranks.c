/* Compares what ranks hold of the same tensor. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/f_and_g.h"
#include "grader/labs/groups.h"

/* A whole tensor as another rank wrote it. */
static const Entry *as_seen_by(const Evidence *e, int rank)
{
    const Entry *entry = entry_of_rank(e->trial, rank, VALUES, e->want->label);
    return entry && entry->count == e->want->count && e->got->placement_kind != SHARD ? entry
                                                                                      : NULL;
}

bool right_on_first_rank(const Evidence *e)
{
    const Entry *first = as_seen_by(e, 0);
    if (e->trial->rank == 0 || !first ||
        !close_to(numbers_of(first), e->right, 1, e->count, e->tolerance))
        return false;
    return first_ones_right(e) ||
           says(e, _("the result is right on rank 0, but not on rank %d"), e->trial->rank);
}

/* This rank holds only what it contributed. Do all ranks hold the same, or does another rank have
 * the sum? */
bool brought_by_one(const Evidence *e)
{
    const Case *c = e->c;
    const Members group = group_members(
        c, e->want->check == METRICS || e->trial->result->lab->over_replicas ? DP : TP,
        e->trial->rank);
    int right_on = -1;
    bool everywhere = true;
    if (e->zeros == e->count) /* zeros add nothing, so another rank's own numbers may be the sum */
        return false;
    for (int k = 0; k < group.count; k++) {
        const int rank = group.first + k * group.stride;
        const Entry *one = as_seen_by(e, rank);
        everywhere = everywhere && one && close_to(numbers_of(one), e->is, 1, e->count, 0);
        if (right_on < 0 && one && close_to(numbers_of(one), e->right, 1, e->count, e->tolerance))
            right_on = rank;
    }
    if (everywhere)
        return says(e, _("every rank holds what rank %d contributed, and nothing from the others"),
                    e->trial->rank);
    return right_on >= 0 &&
           says(
               e,
               _("the result is right on rank %d, but this rank has only its own contribution: all "
                 "ranks need the result"),
               right_on);
}

static int64_t count_right(const double *is, const Evidence *e)
{
    int64_t first = 0;
    while (first < e->count && fabs(is[first] - e->right[first]) <= e->tolerance)
        first++;
    return first;
}

/* Did a rank exchange only some of the numbers, in equal pieces up to index `end`? */
static bool exchange_ends_at(const Evidence *e, int64_t end)
{
    const Calls *calls = e->trial->outcome->calls;
    for (int r = 0; calls && r < calls->ranks; r++)
        for (int64_t i = 0; i < calls->rank[r].count; i++) {
            int64_t count = calls->rank[r].call[i].sent[0].count;
            if (count > 0 && count < e->count && end % count == 0)
                return true;
        }
    return false;
}

/* Do all ranks hold the right numbers up to the same index, and from there on their own? */
bool rest_is_not_shared(const Evidence *e)
{
    enum { ENOUGH = 8 };
    const Case *c = e->c;
    const Entry *first = as_seen_by(e, 0);
    const int64_t right = e->first_wrong, wrong = e->wrong;
    bool differ = false;
    if (right < ENOUGH || wrong == 0 || 2 * wrong < e->count - right)
        return false;
    for (int rank = 0; rank < c->world && first && alike_on_ranks(c); rank++) {
        const Entry *one = as_seen_by(e, rank);
        if (!one || count_right(numbers_of(one), e) < right)
            return false;
        differ =
            differ || !close_to(numbers_of(one), numbers_of(first), 1, first->count, e->tolerance);
    }
    if (!differ || !exchange_ends_at(e, right))
        return false;
    return says(e,
                _("the first %lld of %lld numbers are right on every rank, but the rest differs "
                  "between the ranks: the exchange ends too early"),
                (long long)right, (long long)e->count);
}

/* Has another rank an earlier result that is wrong? Its reason says more. */
static bool another_is_wrong_earlier(const Evidence *e)
{
    Trial other = *e->trial;
    for (const Entry *want = NULL;
         (want = next_entry(other.expected.all, want)) && want != e->want;)
        for (other.rank = 0; other.rank < e->c->world && want->label.what == OUTPUT_OF;
             other.rank++)
            if (other.rank != e->trial->rank && want->kind == VALUES && want->check == FORWARD &&
                entry_of_rank(&other, other.rank, VALUES, want->label) &&
                !is_right_on_rank(&other, want))
                return true;
    return false;
}

bool ranks_differ(const Evidence *e)
{
    const Case *c = e->c;
    const Entry *first = as_seen_by(e, 0);
    if (another_is_wrong_earlier(e))
        return false;
    for (int rank = 1; rank < c->world && first && alike_on_ranks(c); rank++) {
        const Entry *other = as_seen_by(e, rank);
        if (other && !close_to(numbers_of(other), numbers_of(first), 1, first->count, e->tolerance))
            return says(
                e,
                _("ranks no longer agree on a tensor that should be the same everywhere: each may "
                  "have only its own term of a sum, or have drawn its own random numbers"));
    }
    return false;
}

/* Does each rank have the part numbered by its rank in the world, modulo the size of the group? */
static bool is_part_of_world_rank(const Evidence *e)
{
    for (int rank = 0; rank < e->c->world; rank++) {
        const Members group = tp_group(e->c, rank);
        Expected other =
            expect(e->c, group.first + rank % group.count * group.stride, THE_NUMBERS, 0);
        const Entry *right = find_entry(other.all, VALUES, e->want->label),
                    *got = entry_of_rank(e->trial, rank, VALUES, e->want->label);
        const bool is = right && got && got->count == right->count &&
                        close_to(numbers_of(got), numbers_of(right), 1, got->count, e->tolerance);
        expected_free(&other);
        if (!is)
            return false;
    }
    return true;
}

bool of_another_rank(const Evidence *e)
{
    const Case *c = e->c;
    for (int rank = 0; !alike_on_ranks(c) && rank < c->world; rank++) {
        if (rank == e->trial->rank)
            continue;
        Expected other = expect(c, rank, THE_NUMBERS, 0);
        const Entry *entry = find_entry(other.all, VALUES, e->want->label);
        bool same = entry && entry->count == e->count &&
                    close_to(e->is, numbers_of(entry), 1, e->count, e->tolerance);
        expected_free(&other);
        if (same && (is_operation(e->want, READ_TWICE) || is_operation(e->want, WEIGHT_KEPT)))
            return says(e, _("all_reduce altered its input; another operation still needs the old "
                             "values"));
        if (same && c->apart && is_part_of_world_rank(e))
            return says(e, _("the number of the part is the rank in the world modulo the size of "
                             "the group: it must be mesh->tp_rank"));
        if (same)
            return says(e,
                        tp_group(c, rank).first == tp_group(c, e->trial->rank).first
                            ? _("it is the part of rank %d: each rank must take its own part")
                            : _("it is what rank %d should have, which is in another replica: "
                                "exchange within the group mesh->tp"),
                        rank);
    }
    return false;
}
