/* Checks what the ranks send in each pass, and tells what is more than enough. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"
#include "grader/labs/sharded.h"

/* Is anything sent in double precision? */
static bool sends_doubles(const Trial *t)
{
    for (int rank = 0; rank < t->c->world; rank++)
        for (int64_t i = 0; i < t->outcome->calls->rank[rank].count; i++)
            if (t->outcome->calls->rank[rank].call[i].sent[0].basic == BASIC(FLOATING, 8))
                return true;
    return false;
}

static bool gathers(const Case *c, const Call *call)
{
    return strstr(call->name, "gather") || !strcmp(call->name, "broadcast");
}

static bool is_all_reduce(const Case *c, const Call *call)
{
    return !strcmp(call->name, "all_reduce");
}

static bool is_over_other_replicas(const Case *c, const Call *call)
{
    return (call->rule == REDUCTION || call->rule == EXCHANGE) &&
           __builtin_popcountll(call->members) > c->tp;
}

/* The first such call that a rank makes in this pass, or NULL. */
static const Call *call_in_pass(const Trial *t, const Entry *want,
                                bool (*is_such)(const Case *c, const Call *call))
{
    Label pass = want->label;
    pass.what = pass.what == FORWARD_OF ? FORWARD_PASS_OF : BACKWARD_PASS_OF;
    for (int rank = 0; rank < t->c->world; rank++)
        for (int64_t i = 0; i < t->outcome->calls->rank[rank].count; i++) {
            const Call *call = &t->outcome->calls->rank[rank].call[i];
            if (label_equal(&call->where, &pass) && is_such(t->c, call))
                return call;
        }
    return NULL;
}

/* Does a language model gather or broadcast numbers in this pass, where a reduction would do? */
static bool gathers_instead(const Trial *t, const Entry *want)
{
    return kind_of_case(t->c)->mistakes & IN_VOCABULARY && call_in_pass(t, want, gathers);
}

/* Lab 18: does this pass sum by an all-reduce? Writes where. */
static bool sums_all_positions(const Trial *t, const Entry *want, char text[240])
{
    const Call *call = kind_of_case(t->c)->mistakes & (IN_SEQUENCE | IN_SEQUENCE_BLOCKS)
                           ? call_in_pass(t, want, is_all_reduce)
                           : NULL;
    if (!call)
        return false;
    snprintf(text, 240,
             _("the all-reduce at %s brings every position to every rank; a reduce-scatter, which "
               "brings each rank its own, sends half as much"),
             line_of(call->address)[0] ? line_of(call->address) : call->name);
    return true;
}

/* Does this pass, which the ranks of a tp group share, exchange with other replicas? Writes where. */
static bool exchanges_with_replicas(const Trial *t, const Entry *want, char text[240])
{
    const Lab *lab = t->result->lab;
    const Call *call = lab->over_replicas || lab->over_stages
                           ? NULL
                           : call_in_pass(t, want, is_over_other_replicas);
    if (!call)
        return false;
    const char *line = line_of(call->address);
    snprintf(text, 240,
             _("the exchange at %s is over other replicas, too, whose numbers are not needed: the "
               "group is mesh->tp"),
             line[0] ? line : call->name);
    return true;
}

/* Lab 17: what would suffice in the function that sent more. */
static const char *enough_of_shards(const Label *l)
{
    return l->index == SHARDED_REDUCE
               ? _("a reduce-scatter, which brings each part to one replica only, sends half of "
                   "what an all-reduce sends")
           : l->index == SHARDED_SQUARES
               ? _("two sums over the replicas, mesh->dp, suffice")
               : _("an all-gather, in which each replica contributes its own part only, suffices");
}

static void tell_more_sent(const Trial *t, const Entry *want, double sent, double calls,
                           double enough, char *text, size_t size)
{
    char communications[160], where[240];
    const double times = enough > 0 ? sent / enough : 0, usual = numbers_of(want)[1];
    const bool many = usual > 0 && times == round(times) && calls == times * usual;
    snprintf(communications, sizeof communications, _("%.0f communications instead of %.0f"), calls,
             usual);
    const char *reason =
        want->label.of == METRICS_OF          ? _("three sums over the replicas, mesh->dp, suffice")
        : want->label.of == METRICS_OF_STAGES ? _("one sum of three doubles over mesh->pp suffices")
        : want->label.of == THE_NORM ? _("one sum over mesh->tp and one over mesh->pp suffice")
        : t->result->lab->over_stages && replicas_of(t->c) > 1 &&
                lab_points(t->result->lab, GRADIENT)
            ? _("one sum of the gradients over the replicas in each step suffices")
        : want->label.of == OF_SHARDS ? enough_of_shards(&want->label)
        : sends_doubles(t) && !t->result->lab->over_stages
            ? _("a double counts as two numbers, and a tensor holds float (MPI_FLOAT)")
        : exchanges_with_replicas(t, want, where) || sums_all_positions(t, want, where) ? where
        : gathers_instead(t, want)
            ? _("all_gather, or a broadcast by each rank, brings the numbers of every rank to "
                "each rank; a reduction (group_all_max, all_reduce) sends fewer")
        : many ? communications
               : _("the ranks exchange data that this pass does not need");
    if (enough == 0)
        snprintf(text, size,
                 want->label.of == THE_WEIGHTS
                     ? _("the ranks sent %.0f numbers, but no average is due")
                     : _("the ranks sent %.0f numbers, but this pass needs no exchange"),
                 sent);
    else if (times > 1 && times == round(times))
        snprintf(text, size, _("the ranks sent %.0f numbers, %.0f times the %.0f that suffice: %s"),
                 sent, times, enough, reason);
    else
        snprintf(text, size, _("the ranks sent %.0f numbers, but %.0f suffice: %s"), sent, enough,
                 reason);
}

