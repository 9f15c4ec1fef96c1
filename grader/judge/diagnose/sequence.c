/* Lab 18: what the ranks keep of their positions. */
#include <math.h>

#include "grader/judge/diagnose/trial.h"
#include "grader/labs/sequence.h"
#include "grader/labs/work.h"

/* Right answers multiply exactly their share. */
static const double slack = 1.1;

static void compare_products(Trial *t, const Entry *want, int number)
{
    double most;
    const double share = numbers_of(want)[number] / t->c->tp;
    const int rank = rank_with_most(t, want->label, number, &most);
    if (rank < 0 || most <= slack * share)
        return;
    fail(t, ARITHMETIC, EXPLAINED,
         _("rank %d did %.2f times the multiplications of its share: a product runs twice, or on "
           "more rows than there are\n%s (%s)"),
         rank, most / share, entry_text(want), t->sizes);
}

/* On one rank nothing is split, and the lab's functions return their arguments. */
static void compare_kept(Trial *t, const Entry *want)
{
    double most;
    const double share = numbers_of(want)[KEPT] / t->c->tp,
                 enough = share + t->result->lab->kept(t->c, &want->label);
    const int rank = rank_with_most(t, want->label, KEPT, &most);
    if (rank < 0 || most <= enough)
        return;
    fail(t, ARITHMETIC, EXPLAINED,
         want->label.step == STEPS
             ? _("rank %d keeps %.0f numbers in a forward pass that no backward pass follows, and "
                 "%.0f suffice: the results of its positions\n%s (%s)")
         : want->label.what == BACKWARD_OF
             ? _("rank %d keeps %.0f numbers after the backward pass, and %.0f suffice: the "
                 "gradient of its positions\n%s (%s)")
             : _("rank %d keeps %.0f numbers from the forward pass to the backward pass, and %.0f "
                 "suffice, 1/tp of what one rank keeps: norms, dropouts and residual sums on its "
                 "positions alone, and nothing of what it gathers\n%s (%s)"),
         rank, most, enough, entry_text(want), t->sizes);
}

/* With what goes into and comes out of communication. */
static void compare_taken(Trial *t, const Entry *want)
{
    double most, own;
    const double passing = (double)t->c->B * t->c->S * t->c->H,
                 enough = slack * numbers_of(want)[TAKEN] + 2 * passing +
                          t->result->lab->kept(t->c, &want->label);
    const int rank = rank_with_most(t, want->label, TAKEN, &most);
    rank_with_most(t, want->label, OWN_MEMORY, &own);
    if (rank < 0 || most + own <= enough)
        return;
    fail(t, ARITHMETIC, EXPLAINED,
         _("rank %d takes %.0f numbers, and %.0f suffice, those of one rank alone and two tensors "
           "of all positions\n%s (%s)"),
         rank, most + own, enough, entry_text(want), t->sizes);
}

void compare_work_of_positions(Trial *t, const Entry *want)
{
    compare_products(t, want, LINEAR_WORK);
    compare_products(t, want, ATTENTION_WORK);
    compare_kept(t, want);
    compare_taken(t, want);
}
