/* Judges the rows that lab 11's replicas read, as sets, by the semantics of PyTorch's
 * DistributedSampler: the sampler chooses which replica reads a row, and in which order. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/trial.h"
#include "grader/labs/replicas.h"

/* The positions of numbers in an entry: the returned length, the capacity of `mine`, the first
 * row. */
enum { LENGTH, ROOM, MINE };
enum { MOST_ROWS = 4096 }; /* in the data set */

/* What the ranks dealt in one call. */
typedef struct Dealt {
    Deal deal;                  /* the request */
    const Entry *of[MAX_RANKS]; /* the entry of each rank */
    int times[MOST_ROWS];       /* how often each row is read, over all replicas */
    int replicas[MOST_ROWS];    /* by how many of them */
} Dealt;

static int64_t length_of(const Entry *e)
{
    return (int64_t)numbers_of(e)[LENGTH];
}

static bool same_rows(const Entry *a, const Entry *b)
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

/* Are the length and the entries that a rank returned valid, whatever its rows? */
static const char *wrong_record(const Deal *deal, const Entry *mine)
{
    int64_t used = mine->count - MINE, length = length_of(mine);
    if (length < 0 || length > used)
        return _("the returned length is not the number of rows in `mine`");
    for (int64_t i = 0; i < length; i++)
        if (!(numbers_of(mine)[MINE + i] >= 0 && numbers_of(mine)[MINE + i] < (double)deal->rows))
            return _("the sampler reads a row that the data does not have");
    return NULL;
}

/* With EVERY_ROW_ONCE, some replicas read fewer rows, whichever these are. */
static const char *wrong_length(const Trial *t, const Deal *deal, const Entry *mine)
{
    int64_t dp = replicas_of(t->c), length = length_of(mine),
            right = deal->tail == PAD ? (deal->rows + dp - 1) / dp : deal->rows / dp;
    if (deal->tail == EVERY_ROW_ONCE || length == right)
        return NULL;
    if (mine->count - MINE == right)
        return _("the returned length is not the number of rows in `mine`");
    return deal->tail == PAD
               ? _("replicas get different numbers of rows, or too few: PAD gives each rows/dp, "
                   "rounded up; otherwise the last average waits for ever")
               : _("replicas get different numbers of rows, or too many: DROP gives each rows/dp, "
                   "rounded down; otherwise the last average waits for ever");
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
                   "is %s[0]"),
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
    const Entry *mine = dealt->of[rank], *partner = dealt->of[rank / t->c->tp * t->c->tp];
    if (mine->count < MINE || partner->count < MINE)
        return _("the record is invalid");
    const char *wrong = reads_everything(t, &dealt->deal, mine);
    if (wrong || (wrong = writes_outside(t, &dealt->deal, rank, OUTSIDE_MINE)) ||
        (wrong = writes_outside(t, &dealt->deal, rank, OUTSIDE_ORDER)))
        return wrong;
    wrong = wrong_record(&dealt->deal, mine);
    if (wrong || (wrong = wrong_record(&dealt->deal, partner)))
        return wrong;
    if (!same_rows(mine, partner))
        return _("ranks working together on a batch were given different rows: all tp ranks of a "
                 "replica read the same rows");
    return NULL;
}

static const char *wrong_on_ranks(const Trial *t, const Dealt *dealt)
{
    const char *wrong = NULL;
    for (int rank = 0; !wrong && rank < t->c->world; rank++)
        wrong = wrong_with_one(t, dealt, rank);
    return wrong;
}

/* The order that a rank filled in, or NULL if it did not use the array for that. */
static const double *order_of(const Trial *t, const Deal *deal, int rank)
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

/* PAD starts again at the beginning of the order: its k-th row is read once more in each round. */
static bool pads_from_the_start(const Trial *t, const Dealt *dealt)
{
    int64_t rows = dealt->deal.rows, dp = replicas_of(t->c), end = (rows + dp - 1) / dp * dp;
    const double *order = order_of(t, &dealt->deal, 0);
    for (int64_t row = 0; !order && row < rows;
         row++) /* in any order, the counts of two rows differ by at most one */
        if (dealt->times[row] < end / rows || dealt->times[row] > (end + rows - 1) / rows)
            return false;
    for (int64_t i = 0; order && i < rows; i++)
        if (dealt->times[(int)order[i]] != (end - i + rows - 1) / rows)
            return false;
    return true;
}

