/** @file
 * Translated descriptions of labels.
 */
#pragma once

#include "grader/label.h"

enum { LABEL_SIZE = 160 }; /**< bytes of a description, with its terminator */

/** Writes "output of the first layer, step 2". A rank may have written anything; invalid labels are
 *  described as far as possible.
 *  @return text */
const char *label_text(const Label *label, char text[LABEL_SIZE]);
