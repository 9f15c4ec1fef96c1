/* Lab 15: are the chunks what they must be, and how did wrong numbers come about? */
#include "grader/labs/15-ring-all-reduce/ring_checks.h"

#include <math.h>

#include "grader/judge/diagnose/contributions.h"

/* ---- the chunks ---------------------------------------------------------------------------------------------- */

/* The chunk of the rank at a place in its group, as the lab computed it. @return whether it is
 * known */
static bool chunk_at(const Trial *t, Members group, int place, int call, Range *chunk)
{
    const Entry *entry = entry_of_rank(t, group.first + place * group.stride, VALUES,
                                       ring_label(OUTPUT_OF, RING_REDUCE_SCATTER, call));
    if (!entry || count_held(entry) != entry->count)
        return false;
    *chunk = (Range){entry->begin, entry->end};
    return true;
}

/* Writes what is wrong with n chunks of N numbers. @return whether anything is */
static bool are_no_chunks(int64_t N, int n, const Range chunk[], char why[300])
{
    int64_t end = 0, least = N, most = 0;
    for (int k = 0; k < n; k++) {
        snprintf(why, 300,
                 _("ring_chunk of %lld numbers in %d chunks: chunk %d begins at %lld, but the "
                   "chunks before it end at %lld"),
                 (long long)N, n, k, (long long)chunk[k].begin, (long long)end);
        if (chunk[k].begin != end)
            return true;
        end = chunk[k].end;
        least = end - chunk[k].begin < least ? end - chunk[k].begin : least;
        most = end - chunk[k].begin > most ? end - chunk[k].begin : most;
    }
    snprintf(why, 300,
             end != N ? _("ring_chunk of %lld numbers in %d chunks: the last one ends at %lld, so "
                          "the rest is in no chunk")
                      : _("ring_chunk of %lld numbers in %d chunks: the longest one has %lld "
                          "numbers, the shortest %lld; the sizes may differ by 1 at most"),
             (long long)N, n, end != N ? (long long)end : (long long)most, (long long)least);
    return end != N || most - least > 1;
}

void compare_chunks(Trial *t, int call)
{
    const Members group = tp_group(t->c, 0);
    Range chunk[MAX_RANKS];
    char why[300];
    for (int k = 0; k < group.count; k++)
        if (!chunk_at(t, group, k, call, &chunk[k]))
            return; /* the end of the case gives the reason */
    if (are_no_chunks(ring_count(t->c, call), group.count, chunk, why))
        fail(t, RING_SUM, EXPLAINED, "%s (%s)", why, t->sizes);
}

void compare_extreme_chunks(Trial *t)
{
    Range chunk[RING_MANY];
    char why[300];
    for (int i = 0; i < RING_EXTREMES; i++) {
        const Entry *entry = entry_of_rank(t, 0, VALUES, ring_extreme_label(i));
        if (!entry || entry->count != 2 * RING_MANY)
            return;
        for (int k = 0; k < RING_MANY; k++)
            chunk[k] =
                (Range){(int64_t)numbers_of(entry)[2 * k], (int64_t)numbers_of(entry)[2 * k + 1]};
        if (are_no_chunks(ring_extremes[i], RING_MANY, chunk, why))
            fail(t, RING_SUM, EXPLAINED,
                 ring_extremes[i] <= INT32_MAX
                     ? chunk[RING_MANY - 1].end == ring_extremes[i]
                           ? "%s (%s)"
                           : _("%s. Compute with int64_t: quotients of float or double are rounded "
                               "(%s)")
                 : chunk[RING_MANY - 1].end == (int32_t)ring_extremes[i]
                     ? _("%s. Compute with int64_t: int ends at 2147483647 (%s)")
                     : _("%s. Compute with int64_t: int ends at 2147483647, and quotients of float "
                         "or double are rounded (%s)"),
                 why, t->sizes);
    }
}

/* ---- the numbers --------------------------------------------------------------------------------------------- */

/* The evidence, with what the ranks of a group held before a call. */
typedef struct Ring {
    const Evidence *e;
    Members group;
    int place, call;
    Tensor *rest[MAX_RANKS]; /* by place: what x held before a gather, except the rank's chunk */
    Scenario run;
} Ring;

static bool begin(Ring *r, const Evidence *e)
{
    const Label *label = &e->want->label;
    if (label->of != A_RING || label->what != OUTPUT_OF)
        return false;
    *r = (Ring){.e = e, .group = tp_group(e->c, e->trial->rank), .call = label->step};
    r->place = place_in(r->group, e->trial->rank);
    r->run = scenario_alone(e->c, (Stream){0});
    return true;
}

static void end(Ring *r)
{
    scenario_close(&r->run);
}

static int rank_at(const Ring *r, int place)
{
    return r->group.first + place * r->group.stride;
}

/* Does this rank hold the sum of a chunk that is not its own? */
static bool ends_at_other_chunk(const Ring *r)
{
    const Evidence *e = r->e;
    const Entry *all = entry_of_rank(e->trial, e->trial->rank, VALUES,
                                     ring_label(VALUE_OF, RING_REDUCE_SCATTER, r->call));
    Range chunk;
    for (int k = 0; all && k < r->group.count; k++)
        if (k != r->place && chunk_at(e->trial, r->group, k, r->call, &chunk) &&
            chunk.begin < chunk.end && chunk.end <= all->count &&
            close_to(numbers_of(all) + chunk.begin, numbers_of(e->want) + chunk.begin, 1,
                     chunk.end - chunk.begin, e->tolerance))
            return says(e,
                        _("rank %d ends with the sum of chunk %d, but its own is chunk %d: the "
                          "chunks of all rounds are off by %d of %d"),
                        e->trial->rank, k, r->place,
                        (k - r->place + r->group.count) % r->group.count, r->group.count);
    return false;
}

