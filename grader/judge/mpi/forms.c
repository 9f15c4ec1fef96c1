/* A blocking collective meets the start of a nonblocking one: has a rank left a call out, or used
 * the other form? */
#include "base/language.h"
#include "grader/judge/mpi/matching.h"

static bool fit(const Call *a, int rank, const Call *b, int other)
{
    return misfit(&(Part){.call = a, .rank = rank}, &(Part){.call = b, .rank = other}) ==
           NO_DIFFERENCE;
}

/* A rank's call with this number in a group, or NULL. */
static const Call *call_with_number(const Calls *calls, int rank, uint64_t group, int64_t number)
{
    const RankCalls *all = &calls->rank[rank];
    for (int64_t i = 0; i < all->count; i++)
        if (all->call[i].group == group && all->call[i].number == number)
            return &all->call[i];
    return NULL;
}

/* Does the call of rank d->rank[1 - late] fit the next one of rank d->rank[late] in this group? */
static bool comes_next(const Calls *calls, const Difference *d, int late)
{
    const Call *next =
        call_with_number(calls, d->rank[late], d->call[0]->group, d->call[0]->number + 1);
    return next && fit(next, d->rank[late], d->call[1 - late], d->rank[1 - late]);
}

/* How many other ranks make the same call as d->rank[k] at this point? */
static int company(const Calls *calls, const Difference *d, int k)
{
    int others = 0;
    for (int rank = 0; rank < calls->ranks; rank++) {
        const Call *call = call_with_number(calls, rank, d->call[k]->group, d->call[k]->number);
        others += call && rank != d->rank[k] && fit(d->call[k], d->rank[k], call, rank);
    }
    return others;
}

static bool fit_but_for_form(const Difference *d)
{
    Call other = *d->call[1];
    other.starts = d->call[0]->starts;
    return fit(d->call[0], d->rank[0], &other, d->rank[1]);
}

bool append_form(const Calls *calls, const Difference *d, char *text, size_t size)
{
    if (d->kind != OTHER_OPERATION || !d->call[1] || d->call[0]->starts == d->call[1]->starts ||
        strcmp(d->call[0]->name, d->call[1]->name) != 0)
        return false;
    const int most = company(calls, d, 0) - company(calls, d, 1);
    const bool is_next[2] = {comes_next(calls, d, 0), comes_next(calls, d, 1)};
    if (fit_but_for_form(d) && !is_next[0] && !is_next[1]) {
        append(text, size, "%s",
               _("a nonblocking collective (MPI_I...) does not match a blocking one: all ranks "
                 "must use the same form"));
        return true;
    }
    const int makes = is_next[0] || (!is_next[1] && most >= 0) ? 0 : 1; /* the call left out */
    const char *line = line_of(d->call[makes]->address);
    if (is_next[0] == is_next[1] && most == 0)
        append(text, size, _("rank %d or rank %d left a call out: "), d->rank[0], d->rank[1]);
    else if (line[0])
        append(text, size, _("rank %d left out the call at %s: "), d->rank[1 - makes], line);
    else
        append(text, size, _("rank %d left a call out: "), d->rank[1 - makes]);
    append(text, size, "%s", _("all ranks of a group must make the same calls in the same order"));
    return true;
}
