/* Are the rows that lab 11's replicas read shuffled, and differently in each epoch? Reports only
 * what chance practically never produces. */
#include "grader/labs/11-data-parallel/batch_rows.h"

#include <math.h>

const double *order_of(const Trial *t, const Deal *deal, int rank)
{
    char seen[MOST_ROWS] = {0};
    const Entry *entry = entry_of_rank(t, rank, DEALT, replica_deal_label(ORDER_OF, deal));
    if (!entry || entry->count != deal->rows)
        return NULL;
    for (int64_t i = 0; i < deal->rows; i++) {
        double row = numbers_of(entry)[i];
        if (!(row >= 0 && row < (double)deal->rows) || seen[(int)row]++)
            return NULL;
    }
    return numbers_of(entry);
}

static bool are_same(const Trial *t, const Dealt *a, const Dealt *b)
{
    for (int rank = 0; rank < t->c->world; rank++)
        if (!same_rows(a->of[rank], b->of[rank]))
            return false;
    return true;
}

/* Rows that follow each other at a constant cyclic stride were rotated, not shuffled. For eight
 * rows of many, that happens by chance once in millions. */
static const char *not_shuffled(const Dealt *dealt, int64_t least)
{
    const double *mine = numbers_of(dealt->of[0]) + MINE;
    int64_t rows = dealt->deal.rows, length = length_of(dealt->of[0]);
    if (length < least || length > rows)
        return NULL;
    for (int64_t i = 2; i < length; i++)
        if (((int64_t)(mine[i] - mine[i - 1]) + rows) % rows !=
            ((int64_t)(mine[1] - mine[0]) + rows) % rows)
            return NULL;
    return _("the rows are not shuffled: each follows the previous one by the same stride");
}

/* Compares with an earlier epoch of the usual seed. A few rows may have the same order by
 * chance. */
static const char *wrong_beside(const Trial *t, const Dealt *dealt, int epoch)
{
    const Deal *deal = &dealt->deal;
    Dealt first = {.deal = {.rows = deal->rows, .tail = deal->tail, .epoch = epoch}};
    if (deal->rows < 12 || (deal->epoch <= epoch && !deal->seed && !deal->again) ||
        !find_dealt(t, &first))
        return NULL;
    if (wrong_on_ranks(t, &first)) /* reported already */
        return NULL;
    bool same = are_same(t, dealt, &first);
    if (deal->again)
        return same
                   ? NULL
                   : _("the same epoch gives different rows the second time: its rows must depend on seed and epoch only, not on anything kept between calls");
    if (!same)
        return NULL;
    if (not_shuffled(dealt, 5)) /* here, five rows suffice */
        return not_shuffled(dealt, 5);
    return deal->epoch == 1 ? _("the order of the rows is the same in the first two epochs")
           : deal->epoch    ? _("the order of the rows is the same in several epochs")
                            : _("the order of the rows does not depend on the seed");
}

static const char *wrong_beside_others(const Trial *t, const Dealt *dealt)
{
    Deal earlier;
    const char *wrong = wrong_beside(t, dealt, 0);
    for (int i = 0; !wrong && replica_deal(t->c, i, &earlier); i++)
        if (earlier.epoch > 0 && earlier.epoch < dealt->deal.epoch &&
            earlier.rows == dealt->deal.rows)
            wrong = wrong_beside(t, dealt, earlier.epoch);
    return wrong;
}

/* With many rows, chance is predictable: half of all steps go up, strides seldom repeat, and rows
 * with low numbers come late as often as early. The limits are beyond five standard deviations. */
static const char *hardly_shuffled(const Dealt *dealt)
{
    enum { MUCH = 100 };
    const double *mine = numbers_of(dealt->of[0]) + MINE;
    int64_t rows = dealt->deal.rows, length = length_of(dealt->of[0]), up = 0, most = 0;
    int times[MOST_ROWS] = {0};
    double along = 0, middle = (double)(rows - 1) / 2;
    if (length < MUCH)
        return NULL;
    for (int64_t i = 0; i < length; i++) {
        along += ((double)i / (double)(length - 1) - 0.5) * (mine[i] - middle) / (double)rows;
        if (i == 0)
            continue;
        int stride = (int)((int64_t)(mine[i] - mine[i - 1] + (double)rows) % rows);
        up += mine[i] > mine[i - 1];
        most = ++times[stride] > most ? times[stride] : most;
    }
    if (up > length * 3 / 4 || up < length / 4)
        return _("the rows are not shuffled: they are read in the order of their numbers");
    if (most > length / 4)
        return _("the rows are not shuffled: too many follow the previous row by the same stride");
    if (fabs(along) > (double)length / 24) /* half of what sorted rows give */
        return _("the rows are hardly shuffled: those with low numbers are read together");
    return NULL;
}

/* Which rows DROP leaves out must depend on the epoch, like the order of the rows. */
static const char *leaves_out_the_same(const Trial *t, const Dealt *dealt)
{
    Deal deal;
    char left_out[MOST_ROWS];
    int epochs = 0;
    if (dealt->deal.tail != DROP || dealt->deal.epoch == 0 ||
        dealt->deal.rows % replicas_of(t->c) == 0)
        return NULL;
    for (int64_t row = 0; row < dealt->deal.rows; row++)
        left_out[row] = dealt->times[row] == 0;
    for (int i = 0; replica_deal(t->c, i, &deal); i++) {
        Dealt other = {.deal = deal};
        if (deal.tail != DROP || deal.rows != dealt->deal.rows || !find_dealt(t, &other))
            continue;
        if (wrong_on_ranks(t, &other))
            return NULL;
        count_rows(t, &other);
        for (int64_t row = 0; row < deal.rows; row++)
            if (left_out[row] != (other.times[row] == 0))
                return NULL;
        epochs++;
    }
    return epochs > 5 ? _("DROP leaves out the same rows in every epoch, so they are never trained "
                          "on. It must leave out the end of each epoch's order")
                      : NULL;
}

bool shuffled_differently(const Trial *t, const Deal *deal)
{
    const double *first = order_of(t, deal, 0);
    for (int rank = 1; first && rank < t->c->world; rank++) {
        const double *other = order_of(t, deal, rank);
        if (other && memcmp(first, other, (size_t)deal->rows * sizeof(double)) != 0)
            return true;
    }
    return false;
}

const char *wrong_order(const Trial *t, const Dealt *dealt)
{
    if (dealt->deal.tail == EVERY_ROW_ONCE) /* in evaluation the order changes no sum */
        return NULL;
    const char *wrong = not_shuffled(dealt, 8);
    if (!wrong)
        wrong = hardly_shuffled(dealt);
    if (!wrong)
        wrong = leaves_out_the_same(t, dealt);
    return wrong ? wrong : wrong_beside_others(t, dealt);
}
