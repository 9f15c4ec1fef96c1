/* Judges the rows that lab 11's replicas read, as sets, by the rules of PyTorch's
 * DistributedSampler. The lab may choose which replica reads a row, and in which order. */
#include "grader/labs/11-data-parallel/batch_rows.h"

#include <stdlib.h>

bool same_rows(const Entry *a, const Entry *b)
{
    return length_of(a) == length_of(b) && !memcmp(numbers_of(a) + MINE, numbers_of(b) + MINE,
                                                   (size_t)length_of(a) * sizeof(double));
}

static const char *reads_everything(const Trial *t, const Deal *deal, const Entry *mine)
{
    int64_t length = length_of(mine);
    bool all = length == deal->rows && replicas_of(t->c) > 1 && mine->count - MINE >= length &&
               (double)length > numbers_of(mine)[ROOM];
    return all ? _("different replicas read the same rows: each one reads all rows") : NULL;
}

/* Why is element `at` of `mine` not a row of the data? */
static const char *not_a_row(const Trial *t, const Deal *deal, int rank, const Entry *mine,
                             int64_t at)
{
    const double row = numbers_of(mine)[MINE + at];
    const Entry *order = entry_of_rank(t, rank, DEALT, replica_deal_label(ORDER_OF, deal));
    if (deal->tail == PAD && row == ORDER_MARK % (int)deal->rows && order_of(t, deal, rank))
        return _(
            "the sampler takes the remainder of a row, as in order[i] % rows, so it reads past "
            "the end of `order`: take the remainder of the index, order[i % rows]");
    if (row == MINE_MARK)
        return _("there is a gap in `mine`: an element within the returned length was not written");
    if (row != ORDER_MARK)
        return _("the sampler reads a row that the data does not have");
    if (!order || order->count == 0)
        return _("the sampler reads `order`, which this call has not filled: permutation() fills "
                 "it, once for each epoch");
    if (rank == 0 && at == 0)
        return _("the sampler reads `order` before permutation() fills it, or outside its bounds");
    return deal->tail == PAD && deal->rows < replicas_of(t->c)
               ? _("the sampler reads past the end of `order`: with fewer rows than replicas, PAD "
                   "starts again at its beginning several times")
               : _("the sampler reads outside of `order`, or elements that it has not filled");
}

/* What is wrong with the length and rows that a rank returned, whichever rows it should read? */
static const char *wrong_record(const Trial *t, const Deal *deal, int rank, const Entry *mine)
{
    int64_t used = mine->count - MINE, length = length_of(mine);
    if (length < 0 || length > used)
        return _("the returned length is not the number of rows in `mine`");
    for (int64_t i = 0; i < length; i++)
        if (!(numbers_of(mine)[MINE + i] >= 0 && numbers_of(mine)[MINE + i] < (double)deal->rows))
            return not_a_row(t, deal, rank, mine, i);
    return NULL;
}

/* What is wrong with the length that this rank returned? With EVERY_ROW_ONCE, any of the replicas
 * may read fewer rows. Valid until the next call. */
static const char *wrong_length(const Trial *t, const Deal *deal, int rank, const Entry *mine)
{
    static char text[320];
    int64_t dp = replicas_of(t->c), length = length_of(mine),
            right = deal->tail == PAD ? (deal->rows + dp - 1) / dp : deal->rows / dp;
    if (deal->tail == EVERY_ROW_ONCE || length == right)
        return NULL;
    if (mine->count - MINE == right)
        return _("the returned length is not the number of rows in `mine`");
    snprintf(text, sizeof text, _("replica %d gets %lld rows instead of %lld: %s"), rank / t->c->tp,
             (long long)length, (long long)right,
             deal->tail == PAD ? _("PAD gives each replica rows/dp rows, rounded up")
                               : _("DROP gives each replica rows/dp rows, rounded down"));
    return text;
}

/* Describes writes before the start or after the end of `order` or `mine`. Valid until the next
 * call. */
static const char *writes_outside(const Trial *t, const Deal *deal, int rank, What what)
{
    static char text[320];
    const char *room = what == OUTSIDE_MINE ? "mine" : "order";
    const Entry *entry = entry_of_rank(t, rank, DEALT, replica_deal_label(what, deal));
    if (!entry || entry->count != 3)
        return NULL;
    double count = numbers_of(entry)[0], first = numbers_of(entry)[1], last = numbers_of(entry)[2];
    if (first < 0)
        snprintf(text, sizeof text,
                 _("sampler_set_epoch writes before the beginning of `%s`: %s[%.0f], but the first "
                   "element is %s[0]"),
                 room, room, first, room);
    else
        snprintf(text, sizeof text,
                 _("sampler_set_epoch writes past the end of `%s`: %s[%.0f], but it has room for "
                   "%.0f (%s)"),
                 room, room, last, count,
                 what == OUTSIDE_MINE ? _("rows/dp, rounded up") : _("each row once"));
    return text;
}

static const char *wrong_with_one(const Trial *t, const Dealt *dealt, int rank)
{
    const int first = rank / t->c->tp * t->c->tp;
    const Entry *mine = dealt->of[rank], *partner = dealt->of[first];
    if (mine->count < MINE || partner->count < MINE)
        return _("the record is invalid");
    const char *wrong = reads_everything(t, &dealt->deal, mine);
    if (wrong || (wrong = writes_outside(t, &dealt->deal, rank, OUTSIDE_MINE)) ||
        (wrong = writes_outside(t, &dealt->deal, rank, OUTSIDE_ORDER)))
        return wrong;
    wrong = wrong_record(t, &dealt->deal, rank, mine);
    if (wrong || (wrong = wrong_record(t, &dealt->deal, first, partner)))
        return wrong;
    if (!same_rows(mine, partner))
        return _("ranks working together on a batch were given different rows: all tp ranks of a "
                 "replica must read the same rows");
    return NULL;
}

