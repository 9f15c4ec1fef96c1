/** @file
 * Calls of several ranks as a table.
 */
#pragma once

#include <stdio.h>

#include "grader/judge/mpi/recorded.h"

/** Prints the calls in the order of time, ranks as columns; calls of a group that met stand in one row, and the row of the
 *  first difference is marked.
 *  `file` is the lab's, "attention.c": its lines are told by their number alone. */
void table_print(FILE *out, const Calls *calls, const char *file);
