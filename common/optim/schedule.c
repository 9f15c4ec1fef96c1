#include "optim/schedule.h"

double schedule_rate(const Schedule *schedule, int64_t step)
{
    if (step < schedule->warmup)
        return schedule->rate * (double)(step + 1) / (double)schedule->warmup;
    if (!schedule->decay)
        return schedule->rate;
    if (step >= schedule->decay)
        return 0;
    return schedule->rate * (double)(schedule->decay - step) /
           (double)(schedule->decay - schedule->warmup);
}
