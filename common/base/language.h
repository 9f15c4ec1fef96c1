/** @file
 * Messages in the reader's language, through GNU gettext. Only messages are translated: numbers,
 * JSON, command names and `Score:` are the same in every language. The sources have messages in
 * English, as `_("...")` where they are used, or as `N_("...")` in a table whose entries are used
 * as `_(table[i])`. common/po/fr.po has the French; make words updates it.
 */
#pragma once

#include <libintl.h>
#include <stdio.h>

#include "base/cxx.h"

/** The message in the reader's language. It lies in gettext's memory and stays valid. `sentence`
 *  must not be empty: gettext would return the header of the catalogue. */
#define _(sentence) gettext(sentence)
/** Marks a message that is translated later. */
#define N_(sentence) sentence

BEGIN_C

/** Call this once, first in main. gettext determines the language from LANGUAGE, LC_ALL,
 *  LC_MESSAGES and LANG; the locale need not be installed. Messages are read from the folder
 *  TEXTDOMAINDIR, which make sets; without it they stay in English. Reads the file at once, because
 *  a sandbox may hide it later. */
void language_begin(void);

/** The number of characters in a UTF-8 text. */
int characters_of(const char *text);
/** The width for printf's `%-*s` that pads the text to `columns` characters: printf counts bytes,
 *  and an accented letter has two. */
int padded_to(const char *text, int columns);

/** Prints a text, each line indented by `first`. Lines of more than `columns` characters are broken
 *  at blanks; what follows is indented by `later`. */
void print_in_columns(FILE *out, int columns, const char *text, const char *first,
                      const char *later);

END_C
