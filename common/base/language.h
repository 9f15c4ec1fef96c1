/** @file
 * Sentences in the language of who reads them, by GNU gettext. Only sentences: numbers, JSON, names of commands and `Score:` are
 * the same everywhere. A sentence stands in the source in English, as `_("...")` where it is used, or as `N_("...")` in a table
 * whose entries are used as `_(table[i])`; common/po/fr.po holds it in French. make words brings that file up to date.
 */
#pragma once

#include <libintl.h>

#include "base/cxx.h"

/** The sentence in the reader's language; the memory is gettext's, and stays. Not for an empty text. */
#define _(sentence) gettext(sentence)
/** Marks a sentence that is looked up later. */
#define N_(sentence) sentence

BEGIN_C

/** To be called once, first in main. The language is that of LC_MESSAGES (so of LANGUAGE, LC_ALL, LC_MESSAGES, LANG, in the way of
 *  gettext); a system on which that locale is not installed will do. The sentences are those below the folder TEXTDOMAINDIR, which
 *  make names; without it they are English. Reads the file at once: a sandbox may hide it soon. */
void language_begin(void);

/** How many characters a text of UTF-8 has. */
int characters_of(const char *text);
/** The width for printf's `%-*s` that fills `columns` characters with the text: printf counts bytes, and an accent has two. */
int padded_to(const char *text, int columns);

END_C
