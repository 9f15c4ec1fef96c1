/* The rows that the replicas of lab 11 read, judged as sets by the semantics of PyTorch's DistributedSampler: which replica
 * reads a row, and in which order, is the sampler's to choose. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "grader/labs/labels.h"
#include "grader/judge/diagnose/rows.h"

int64_t length_of(const Entry *e)
{
    return (int64_t)numbers_of(e)[LENGTH];
}

static const char *reads_everything(const Trial *t, const Deal *deal, const Entry *mine)
{
    int64_t length = length_of(mine);
    bool all = length == deal->rows && replicas_of(t->c) > 1 && mine->count - MINE >= length &&
               (double)length > numbers_of(mine)[ROOM];
    return all ? _("different replicas read the same rows: each one reads all rows") : NULL;
}

/* Is what a rank has returned and written sound, whatever the rows? */
static const char *wrong_record(const Deal *deal, const Entry *mine)
{
    int64_t used = mine->count - MINE, length = length_of(mine);
    if (length < 0 || length > used)
        return _("the returned length is not the number of rows in `mine`");
    for (int64_t i = 0; i < length; i++)
        if (!(numbers_of(mine)[MINE + i] >= 0 && numbers_of(mine)[MINE + i] < (double)deal->rows))
            return _("a row is read that the data does not have");
    return NULL;
}

/* With EVERY_ROW_ONCE some read less, whichever these are. */
static const char *wrong_length(const Trial *t, const Deal *deal, const Entry *mine)
{
    int64_t dp = replicas_of(t->c), length = length_of(mine),
            right = deal->tail == PAD ? (deal->rows + dp - 1) / dp : deal->rows / dp;
    if (deal->tail == EVERY_ROW_ONCE || length == right)
        return NULL;
    if (mine->count - MINE == right)
        return _("the returned length is not the number of rows in `mine`");
    return deal->tail == PAD
               ? _("replicas are given different numbers of rows, or too few: PAD gives each rows/dp, "
                   "rounded "
                   "up, or the last average would wait for ever")
               : _("replicas are given different numbers of rows, or too many: DROP gives each rows/dp, "
                   "rounded down, or the last average would wait for ever");
}

/* Written before the beginning or behind the end of `order` or `mine`. The sentence holds until the next is asked for. */
static const char *writes_outside(const Trial *t, const Deal *deal, int rank, What what)
{
    static char text[320];
    const char *room = what == OUTSIDE_MINE ? "mine" : "order";
    const Entry *entry = entry_of_rank(t, rank, DEALT, replica_deal_label(what, deal));
    if (!entry || entry->count != 3)
        return NULL;
    double count = numbers_of(entry)[0], first = numbers_of(entry)[1], last = numbers_of(entry)[2];
    if (first < 0)
        snprintf(
            text, sizeof text,
            _("sampler_set_epoch writes before the beginning of `%s`: %s[%.0f], and the first is %s[0]"),
            room, room, first, room);
    else
        snprintf(
            text, sizeof text,
            _("sampler_set_epoch writes behind the end of `%s`: %s[%.0f], and it has room for %.0f (%s)"),
            room, room, last, count,
            what == OUTSIDE_MINE ? _("rows/dp, rounded up") : _("each row once"));
    return text;
}

const char *wrong_with_one(const Trial *t, const Dealt *dealt, int rank)
{
    const Entry *mine = dealt->of[rank], *partner = dealt->of[rank / t->c->tp * t->c->tp];
    if (mine->count < MINE || partner->count < MINE)
        return _("the record makes no sense");
    const char *wrong = reads_everything(t, &dealt->deal, mine);
    if (wrong || (wrong = writes_outside(t, &dealt->deal, rank, OUTSIDE_MINE)) ||
        (wrong = writes_outside(t, &dealt->deal, rank, OUTSIDE_ORDER)))
        return wrong;
    wrong = wrong_record(&dealt->deal, mine);
    if (wrong || (wrong = wrong_record(&dealt->deal, partner)))
        return wrong;
    if (length_of(mine) != length_of(partner) ||
        memcmp(numbers_of(mine) + MINE, numbers_of(partner) + MINE,
               (size_t)length_of(mine) * sizeof(double)) != 0)
        return _(
            "ranks working together on a batch were given different rows: all tp ranks of a replica "
            "read the same rows");
    return NULL;
}

/* The order that a rank has filled in, or NULL where it did not use the room for it. */
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

