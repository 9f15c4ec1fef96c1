/* The rows that the replicas of lab 11 read, judged as sets by the semantics of PyTorch's DistributedSampler: which replica
 * reads a row, and in which order, is the sampler's to choose. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grader/judge/trial.h"
#include "grader/plays/lab11.h"

enum { MOST_ROWS = 4096 };

/* What the ranks have dealt for one tail and epoch. */
typedef struct Deal {
    const Entry *of[MAX_RANKS];
    int times[MOST_ROWS]; /* how often each row is read, over the replicas */
} Deal;

static Tail tail_of(const char *name)
{
    return strstr(name, "PAD") ? PAD : strstr(name, "DROP") ? DROP : EVERY_ROW_ONCE;
}

/* How many rows replica `replica` reads: for EVERY_ROW_ONCE some read one less, whichever these are. */
static bool is_right_count(Tail tail, int64_t rows, int64_t dp, double count)
{
    int64_t less = rows / dp, more = (rows + dp - 1) / dp;
    return tail == PAD    ? count == (double)more
           : tail == DROP ? count == (double)less
                          : count == (double)less || count == (double)more;
}

static const char *wrong_with_one(const Trial *t, const Deal *deal, Tail tail, int rank)
{
    const Entry *mine = deal->of[rank], *partner = deal->of[rank / t->c->tp * t->c->tp];
    int64_t rows = lab11_rows(t->c), dp = t->c->world / t->c->tp;
    if (mine->count < 1 || numbers_of(mine)[0] != (double)(mine->count - 1))
        return mine->count >= 1 && (double)(mine->count - 1) > numbers_of(mine)[0]
                   ? "more rows were written to `mine` than the returned length says, or than there is room "
                     "for"
                   : "the returned length is not the number of rows in `mine`";
    for (int64_t i = 1; i < mine->count; i++)
        if (!(numbers_of(mine)[i] >= 0 && numbers_of(mine)[i] < (double)rows))
            return "a row is read that the data does not have";
    if (mine->count != partner->count ||
        memcmp(numbers_of(mine), numbers_of(partner), (size_t)mine->count * sizeof(double)))
        return "ranks working together on a batch were given different samples: all tp ranks of a replica "
               "read the same rows";
    if (!is_right_count(tail, rows, dp, numbers_of(mine)[0]))
        return numbers_of(mine)[0] == (double)rows && dp > 1
                   ? "different replicas process the same samples: each one reads all rows"
                   : "replicas are given different numbers of rows, or a wrong number of them: the last "
                     "average would wait for "
                     "ever";
    return NULL;
}

static void count_rows(const Trial *t, Deal *deal)
{
    memset(deal->times, 0, sizeof deal->times);
    for (int rank = 0; rank < t->c->world; rank += t->c->tp)
        for (int64_t i = 1; i < deal->of[rank]->count; i++)
            deal->times[(int)numbers_of(deal->of[rank])[i]]++;
}

static const char *wrong_together(const Trial *t, Deal *deal, Tail tail)
{
    int64_t rows = lab11_rows(t->c), dp = t->c->world / t->c->tp, missing = 0, twice = 0;
    count_rows(t, deal);
    for (int64_t i = 0; i < rows; i++) {
        missing += deal->times[i] == 0;
        twice += deal->times[i] > 1;
    }
    if (tail == DROP && (twice > 0 || missing != rows % dp))
        return "different replicas process the same samples";
    if (tail == EVERY_ROW_ONCE && (twice > 0 || missing > 0))
        return twice > 0 ? "different replicas process the same samples: in evaluation each row counts once"
                         : "some rows are read by no replica";
    if (tail == PAD && missing > 0)
        return "some rows are read by no replica, and others by several: different replicas process the same "
               "samples";
    return NULL;
}

static bool find_deal(const Trial *t, const char *name, Deal *deal)
{
    for (int rank = 0; rank < t->c->world; rank++)
        if (!(deal->of[rank] = entry_of_rank(t, rank, DEALT, name)))
            return false;
    return true;
}

/* The second epoch must not read the rows in the order of the first. */
static bool is_other_order(const Trial *t, const Deal *deal, Tail tail)
{
    char name[NAME_SIZE];
    Deal first;
    lab11_rows_name(name, tail, 0);
    if (!find_deal(t, name, &first))
        return true;
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *a = first.of[rank], *b = deal->of[rank];
        if (a->count != b->count || memcmp(numbers_of(a), numbers_of(b), (size_t)a->count * sizeof(double)))
            return true;
    }
    return false;
}

void compare_rows(Trial *t, const Entry *want)
{
    char text[160];
    Deal *deal = malloc(sizeof *deal);
    Tail tail = tail_of(want->name);
    const char *wrong = NULL;
    if (lab11_rows(t->c) <= MOST_ROWS && find_deal(t, want->name, deal)) {
        int rank = 0;
        while (!wrong && rank < t->c->world)
            wrong = wrong_with_one(t, deal, tail, rank++);
        if (!wrong)
            wrong = wrong_together(t, deal, tail);
        if (!wrong && strstr(want->name, "epoch 1") && lab11_rows(t->c) >= 12 &&
            !is_other_order(t, deal, tail))
            wrong = "the order of the samples is the same in every epoch";
        if (wrong)
            fail(t->result, ROWS, t->index, "%s\n%s: %lld rows over %d replicas (%s)", wrong, want->name,
                 (long long)lab11_rows(t->c), t->c->world / t->c->tp, case_text(t->c, text));
    }
    free(deal);
}
