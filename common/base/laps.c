#include "base/laps.h"

#include <string.h>

#include "base/clock.h"

static struct {
    bool running;
    double last;
    int count;
    Lap lap[MAX_LAPS];
    LapListener *listener[MAX_LAP_LISTENERS];
} laps;

void laps_run(bool run)
{
    laps.running = run;
    laps.last = clock_now();
}

void laps_forget(void)
{
    laps.count = 0;
}

void lap(const char *what, bool backward)
{
    int i = 0;
    if (!laps.running)
        return;
    while (i < laps.count && strcmp(laps.lap[i].what, what) != 0)
        i++;
    if (i == MAX_LAPS)
        i--; /* one more name than there is room for: with the last */
    if (i == laps.count)
        laps.lap[laps.count++] = (Lap){.what = what};
    double time = clock_now(), seconds = time - laps.last;
    laps.lap[i].seconds[backward] += seconds;
    laps.last = time;
    for (int l = 0; l < MAX_LAP_LISTENERS; l++)
        if (laps.listener[l])
            laps.listener[l](what, backward, seconds);
}

void laps_tell_no_more(LapListener *listener)
{
    for (int l = 0; l < MAX_LAP_LISTENERS; l++)
        if (laps.listener[l] == listener)
            laps.listener[l] = NULL;
}

void laps_tell(LapListener *listener)
{
    laps_tell_no_more(listener);
    int place = 0;
    while (place < MAX_LAP_LISTENERS - 1 && laps.listener[place])
        place++;
    laps.listener[place] = listener;
}

int laps_read(Lap copy[MAX_LAPS])
{
    memcpy(copy, laps.lap, sizeof laps.lap);
    return laps.count;
}
