/* Functions that rejected their arguments: which, where, and what the case adds to the message. */
#include <limits.h>
#include <string.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/sharded.h"

/* How many passes of the scenario had ended when a rank wrote `last`. */
static int passes_before(Entries wrote, const Entry *last)
{
    int passes = 0;
    for (const Entry *entry = NULL; (entry = next_entry(wrote, entry)) && entry != last;)
        passes += entry->kind == TRAFFIC;
    return passes;
}

/* Writes "rank 3" and, for a ring of some ranks of the world or for replicas, its rank in the
 * group. */
static void write_rank(const Case *c, int rank, char text[100])
{
    const bool of_replicas = lab_of(c->lab)->over_replicas;
    const int place = of_replicas ? replica_of_rank(c, rank) : place_in(tp_group(c, rank), rank);
    snprintf(text, 100,
             place == rank                     ? _("rank %d")
             : of_replicas                     ? _("rank %d, mesh->dp_rank %d")
             : lab_of(c->lab)->sizes == SIZE_N ? _("rank %d, rank %d in its group")
                                               : _("rank %d"),
             rank, place);
}

/* Reports the first function, in the order of the scenario, that rejected its arguments. What other
 * ranks do or wait for after that is a consequence. */
bool refusal_text(const Case *c, const Outcome *outcome, char *text, size_t size)
{
    const Entry *first = NULL;
    int of_rank = 0, fewest = INT_MAX;
    for (int rank = 0; rank < c->world; rank++) {
        const Entry *entry = first_entry(outcome->wrote[rank], REFUSED);
        const int passes = problem_of(entry) ? passes_before(outcome->wrote[rank], entry) : fewest;
        if (passes < fewest) {
            first = entry;
            of_rank = rank;
            fewest = passes;
        }
    }
    if (!first)
        return false;
    const Problem *problem = problem_of(first);
    const char *line = line_of(first->address);
    char who[100];
    write_rank(c, of_rank, who);
    snprintf(text, size, _("%.*s%s%s (%s)\n%s%.*s"), (int)sizeof problem->what - 1, problem->what,
             line[0] ? _(", at ") : "", line, who, _("HINT: "), (int)sizeof problem->hint - 1,
             problem->hint);
    return true;
}

/* Lab 17: would this slice be right if the rank in the world were the replica? */
static bool slices_by_rank_in_world(const Trial *t, int rank, const char *what)
{
    const int dp = replicas_of(t->c);
    const int64_t count = sharded_weights(t->c);
    char wrong[200];
    snprintf(wrong, sizeof wrong,
             _("slice: begin %lld and end %lld, but 0 <= begin <= end <= %lld must hold"),
             (long long)(count * rank / dp), (long long)(count * (rank + 1) / dp),
             (long long)count);
    return kind_of_case(t->c)->mistakes & IN_SHARDS && !strcmp(what, wrong);
}

/* Lab 20: is this the product of a row-parallel layer that gets x whole? */
static bool multiplies_whole_x(const Trial *t, const char *hint)
{
    const unsigned row = IN_SCATTERS | IN_BIASES;
    return (kind_of_case(t->c)->mistakes & row) == row &&
           !strcmp(hint, _("this weight is split along its inputs: it takes a shard of x, but this "
                           "x is not split"));
}

void append_cause_of_refusal(const Trial *t, char *text, size_t size)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        const Problem *problem = problem_of(first_entry(t->outcome->wrote[rank], REFUSED));
        if (!problem)
            continue;
        if (slices_by_rank_in_world(t, rank, problem->what)) {
            append(text, size,
                   _("rank %d uses its rank in the world as the number of its part: its part is "
                     "mesh->dp_rank = %d of %d\n"),
                   rank, replica_of_rank(t->c, rank), replicas_of(t->c));
            return;
        }
        if (multiplies_whole_x(t, problem->hint)) {
            append(text, size, "%s\n",
                   _("input_is_parallel is false in this case: x is whole, so scatter it before "
                     "the product"));
            return;
        }
    }
}
