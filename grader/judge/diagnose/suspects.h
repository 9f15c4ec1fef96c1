/** @file
 * Mistakes as suspects: the sentence for each.
 */
#ifndef BALISE_GRADER_SUSPECTS_H
#define BALISE_GRADER_SUSPECTS_H

#include "grader/labs/mistakes.h"

/** One way in which students go wrong; the judge computes what that would give. */
typedef struct Suspect {
    unsigned families;    /**< a set of MistakeFamily */
    const char *sentence; /**< for the report */
} Suspect;

/** The suspects, by Mistake. */
extern const Suspect suspects[MISTAKES];

#endif
