/** @file
 * Where the time of a run goes. One clock runs through; whoever has done a piece of work says so, and the time since the
 * last such word was spent on it. Two words follow each other on one thread; nothing is nested, nothing is counted twice.
 */
#pragma once

#include <stdbool.h>

/** What one kind of work has taken so far. */
typedef struct Lap {
    const char *what;  /**< "linear", "optimiser" */
    double seconds[2]; /**< forward pass (or no pass at all), backward pass */
} Lap;

enum { MAX_LAPS = 64 }; /**< kinds of work that are told apart; any more count with the last */

/** Starts the clock, or stops it: lap() does nothing then, at the cost of one comparison. */
void laps_run(bool run);

/** All counts are zero again. */
void laps_forget(void);

/** The time since the last word belongs to `what`.
 *  @param what a text that stays; names are compared as texts
 *  @param backward whether it was part of a backward pass */
void lap(const char *what, bool backward);

/** Hears each word with the time that it got, while the clock runs, beside those that do already; whoever is named again hears it once. */
typedef void LapListener(const char *what, bool backward, double seconds);
enum { MAX_LAP_LISTENERS = 2 }; /**< who hears at a time */

/** From now on `listener` hears them. */
void laps_tell(LapListener *listener);

/** Ends that it hears them. */
void laps_tell_no_more(LapListener *listener);

/** Copies what was counted, in the order of first appearance. @return how many */
int laps_read(Lap laps[MAX_LAPS]);
