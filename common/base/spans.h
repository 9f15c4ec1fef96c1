/** @file
 * Where the time of a run goes. One clock runs through; whoever has done a piece of work ends its span, which began at the end of the
 * one before. All are of one thread; none is nested, nothing is counted twice.
 */
#pragma once

#include <stdbool.h>

/** What one kind of work has taken so far. */
typedef struct SpanTotal {
    const char *what;  /**< "linear", "optimiser" */
    double seconds[2]; /**< forward pass (or no pass at all), backward pass */
} SpanTotal;

enum { MAX_SPANS = 64 }; /**< kinds of work that are told apart; any more count with the last */

/** Starts the clock, or stops it: span_end() does nothing then, at the cost of one comparison. */
void spans_run(bool run);

/** All counts are zero again. */
void spans_forget(void);

/** The time since the last span ended belongs to `what`, a text that stays; names are compared as texts. */
void span_end(const char *what, bool backward);

/** Of the time that belongs to `from`, `seconds` belong to `to`. */
void span_move(const char *from, const char *to, bool backward, double seconds);

/** Hears of each span that ends while the clock runs, beside those that do already; whoever is named again hears of it once. */
typedef void SpanListener(const char *what, bool backward, double seconds);
enum { MAX_SPAN_LISTENERS = 2 }; /**< who hears at a time */

/** From now on `listener` hears them. */
void spans_listen(SpanListener *listener);

/** Ends that it hears them. */
void spans_unlisten(SpanListener *listener);

/** Copies what was counted, in the order of first appearance. @return how many */
int spans_read(SpanTotal spans[MAX_SPANS]);
