/** @file
 * PROFILE=1: how long this rank has waited for others, within what it took to exchange numbers with them.
 *
 * Whoever comes last to an exchange waits for nobody: the least time that one of the group spent on it is what the exchange
 * takes, and what another spent above that it waited. No clocks are compared, and nothing is sent while a step is timed.
 */
#pragma once

#include "base/language.h"
#include "base/laps.h"
#include "mesh/mesh.h"

/** Names of laps that a profile adds or finds exchanges in. */
/** What a rank waited for others. */
#define LAP_WAITING N_("waiting for other ranks")
/** Which rows of a table are in use on any replica? */
#define LAP_ROWS N_("gradient reduction, which rows")
/** What the backward pass spent on starting sums and moving them on. */
#define LAP_UNDER_WAY N_("gradient reduction, under way")
/** What was left of the reduction when the backward pass had ended. */
#define LAP_NOT_HIDDEN N_("gradient reduction, not hidden")

/** What was counted so far is forgotten, and exchanges are listened to from now on. */
void waiting_begin(void);

/** A step is over: its exchanges are set beside those of the other ranks. Collective. */
void waiting_step(const Mesh *mesh);

/** Takes the waiting out of the laps, and adds it as one of its own where there was any. @return how many there are now */
int waiting_apart(Lap laps[MAX_LAPS], int count);
