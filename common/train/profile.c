/* Spans by name, and the waiting within exchanges. */
#include "train/profile.h"

#include <stdlib.h>
#include <string.h>

#include "train/trainer.h"

enum { MOST = 1 << 14 }; /* exchanges of a step that are looked at */

/* Those over the ranks that split a model, and those over the replicas. */
enum { OVER_TP, OVER_DP, GROUPS };
static const char *const NAMES[] = {REDUCTION_ROWS, REDUCTION_NOT_HIDDEN, "all_reduce",
                                    "duplication", "all_gather"};
enum { KINDS_OVER_DP = 2, KINDS = sizeof NAMES / sizeof *NAMES };

typedef struct Exchanges {
    int count, kind[MOST];
    bool backward[MOST];
    double seconds[MOST];
} Exchanges;

static struct {
    Exchanges step[GROUPS];
    double waited[KINDS][2];
} heard;

static void hear(const char *what, bool backward, double seconds)
{
    for (int kind = 0; kind < KINDS; kind++) {
        Exchanges *those = &heard.step[kind < KINDS_OVER_DP ? OVER_DP : OVER_TP];
        if (strcmp(NAMES[kind], what) != 0 || those->count == MOST)
            continue;
        those->kind[those->count] = kind;
        those->backward[those->count] = backward;
        those->seconds[those->count++] = seconds;
    }
}

void waiting_begin(void)
{
    memset(&heard, 0, sizeof heard);
    spans_listen(hear);
}

bool waiting_of(Group *group, const double *seconds, int count, double *waited)
{
    if (!is_same_over(group, (uint64_t)count)) /* a student's ranks may have made other numbers */
        return false;
    MPI_Allreduce(seconds, waited, count, MPI_DOUBLE, MPI_MIN, group_comm(group));
    for (int i = 0; i < count; i++)
        waited[i] = seconds[i] - waited[i];
    return true;
}

static void compare(Group *group, const Exchanges *those)
{
    static double waited[MOST];
    if (!group || !waiting_of(group, those->seconds, those->count, waited))
        return;
    for (int i = 0; i < those->count; i++)
        heard.waited[those->kind[i]][those->backward[i]] += waited[i];
}

void waiting_step(const Mesh *mesh)
{
    compare(mesh_tp_group(mesh), &heard.step[OVER_TP]);
    compare(mesh->dp, &heard.step[OVER_DP]);
    heard.step[OVER_TP].count = heard.step[OVER_DP].count = 0;
}

int waiting_apart(SpanTotal spans[MAX_SPANS], int count)
{
    SpanTotal all = {.what = WAITING_FOR_OTHERS};
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int pass = 0; pass < 2 && strcmp(spans[i].what, NAMES[kind]) == 0; pass++) {
                spans[i].seconds[pass] -= heard.waited[kind][pass];
                all.seconds[pass] += heard.waited[kind][pass];
            }
    if (count == MAX_SPANS || all.seconds[0] + all.seconds[1] == 0)
        return count;
    spans[count] = all;
    return count + 1;
}

enum { WARM_UP = 2 };

void profile_step(int64_t done)
{
    if (done == 0 || done == WARM_UP) {
        spans_forget();
        waiting_begin();
    }
    spans_run(true);
}

static int by_time(const void *a, const void *b)
{
    const SpanTotal *x = a, *y = b;
    double s = x->seconds[0] + x->seconds[1], t = y->seconds[0] + y->seconds[1];
    return (s < t) - (s > t);
}

void profile_report(Report *report, int64_t steps)
{
    SpanTotal spans[MAX_SPANS];
    int count = waiting_apart(spans, spans_read(spans));
    qsort(spans, (size_t)count, sizeof *spans, by_time);
    report_profile(report, spans, count, steps > WARM_UP ? steps - WARM_UP : steps);
}
