#include "train/profile.h"

#include <stdlib.h>

#include "train/waiting.h"

enum { WARM_UP = 2 };

void profile_step(int64_t done)
{
    if (done == 0 || done == WARM_UP) {
        laps_forget();
        waiting_begin();
    }
    laps_run(true);
}

static int by_time(const void *a, const void *b)
{
    const Lap *x = a, *y = b;
    double s = x->seconds[0] + x->seconds[1], t = y->seconds[0] + y->seconds[1];
    return (s < t) - (s > t);
}

void profile_report(Report *report, int64_t steps)
{
    Lap laps[MAX_LAPS];
    int count = waiting_apart(laps, laps_read(laps));
    qsort(laps, (size_t)count, sizeof *laps, by_time);
    report_profile(report, laps, count, steps > WARM_UP ? steps - WARM_UP : steps);
}
