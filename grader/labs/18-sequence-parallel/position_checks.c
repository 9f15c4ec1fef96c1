/* Lab 18: checks what ranks multiply and keep, whose positions they hold, and the norms' step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"
#include "grader/labs/sequence.h"
#include "grader/labs/work.h"

static const double slack = 1.1;

/* The line at which a rank applies an operation to all positions instead of its own, or "". Sets
 * *operation. */
static const char *on_all_positions(const Trial *t, int rank, const char **operation)
{
    static const char *const of_positions[] = {"layer_norm", "dropout", "add"};
    const Calls *calls = t->outcome->calls;
    for (int64_t i = 0; calls && i < calls->rank[rank].operations_count; i++)
        for (size_t k = 0; k < sizeof of_positions / sizeof *of_positions; k++) {
            const TapeOperation *o = &calls->rank[rank].operation[i];
            *operation = of_positions[k];
            if (!strcmp(o->name, *operation) && !o->back &&
                shape_count(o->output.shape) == (int64_t)t->c->B * t->c->S * t->c->H)
                return line_of(o->address);
        }
    return "";
}

/* Fails if a rank keeps too much. Names the operation that keeps numbers of all positions, if there
 * is one. With tp = 1, each rank has all positions. */
static void compare_kept_of_positions(Trial *t, const Entry *want, double enough)
{
    const char *operation, *line;
    Busiest b;
    if (t->c->tp == 1)
        return;
    if (busiest(t, want->label, KEPT, &b) && b.most > enough &&
        (line = on_all_positions(t, b.rank, &operation))[0])
        fail(t, ARITHMETIC, EXPLAINED,
             _("rank %d keeps %.0f numbers from the forward pass to the backward pass, but %.0f "
               "suffice (1/tp of what one rank keeps): %s at %s takes all positions in place of "
               "this rank's own\n%s (%s)"),
             b.rank, b.most, enough, operation, line, entry_text(want), t->sizes);
    compare_most(t, want, KEPT, enough,
                 _("rank %d keeps %.0f numbers from the forward pass to the backward pass, but "
                   "%.0f suffice (1/tp of what one rank keeps): norms, dropouts and residual sums "
                   "on its positions alone, and nothing of what it gathers\n%s (%s)"));
}

/* On one rank nothing is split, and the lab's functions return their arguments. With several ranks,
 * the memory taken includes the inputs and results of communication. */
void compare_work_of_positions(Trial *t, const Entry *want)
{
    const double rounding = t->result->lab->kept(t->c, &want->label),
                 passing = (double)t->c->B * t->c->S * t->c->H;
    compare_products_of_share(
        t, want,
        _("rank %d did %.2f times the multiplications of its share: a product runs twice, or on "
          "more rows than there are\n%s (%s)"));
    const double kept = numbers_of(want)[KEPT] / t->c->tp + rounding;
    if (want->label.what == FORWARD_OF && want->label.step == STEPS)
        compare_most(t, want, KEPT, kept,
                     _("rank %d keeps %.0f numbers in a forward pass that no backward pass "
                       "follows, but %.0f suffice: the results of its positions\n%s (%s)"));
    else if (want->label.what == FORWARD_OF)
        compare_kept_of_positions(t, want, kept);
    compare_most(t, want, TAKEN, slack * numbers_of(want)[TAKEN] + 4 * passing + rounding,
                 _("rank %d allocated %.0f numbers where %.0f suffice: what one rank alone "
                   "allocates, plus four tensors of all positions\n%s (%s)"));
    compare_most(
        t, want, DRAWN, numbers_of(want)[DRAWN] / t->c->tp,
        _("dropout on rank %d draws masks for %.0f numbers, but %.0f suffice (1/tp of what "
          "one rank draws): dropout1 and dropout2 act once, on this rank's positions alone, "
          "after reduce_scatter_sequence\n%s (%s)"));
}

/* ---- positions ------------------------------------------------------------------------------------------------- */

/* The rank in the tp group whose positions these numbers are, or -1. */
static int owner_of(const Trial *t, const Entry *got, const Entry *want)
{
    const double tolerance = tolerance_of(&t->expected, want);
    const int64_t held = got->end - got->begin;
    Entry part = *got;
    for (int k = 0; k < t->c->tp; k++) {
        int64_t i = 0;
        part.begin = k * held;
        part.end = part.begin + held;
        while (i < got->count &&
               fabs(numbers_of(got)[i] - numbers_of(want)[global_index(&part, i)]) <= tolerance)
            i++;
        if (i == got->count)
            return k;
    }
    return -1;
}

static bool are_positions(const Trial *t, const Entry *got, const Entry *want)
{
    return got->placement_kind == SHARD && got->placement_dim == 1 && has_numbers(got, want) &&
           (got->end - got->begin) * t->c->tp == want->shape.size[1];
}

/* In the order in which the case writes its tensors, does the first wrong one hold another rank's
 * positions? */
static bool positions_of_another_rank(const Evidence *e)
{
    const Trial *t = e->trial;
    const Members group = tp_group(e->c, t->rank);
    if (e->c->tp == 1)
        return false;
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));)
        for (int k = 0; want->kind == VALUES && want->label.of == A_SEQUENCE && k < group.count;
             k++) {
            const int rank = group.first + k * group.stride;
            const Entry *got = entry_of_rank(t, rank, VALUES, want->label);
            if (got && are_positions(t, got, want)) {
                const int owner = owner_of(t, got, want);
                if (owner >= 0 && owner != k)
                    return says(e,
                                _("rank %d has the positions of rank %d: each rank takes its "
                                  "own positions of the sum, part mesh->tp_rank"),
                                rank, group.first + owner * group.stride);
                if (owner < 0)
                    return false;
            }
        }
    return false;
}

Finder *const sequence_reasons[] = {input_altered, not_a_number, positions_of_another_rank, NULL};
