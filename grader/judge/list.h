/** @file
 * What other programs ask of the labs: their titles, points and layouts, and what they may send.
 */
#pragma once

#include "grader/labs/lab.h"

/** Prints the labs as JSON: number, folder, file, title, needs, layouts, bonus, points by check. */
void list_labs(FILE *out);
/** Prints how many numbers a lab may send forward and backward, over all ranks of a group, at these sizes: "n=4 B=8 S=128 H=768
 *  F= OUT= C= N= PART= VOCABULARY=", each 0 where it is not named.
 *  @return false with `problem` for another name */
bool list_sent(FILE *out, const Lab *lab, const char *sizes, Problem *problem);
