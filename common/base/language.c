/* The reader's language, and the width of texts. */
#include "base/language.h"

#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char domain[] = "balise";

static const char *asked_for(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

void language_begin(void)
{
    const char *folder = getenv("TEXTDOMAINDIR"), *asked = asked_for();
    const char *locale = setlocale(LC_MESSAGES, "");
    if (!folder || !*folder)
        return;
    /* gettext translates nothing in the locale C and, since glibc 2.39, in C.UTF-8. The locale is one
     * of these if the requested one is not installed. */
    bool english = asked && (!strcmp(asked, "C") || !strcmp(asked, "POSIX"));
    if (!english && (!locale || *locale == 'C')) {
        const char *before = getenv("LOCPATH");
        char *locales = before ? strdup(before) : NULL;
        setenv("LOCPATH", folder, 1);
        setlocale(LC_MESSAGES, "messages.UTF-8");
        if (locales)
            setenv("LOCPATH", locales, 1);
        else
            unsetenv("LOCPATH");
        free(locales);
        if (asked)
            setenv("LANGUAGE", asked, 0);
    }
    bindtextdomain(domain, folder);
    bind_textdomain_codeset(domain, "UTF-8");
    textdomain(domain);
    (void)gettext("error: ");
}

int characters_of(const char *text)
{
    int characters = 0;
    for (; *text; text++)
        characters += (*text & 0xc0) != 0x80; /* other bytes continue a character */
    return characters;
}

int padded_to(const char *text, int columns)
{
    return columns + (int)strlen(text) - characters_of(text);
}

/* The length in bytes of the first `columns` characters of a line, or of the whole line. */
static size_t bytes_of(const char *line, int columns)
{
    size_t bytes = 0;
    for (; line[bytes] && line[bytes] != '\n'; bytes++)
        if ((line[bytes] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return bytes;
}

/* May a line be broken at this byte? French has blanks inside quotation marks and before some
 * punctuation. */
static bool may_end(const char *text, size_t at)
{
    const char *next = text + at + 1;
    return text[at] == ' ' && !(*next && strchr(":;?!", *next) && strchr(" \n", next[1])) &&
           strncmp(next, "»", strlen("»")) != 0 &&
           !(at >= strlen("«") && !strncmp(text + at - strlen("«"), "«", strlen("«")));
}

void print_in_columns(FILE *out, int columns, const char *text, const char *first,
                      const char *later)
{
    const char *indent = first;
    while (*text) {
        const int width = columns - characters_of(indent);
        size_t take = bytes_of(text, width);
        if (text[take] && text[take] != '\n') {
            while (take > 0 && !may_end(text, take))
                take--;
            while (take == 0 || (text[take] && text[take] != '\n' && !may_end(text, take)))
                take++; /* a word longer than a line stays whole: it may be a path to copy */
        }
        fprintf(out, "%s%.*s\n", indent, (int)take, text);
        text += take;
        indent = *text == '\n' ? first : later;
        while (*text == ' ')
            text++;
        if (*text == '\n')
            text++;
    }
}
