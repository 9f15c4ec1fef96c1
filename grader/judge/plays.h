/** @file
 * The plays of the labs as the judge calls them; see PLAY in plays/play.h.
 */
#ifndef BALISE_GRADER_JUDGE_PLAYS_H
#define BALISE_GRADER_JUDGE_PLAYS_H

#include "grader/plays/play.h"

/** Plays a case and writes its entries. */
typedef void PlayFunction(Play *play);

/** What the plain model on one rank plays in this case, which every rank must see; NULL where each rank must see something of
 *  its own. */
PlayFunction *play_of_case(const Case *c);

/** What rank `rank` must write down where play_of_case() has nothing to play: computed from the inputs of all ranks. */
typedef void ExpectFunction(const Case *c, int rank, int suspect, Stream stream);
/** What computes that in this case, or NULL. */
ExpectFunction *expectation_of_case(const Case *c);

/** Those of labs 1 and 9, of 8 and 10, and of 11. */
ExpectFunction expect_collectives, expect_groups, expect_replicas;

/** Whichever of the two the case has. */
ExpectFunction play_expected;

#endif
