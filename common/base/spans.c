/* Time spans, added up by name. */
#include "base/spans.h"

#include <string.h>

#include "base/clock.h"

static struct {
    bool running;
    double last;
    int count;
    SpanTotal span[MAX_SPANS];
    SpanListener *listener[MAX_SPAN_LISTENERS];
} spans;

void spans_run(bool run)
{
    spans.running = run;
    spans.last = clock_now();
}

void spans_forget(void)
{
    spans.count = 0;
}

static SpanTotal *total_of(const char *what)
{
    int i = 0;
    while (i < spans.count && strcmp(spans.span[i].what, what) != 0)
        i++;
    if (i == MAX_SPANS)
        i--; /* no room for another name: its time counts with the last one's */
    if (i == spans.count)
        spans.span[spans.count++] = (SpanTotal){.what = what};
    return &spans.span[i];
}

void span_move(const char *from, const char *to, bool backward, double seconds)
{
    total_of(from)->seconds[backward] -= seconds;
    total_of(to)->seconds[backward] += seconds;
}

void span_end(const char *what, bool backward)
{
    if (!spans.running)
        return;
    SpanTotal *total = total_of(what);
    double time = clock_now(), seconds = time - spans.last;
    total->seconds[backward] += seconds;
    spans.last = time;
    for (int l = 0; l < MAX_SPAN_LISTENERS; l++)
        if (spans.listener[l])
            spans.listener[l](what, backward, seconds);
}

void spans_unlisten(SpanListener *listener)
{
    for (int l = 0; l < MAX_SPAN_LISTENERS; l++)
        if (spans.listener[l] == listener)
            spans.listener[l] = NULL;
}

void spans_listen(SpanListener *listener)
{
    spans_unlisten(listener);
    int place = 0;
    while (place < MAX_SPAN_LISTENERS - 1 && spans.listener[place])
        place++;
    spans.listener[place] = listener;
}

int spans_read(SpanTotal copy[MAX_SPANS])
{
    memcpy(copy, spans.span, sizeof spans.span);
    return spans.count;
}