const char *wrong_on_ranks(const Trial *t, const Dealt *dealt)
{
    const char *wrong = NULL;
    for (int rank = 0; !wrong && rank < t->c->world; rank++)
        wrong = wrong_with_one(t, dealt, rank);
    return wrong;
}

/* After the last row of the order, PAD continues with the first. Names two rows that are not read
 * as often as that requires. NULL also if `order` does not hold all rows. Valid until the next
 * call. */
static const char *pads_otherwise(const Trial *t, const Dealt *dealt)
{
    static char text[320];
    int64_t rows = dealt->deal.rows, dp = replicas_of(t->c), end = (rows + dp - 1) / dp * dp;
    int64_t often = -1, seldom = -1;
    const double *order = order_of(t, &dealt->deal, 0);
    for (int64_t i = rows - 1; order && i >= 0; i--) {
        const int64_t more = dealt->times[(int)order[i]] - (end - i + rows - 1) / rows;
        often = more > 0 ? i : often;
        seldom = more < 0 ? i : seldom;
    }
    if (often < 0 || seldom < 0)
        return NULL;
    snprintf(text, sizeof text,
             _("PAD must repeat the first rows of this epoch's order, one after the other, until "
               "the round is full: here order[%lld] is read too often, and order[%lld] not often "
               "enough"),
             (long long)often, (long long)seldom);
    return text;
}

/* Does DROP leave out the end of the order, whichever replica reads the rest? True if `order` does
 * not hold all rows. */
static bool drops_the_end(const Trial *t, const Dealt *dealt)
{
    const double *order = order_of(t, &dealt->deal, 0);
    for (int64_t i = 0, dp = replicas_of(t->c); order && i < dealt->deal.rows / dp * dp; i++)
        if (dealt->times[(int)order[i]] == 0)
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
    if (dealt->deal.tail == EVERY_ROW_ONCE && twice > 0 && shared == 0)
        return _("a replica reads some of its rows several times: in evaluation each row counts "
                 "once");
    if (dealt->deal.tail == PAD && missing > 0)
        return _("some rows are read by no replica, and others by several: different replicas read "
                 "the same rows");
    if (dealt->deal.tail == PAD)
        return pads_otherwise(t, dealt);
    if (twice > 0)
        return dealt->deal.tail == DROP
                   ? _("different replicas read the same rows")
                   : _("some rows are read twice, because different replicas read the same rows: "
                       "in evaluation each row counts once");
    if (dealt->deal.tail == DROP)
        return drops_the_end(t, dealt) ? NULL
                                       : _("DROP must leave out the last rows of this epoch's "
                                           "order, those that do not fill a whole round, but "
                                           "it leaves out others");
    return missing > 0 ? _("some rows are read by no replica") : NULL;
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

/* Does `order` hold only the first rows of the data, each once? */
static bool holds_first_rows(const Entry *order)
{
    char seen[MOST_ROWS] = {0};
    for (int64_t i = 0; i < order->count; i++) {
        const double row = numbers_of(order)[i];
        if (!(row >= 0 && row < (double)order->count) || seen[(int)row]++)
            return false;
    }
    return true;
}

/* In evaluation, no row depends on the order. */
static const char *order_is_missing(const Trial *t, const Deal *deal)
{
    for (int rank = 0; rank < t->c->world && deal->tail != EVERY_ROW_ONCE; rank++) {
        const Entry *order = entry_of_rank(t, rank, DEALT, replica_deal_label(ORDER_OF, deal));
        if (!order || order->count == 0)
            return _("`order` was never filled: permutation() fills it with this epoch's order, in "
                     "which the rows are dealt");
        if (deal->tail == DROP && order->count < deal->rows && holds_first_rows(order))
            return _("DROP leaves out the same rows in every epoch, the last of the data: "
                     "permutation() must shuffle all rows");
        if (!order_of(t, deal, rank))
            return _("`order` does not hold each row once: permutation() over all rows fills it");
    }
    return NULL;
}

static const char *wrong_deal(const Trial *t, Dealt *dealt)
{
    const char *wrong = wrong_on_ranks(t, dealt);
    for (int rank = 0; !wrong && rank < t->c->world; rank++)
        wrong = wrong_length(t, &dealt->deal, rank, dealt->of[rank]);
    if (!wrong)
        wrong = wrong_together(t, dealt);
    if (!wrong)
        wrong = wrong_order(t, dealt);
    return wrong ? wrong : order_is_missing(t, &dealt->deal);
}

void compare_rows(Trial *t, const Entry *got, const Entry *want)
{
    char where[480];
    if (want->kind != DEALT || t->rank > 0)
        return;
    Dealt *dealt = malloc(sizeof *dealt);
    const char *wrong = NULL;
    if (deal_of(t->c, &want->label, &dealt->deal) && find_dealt(t, dealt))
        wrong = wrong_deal(t, dealt);
    snprintf(where, sizeof where,
             replicas_of(t->c) == 1 ? _("%s over %d replica (%s)") : _("%s over %d replicas (%s)"),
             entry_text(want), replicas_of(t->c), t->sizes);
    if (wrong)
        fail(t, ROWS, EXPLAINED, "%s%s\n%s", wrong,
             shuffled_differently(t, &dealt->deal) ? _("; the ranks shuffled differently: seed and "
                                                       "epoch must be the same on every rank")
                                                   : "",
             where);
    free(dealt);
}