/* Does DROP leave out the end of the order, whichever replica reads the rest? True if the order was
 * not filled in. */
static bool drops_the_end(const Trial *t, const Dealt *dealt)
{
    const double *order = order_of(t, &dealt->deal, 0);
    for (int64_t i = 0, dp = replicas_of(t->c); order && i < dealt->deal.rows / dp * dp; i++)
        if (dealt->times[(int)order[i]] == 0)
            return false;
    return true;
}

static void count_rows(const Trial *t, Dealt *dealt)
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
        return _("some rows are read by no replica, and others by several: different replicas read "
                 "the same rows");
    if (dealt->deal.tail == PAD)
        return pads_from_the_start(t, dealt) ? NULL
                                             : _("PAD must repeat the first rows of this epoch's "
                                                 "order, but other rows are repeated");
    if (twice > 0)
        return dealt->deal.tail == DROP
                   ? _("different replicas read the same rows")
                   : _("some rows are read twice, because different replicas read the same rows: "
                       "in evaluation each row counts once");
    if (dealt->deal.tail == DROP)
        return drops_the_end(t, dealt) ? NULL
                                       : _("DROP must leave out the last rows of this epoch's "
                                           "order, those that fill no round, but it leaves out "
                                           "others");
    return missing > 0 ? _("some rows are read by no replica") : NULL;
}

static bool find_dealt(const Trial *t, Dealt *dealt)
{
    const Label label = replica_deal_label(ITSELF, &dealt->deal);
    for (int rank = 0; rank < t->c->world; rank++)
        if (!(dealt->of[rank] = entry_of_rank(t, rank, DEALT, label)))
            return false;
    return true;
}

/* ---- are the rows shuffled, and differently in each epoch? Only what chance cannot produce is an error. */

static bool are_same(const Trial *t, const Dealt *a, const Dealt *b)
{
    for (int rank = 0; rank < t->c->world; rank++)
        if (!same_rows(a->of[rank], b->of[rank]))
            return false;
    return true;
}

/* Rows that follow each other with a constant stride, cyclically, were rotated, not shuffled: eight
 * by chance are one in millions. */
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
    return _("the rows are not shuffled: each follows the one before by the same stride");
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
    if (not_shuffled(dealt, 5)) /* a rotated order wraps around */
        return not_shuffled(dealt, 5);
    return deal->epoch == 1 ? _("the order of the rows is the same in every epoch")
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

/* For much data, chance is predictable: half of all steps go up, strides seldom repeat, and early
 * rows come late as often as early. The limits here are beyond five standard deviations. */
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
        return _("the rows are not shuffled: most follow the one before by the same stride");
    if (fabs(along) > (double)length / 24) /* half of that of sorted rows */
        return _("the rows are hardly shuffled: those with low numbers are read together");
    return NULL;
}

/* Which rows DROP leaves out depends on the epoch, like their order. */
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

static bool shuffled_differently(const Trial *t, const Deal *deal)
{
    const double *first = order_of(t, deal, 0);
    for (int rank = 1; first && rank < t->c->world; rank++) {
        const double *other = order_of(t, deal, rank);
        if (other && memcmp(first, other, (size_t)deal->rows * sizeof(double)) != 0)
            return true;
    }
    return false;
}

static const char *wrong_order(const Trial *t, const Dealt *dealt)
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
    const char *wrong = wrong_on_ranks(t, dealt);
    for (int rank = 0; !wrong && rank < t->c->world; rank++)
        wrong = wrong_length(t, &dealt->deal, dealt->of[rank]);
    if (!wrong)
        wrong = wrong_together(t, dealt);
    return wrong ? wrong : wrong_order(t, dealt);
}

void compare_rows(Trial *t, const Entry *want)
{
    char where[480];
    Dealt *dealt = malloc(sizeof *dealt);
    const char *wrong = NULL;
    if (deal_of(t->c, &want->label, &dealt->deal) && find_dealt(t, dealt))
        wrong = wrong_deal(t, dealt);
    snprintf(where, sizeof where, _("%s over %d replicas (%s)"), entry_text(want),
             replicas_of(t->c), t->sizes);
    if (wrong)
        fail(t, ROWS, EXPLAINED, "%s%s\n%s", wrong,
             shuffled_differently(t, &dealt->deal) ? _("; the ranks shuffled differently: seed and "
                                                       "epoch must be the same on every rank")
                                                   : "",
             where);
    free(dealt);
}
