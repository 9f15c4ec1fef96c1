/** @file
 * Mistakes as suspects: the sentence for each, and the judge's own operations that make one.
 */
#ifndef BALISE_GRADER_SUSPECTS_H
#define BALISE_GRADER_SUSPECTS_H

#include "grader/labs/mistakes.h"
#include "grader/protocol.h"

/** One way in which students go wrong; the judge computes what that would give. */
typedef struct Suspect {
    unsigned families;    /**< a set of MistakeFamily */
    const char *sentence; /**< for the report */
} Suspect;

/** The suspects, by Mistake. */
extern const Suspect suspects[MISTAKES];

/** From now on the judge's operations make this mistake (NO_MISTAKE: none), until suspect_end(). */
void suspect_begin(int mistake, const Case *c);
/** The operations are right again. */
void suspect_end(void);

#endif
