/** @file
 * The plays of the labs as the judge calls them; see PLAY in plays/play.h.
 */
#ifndef BALISE_GRADER_JUDGE_PLAYS_H
#define BALISE_GRADER_JUDGE_PLAYS_H

#include "grader/plays/play.h"

typedef void PlayFunction(Play *play);

/** The play of a lab of layers. */
PlayFunction *play_of_lab(int number);

/** What rank `rank` must write down in lab 1: computed from the inputs of all ranks. */
void expect_collectives(const Case *c, int rank, int suspect, Stream stream);

#endif
