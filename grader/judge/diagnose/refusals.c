/* Functions that rejected their arguments: which, where, and what the case adds to the message. */
#include <limits.h>
#include <string.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"

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

void append_problem(const Entry *entry, char *text, size_t size)
{
    const Problem *problem = problem_of(entry);
    const char *line = line_of(entry->address);
    append(text, size, "%.600s%s%s\n%s%.400s", problem->what, line[0] ? _(", at ") : "", line,
           _("HINT: "), problem->hint);
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
    const char *line = line_of(first->address), *outer = line_of(first->outermost);
    const bool called = line[0] && outer[0] && strcmp(line, outer);
    char who[100];
    write_rank(c, of_rank, who);
    snprintf(text, size, _("%.*s%s%s%s%s (%s)\n%s%.*s"), (int)sizeof problem->what - 1,
             problem->what, line[0] ? _(", at ") : "", line, called ? _(", called at ") : "",
             called ? outer : "", who, _("HINT: "), (int)sizeof problem->hint - 1, problem->hint);
    return true;
}

/* Appends the first placement rule that this rank broke before a function rejected its arguments, if it
 * harms results: what was rejected follows from it. */
static bool append_rule_broken_before(Entries wrote, const Entry *refused, char *text, size_t size)
{
    for (const Entry *entry = NULL; (entry = next_entry(wrote, entry)) && entry != refused;)
        if (entry->kind == NOTE && entry->check == FORWARD) {
            append_problem(entry, text, size);
            return true;
        }
    return false;
}

void append_cause_of_refusal(const Trial *t, char *text, size_t size)
{
    bool (*const refusal)(const Case *, int, const Problem *, char *, size_t) =
        t->result->lab->examine.refusal;
    char line[400];
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *refused = first_entry(t->outcome->wrote[rank], REFUSED);
        if (!refused)
            continue;
        if (refusal && refusal(t->c, rank, problem_of(refused), line, sizeof line)) {
            append(text, size, "%s\n", line);
            return;
        }
        if (append_rule_broken_before(t->outcome->wrote[rank], refused, text, size)) {
            append(text, size, "\n");
            return;
        }
    }
}