/* Has this rank received a message in this call? */
static bool has_received(const Evidence *e)
{
    const Calls *calls = e->trial->outcome->calls;
    const Label where = ring_label(ITSELF, e->want->label.index, e->want->label.step);
    for (int64_t i = 0; calls && i < calls->rank[e->trial->rank].count; i++) {
        const Call *call = &calls->rank[e->trial->rank].call[i];
        if (call->rule == MESSAGE && call->from >= 0 && label_equal(&call->where, &where))
            return true;
    }
    return false;
}

/* Does the chunk hold nothing but one contribution? If it is the one with which the chunk started, each
 * rank on its way has overwritten its own numbers with it, and may then have added it to itself. */
static bool is_one_alone(const Ring *r, const Brought *b)
{
    const Evidence *e = r->e;
    const int n = r->group.count, first = rank_at(r, (r->place + 1) % n);
    const double times = b->times[first], doubled = pow(2, n - 1);
    if (is_own_alone(e, b))
        return has_received(e) &&
               says(e, _("its chunk holds this rank's own contribution only: nothing that arrived "
                         "was added to this chunk"));
    if (n == 1 || !has_just(b, (uint64_t)1 << first))
        return false;
    if (same_times(times, 1))
        return says(e,
                    _("its chunk holds the contribution of rank %d only: on its way, no rank has "
                      "added its own numbers"),
                    first);
    return same_times(times, doubled) &&
           says(e,
                _("its chunk is %.0f times the contribution of rank %d, and nothing else: each "
                  "rank receives over its own numbers, and then adds what it received to itself. "
                  "Receive into a separate buffer (tensor_copy)"),
                doubled, first);
}

static bool is_another_sum(const Ring *r)
{
    Brought b;
    const bool brought = find_brought(r->e, &b), found = brought && is_one_alone(r, &b);
    if (brought)
        forget_brought(&b);
    return found;
}

/* While chunk k travelled to this rank in this direction, did each rank on the way add it to what x
 * held? */
static bool was_added(Ring *r, int k, Range chunk, int direction)
{
    const Evidence *e = r->e;
    const int n = r->group.count, hops = ((r->place - k) * direction + n) % n;
    for (int64_t i = chunk.begin; i < chunk.end; i++) {
        double sum = e->right[i];
        for (int hop = 1; hop <= hops; hop++)
            sum += reals(r->rest[(k + hop * direction + n) % n])[i];
        if (!(fabs(e->is[i] - sum) <= 2 * n * e->tolerance))
            return false;
    }
    return true;
}

/* The gather has changed this rank's own chunk: is it now what another rank held there before? */
static bool says_own_is_changed(const Ring *r, Range chunk)
{
    const Evidence *e = r->e;
    for (int j = 0; j < r->group.count; j++)
        if (j != r->place && close_to(e->is + chunk.begin, reals(r->rest[j]) + chunk.begin, 1,
                                      chunk.end - chunk.begin, 0))
            return says(
                e,
                _("the all-gather has changed chunk %d of rank %d, its own, which was right: it "
                  "is now what rank %d held there before the call. The first chunk that a "
                  "rank sends is its own"),
                r->place, e->trial->rank, rank_at(r, j));
    return says(e, _("the all-gather has changed chunk %d of rank %d, its own, which was right"),
                r->place, e->trial->rank);
}

/* Finds what x holds after the gather in place of chunk k. */
static bool says_instead(Ring *r, int k, Range chunk)
{
    const Evidence *e = r->e;
    const int64_t count = chunk.end - chunk.begin;
    const double *is = e->is + chunk.begin;
    const double *before = reals(r->rest[r->place]) + chunk.begin;
    if (k == r->place)
        return says_own_is_changed(r, chunk);
    if (close_to(is, before, 1, count, 0))
        return says(
            e,
            _("chunk %d of x on rank %d is still what was there before: the finished chunk has not arrived in x"),
            k, e->trial->rank);
    if (was_added(r, k, chunk, 1) || was_added(r, k, chunk, -1))
        return says(e, _("chunk %d was added to what x held: an all-gather replaces it"), k);
    for (int j = 0; j < r->group.count; j++) {
        Range other;
        if (j != k && chunk_at(e->trial, r->group, j, r->call, &other) && other.end > other.begin &&
            close_to(is, e->right + other.begin, 1,
                     other.end - other.begin < count ? other.end - other.begin : count, 0))
            return says(e, _("chunk %d is where chunk %d belongs"), j, k);
    }
    return false;
}

static bool is_gathered_wrong(Ring *r)
{
    const Evidence *e = r->e;
    Range chunk;
    for (int k = 0; k < r->group.count; k++)
        r->rest[k] = ring_rest(&r->run, r->call, rank_at(r, k));
    for (int k = 0; k < r->group.count; k++)
        if (chunk_at(e->trial, r->group, k, r->call, &chunk) && chunk.end <= e->count &&
            !close_to(e->is + chunk.begin, e->right + chunk.begin, 1, chunk.end - chunk.begin,
                      e->tolerance))
            return says_instead(r, k, chunk);
    return false;
}

static bool ring_is_wrong(const Evidence *e)
{
    Ring r;
    if (!begin(&r, e))
        return false;
    const int part = e->want->label.index;
    e->text[0] = '\0';
    const bool found =
        tell_n_rounds(e->trial, part, r.call, e->text, e->size) ||
        tell_too_few(e->trial, part, r.call, e->text, e->size) ||
        (e->want->check == RING_GATHER ? is_gathered_wrong(&r)
                                       : ends_at_other_chunk(&r) || is_another_sum(&r));
    end(&r);
    return found;
}

Finder *const ring_reasons[] = {ring_is_wrong, NULL};