/* The size of the largest group that sums in this pass. */
static double largest_group(const Case *c, const Entry *want)
{
    return want->label.of == METRICS_OF_STAGES ? c->pp
           : lab_of(c->lab)->over_stages       ? fmax(c->pp, replicas_of(c))
                                               : exchanging_ranks(c);
}

/* Is this a sum of a few doubles ? Padding would be as long as one more of them. */
static bool sums_a_few(const Label *l)
{
    return l->of == METRICS_OF || l->of == METRICS_OF_STAGES ||
           (l->of == OF_SHARDS && l->index == SHARDED_SQUARES);
}

/* What an all-reduce in two halves may send on top of `allowed`, over groups of n ranks. It pads
 * its numbers to a multiple of n, with at most n - 1 zeros, and each half sends these n - 1 times.
 * For an f or g alone, `allowed` determines the padding. Nobody halves a few doubles. But an
 * all-gather gives them all to each rank, and sends n/2 times as much as an all-reduce. */
static double padding_of(const Trial *t, const Entry *want, double n, double allowed)
{
    if (sums_a_few(&want->label))
        return allowed * fmax(0, n / 2 - 1);
    const double usual = numbers_of(want)[1], each = 2 * (n - 1) * t->c->world / n;
    if (n > 1 && want->label.of == AN_OPERATION)
        return each * fmod(n - fmod(allowed / each, n), n);
    return each * (n - 1) * usual;
}

void compare_traffic(Trial *t, const Entry *want)
{
    char why[480];
    double sent = 0, calls = 0, n = exchanging_ranks(t->c);
    bool by_rows = false; /* an embedding is split by rows, so the ranks may send more */
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, TRAFFIC, want->label);
        if (!got || got->count != 3)
            return; /* the end of the case gives the reason */
        sent += numbers_of(got)[0];
        calls = fmax(calls, numbers_of(got)[1]);
        by_rows = by_rows || numbers_of(got)[2] != 0;
    }
    double usual = numbers_of(want)[1], allowed = numbers_of(want)[by_rows ? 2 : 0],
           largest = largest_group(t->c, want), padding = padding_of(t, want, largest, allowed);
    /* Charges are multiples of 1/n of a number, accumulated since the case began. Less than half of
     * 1/n is rounding. */
    double rounding = 0.5 / n;
    /* A stage's embedding may be split in two ways, and one of them sends less. */
    const bool exact = !t->result->lab->over_stages || t->c->tp == 1;
    t->result->exchanges |= sent > 0;
    t->result->sent = (Bytes){true, t->result->sent.count + sizeof(float) * sent};
    t->sends_too_little = t->sends_too_little || (exact && sent < allowed - rounding);
    if (!(sent <= allowed + padding + rounding)) {
        tell_more_sent(t, want, sent, calls, allowed, why, sizeof why);
        fail(t, COMMUNICATION, EXPLAINED, "%s%s%s (%s)", entry_text(want), _(": "), why, t->sizes);
    } else if (allowed == 0 && fmin(n, largest) > 1 && calls > 0) {
        fail(t, COMMUNICATION, EXPLAINED,
             calls > 1 ? _("%s: the ranks wait for each other in %.0f collective calls, but this "
                           "pass needs none (%s)")
                       : _("%s: the ranks wait for each other in %.0f collective call, but this "
                           "pass needs none (%s)"),
             entry_text(want), calls, t->sizes);
    } else if (!(calls <= 2 * usual + 2)) {
        fail(t, COMMUNICATION, EXPLAINED,
             _("%s: %.0f calls where %.0f would do: send it in one piece (%s)"), entry_text(want),
             calls, usual, t->sizes);
    }
}
