/** @file
 * How a rank waits that shares its core with other ranks.
 */
#pragma once

#include <stdint.h>

/** Says which waits the polls of this process belong to. While one wait lasts, the process sleeps
 *  longer and longer between polls. `wait_of` is called at each poll, in place of looking at the
 *  time between polls, and in a process that shares no core, too. It returns a number for each wait,
 *  or -1 if this poll must not sleep. */
void yield_by(int64_t (*wait_of)(void));
