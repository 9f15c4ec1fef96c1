/** @file
 * Names of entries, places and calls as a person reads them. In the code they are English: entries are found by them.
 */
#ifndef BALISE_GRADER_NAMES_H
#define BALISE_GRADER_NAMES_H

/** Room for a name in words. */
enum { WORDS_SIZE = 256 };

/** "output of the first layer, step 2" in the reader's language; in English, and where nothing is known of it, as it is.
 *  @return text */
const char *words_of(const char *name, char text[WORDS_SIZE]);

#endif
