/** @file
 * The mistake that the judge's own run makes.
 */
#pragma once

#include "grader/protocol.h"

/** Makes the judge's operations make this mistake (NO_MISTAKE: none) until suspect_end(). */
void suspect_begin(int mistake, const Case *c);
/** Makes the operations correct again. */
void suspect_end(void);
/** Returns the mistake that the operations make, and sets *c to the case. */
int mistake_now(const Case **c);
