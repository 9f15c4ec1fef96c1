/* Spans by name, and waiting within exchanges. */
#include "train/profile.h"

#include <stdlib.h>
#include <string.h>

#include "train/trainer.h"

enum { MOST = 1 << 14 }; /* the most exchanges recorded per step */

/* One step's exchanges, over the ranks that split a model or over the replicas. */
typedef struct Exchanges {
    int count;
    const char *what[MOST];
    bool backward[MOST];
    double seconds[MOST];
} Exchanges;

static Exchanges over_tp, over_dp;

static void hear(const char *what, bool backward, double seconds)
{
    static const struct {
        const char *what;
        Exchanges *those;
    } known[] = {{REDUCTION_ROWS, &over_dp},
                 {REDUCTION_EXPOSED, &over_dp},
                 {"all_reduce", &over_tp},
                 {"duplication", &over_tp},
                 {"all_gather", &over_tp}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        Exchanges *those = known[i].those;
        if (strcmp(known[i].what, what) != 0 || those->count == MOST)
            continue;
        those->what[those->count] = what;
        those->backward[those->count] = backward;
        those->seconds[those->count++] = seconds;
    }
}

void waiting_begin(void)
{
    over_tp.count = over_dp.count = 0;
    spans_listen(hear);
}

bool waiting_of(Group *group, const double *seconds, int count, double *waited)
{
    /* the ranks of a wrong lab may have made different numbers of exchanges */
    if (!is_same_over(group, (uint64_t)count))
        return false;
    MPI_Allreduce(seconds, waited, count, MPI_DOUBLE, MPI_MIN, group_comm(group));
    for (int i = 0; i < count; i++)
        waited[i] = seconds[i] - waited[i];
    return true;
}

static void compare(Group *group, Exchanges *those)
{
    static double waited[MOST];
    const bool known = group && waiting_of(group, those->seconds, those->count, waited);
    for (int i = 0; known && i < those->count; i++)
        if (waited[i] > 0)
            span_move(those->what[i], WAITING_FOR_OTHERS, those->backward[i], waited[i]);
    those->count = 0;
}

void waiting_step(const Mesh *mesh)
{
    compare(mesh_tp_group(mesh), &over_tp);
    compare(mesh->dp, &over_dp);
}

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
    int count = spans_read(spans);
    qsort(spans, (size_t)count, sizeof *spans, by_time);
    report_profile(report, spans, count, steps > WARM_UP ? steps - WARM_UP : steps);
}