/* PAD begins again at the start of the order: the k-th row of it is read once more for each time round. */
static bool pads_from_the_start(const Trial *t, const Dealt *dealt)
{
    int64_t rows = dealt->deal.rows, dp = replicas_of(t->c), end = (rows + dp - 1) / dp * dp;
    const double *order = order_of(t, &dealt->deal, 0);
    for (int64_t row = 0; !order && row < rows;
         row++) /* whatever the order, no row comes two times more than another */
        if (dealt->times[row] < end / rows || dealt->times[row] > (end + rows - 1) / rows)
            return false;
    for (int64_t i = 0; order && i < rows; i++)
        if (dealt->times[(int)order[i]] != (end - i + rows - 1) / rows)
            return false;
    return true;
}

void count_rows(const Trial *t, Dealt *dealt)
{
    int seen_by[MOST_ROWS] = {0};
    memset(dealt->times, 0, sizeof dealt->times);
    memset(dealt->replicas, 0, sizeof dealt->replicas);
    for (int rank = 0; rank < t->c->world; rank += t->c->tp)
        for (int64_t i = 0; i < length_of(dealt->of[rank]); i++) {
            int row = (int)numbers_of(dealt->of[rank])[MINE + i];
            dealt->times[row]++;
            dealt->replicas[row] += seen_by[row] != rank + 1;
            seen_by[row] = rank + 1;
        }
}

static const char *wrong_together(const Trial *t, Dealt *dealt)
{
    int64_t missing = 0, twice = 0, shared = 0;
    count_rows(t, dealt);
    for (int64_t i = 0; i < dealt->deal.rows; i++) {
        missing += dealt->times[i] == 0;
        twice += dealt->times[i] > 1;
        shared += dealt->replicas[i] > 1;
    }
    if (missing > 0 && twice > 0 && shared == 0)
        return _(
            "a replica reads some of its rows several times, and some rows are read by no replica");
    if (dealt->deal.tail == PAD && missing > 0)
        return _(
            "some rows are read by no replica, and others by several: different replicas read the same "
            "rows");
    if (dealt->deal.tail == PAD)
        return pads_from_the_start(t, dealt)
                   ? NULL
                   : _("PAD repeats the first rows of this epoch's order, and these are others");
    if (twice > 0)
        return dealt->deal.tail == DROP
                   ? _("different replicas read the same rows")
                   : _("some rows are read twice, different replicas read the same rows: in evaluation "
                       "each row counts once");
    return dealt->deal.tail == EVERY_ROW_ONCE && missing > 0 ? _("some rows are read by no replica")
                                                             : NULL;
}

bool find_dealt(const Trial *t, Dealt *dealt)
{
    const Label label = replica_deal_label(ITSELF, &dealt->deal);
    for (int rank = 0; rank < t->c->world; rank++)
        if (!(dealt->of[rank] = entry_of_rank(t, rank, DEALT, label)))
            return false;
    return true;
}

static bool deal_of(const Case *c, const Label *label, Deal *deal)
{
    for (int i = 0; replica_deal(c, i, deal); i++) {
        const Label one = replica_deal_label(ITSELF, deal);
        if (label_equal(&one, label))
            return true;
    }
    return false;
}

static const char *wrong_deal(const Trial *t, Dealt *dealt)
{
    const char *wrong = NULL;
    for (int rank = 0; !wrong && rank < t->c->world; rank++)
        wrong = wrong_with_one(t, dealt, rank);
    for (int rank = 0; !wrong && rank < t->c->world; rank++)
        wrong = wrong_length(t, &dealt->deal, dealt->of[rank]);
    if (!wrong)
        wrong = wrong_together(t, dealt);
    return wrong ? wrong : wrong_order(t, dealt);
}

void compare_rows(Trial *t, const Entry *want)
{
    char text[160], words[LABEL_SIZE], where[480];
    Dealt *dealt = malloc(sizeof *dealt);
    const char *wrong = NULL;
    if (deal_of(t->c, &want->label, &dealt->deal) && find_dealt(t, dealt))
        wrong = wrong_deal(t, dealt);
    snprintf(where, sizeof where, _("%s over %d replicas (%s)"), label_text(&want->label, words),
             replicas_of(t->c), case_text(t->c, text));
    if (wrong)
        fail(
            t->result, ROWS, t->index, "%s%s\n%s", wrong,
            shuffled_differently(t, &dealt->deal)
                ? _("; the ranks have shuffled differently: seed and epoch are to be the same everywhere")
                : "",
            where);
    free(dealt);
}
