/** @file
 * Sentences for labels, in the reader's language.
 */
#pragma once

#include "grader/label.h"

enum { LABEL_SIZE = 160 }; /**< bytes of a sentence, its end included */

/** "output of the first layer, step 2". A rank may have written anything: of nonsense it says what it can.
 *  @return text */
const char *label_text(const Label *label, char text[LABEL_SIZE]);
