/** @file
 * Labs 8 and 10: who is in a group, in which order, and what this rank believes to be in it.
 */
#ifndef BALISE_GRADER_GROUPS_H
#define BALISE_GRADER_GROUPS_H

#include "grader/plays/play.h"

/** "members of the tp group": the entries of a group called `name`. */
void groups_name(char text[NAME_SIZE], const char *what, const char *name);

/** Writes the members of the group, found out by an exchange in it, and the rank and degree that the mesh says. */
void write_group(Play *play, const char *name, Group *group, int rank, int degree);

#endif
