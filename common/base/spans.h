/** @file
 * Measures where the time of a run goes. There is one clock. The end of a piece of work ends a span
 * and begins the next one. Spans belong to one thread and do not nest, so no time is counted twice.
 */
#pragma once

#include <stdbool.h>

/** The time that one kind of work has taken so far. */
typedef struct SpanTotal {
    const char *what;  /**< "linear", "optimiser" */
    double seconds[2]; /**< forward pass (or neither pass), backward pass */
} SpanTotal;

enum { MAX_SPANS = 64 }; /**< kinds of work; any beyond these count with the last */

/** Starts or stops the clock. While it is stopped, span_end() costs one comparison. */
void spans_run(bool run);

/** Forgets all totals. */
void spans_forget(void);

/** Attributes the time since the last span ended to `what`, a string that must stay valid; names
 *  are compared as strings. */
void span_end(const char *what, bool backward);

/** Moves `seconds` of the time of `from` to `to`. */
void span_move(const char *from, const char *to, bool backward, double seconds);

/** Called for each span that ends while the clock runs; `seconds` is its duration. */
typedef void SpanListener(const char *what, bool backward, double seconds);
enum { MAX_SPAN_LISTENERS = 2 }; /**< listeners at a time */

/** Adds a listener. Adding one twice has no effect. If there are MAX_SPAN_LISTENERS, it replaces the
 *  last. */
void spans_listen(SpanListener *listener);

/** Removes a listener. */
void spans_unlisten(SpanListener *listener);

/** Copies the totals, in order of first appearance. @return how many */
int spans_read(SpanTotal spans[MAX_SPANS]);
