/* Makes untrusted text printable: output of students' programs, and names from code or files. */
#include "base/clean.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* Invisible characters, among them those that reverse the direction of text, and separators of
 * lines. */
static bool is_format(utf8proc_int32_t c)
{
    const utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

static bool is_printable(utf8proc_int32_t c)
{
    return c == '\n' || c == '\t' || (c >= ' ' && c < 0x7f) ||
           (c >= 0xa0 && (c & 0xfffe) != 0xfffe && !is_format(c));
}

/* For a text of a lab that is quoted within a line of the report: no newlines, no tabs. */
static bool is_printable_in_line(utf8proc_int32_t c)
{
    return c >= ' ' && is_printable(c);
}

static void clean(char *text, bool (*is_good)(utf8proc_int32_t c))
{
    char *to = text;
    for (const char *at = text; *at;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)at, -1, &c);
        if (length <= 0 || !is_good(c)) {
            *to++ = '?';
        } else {
            memmove(to, at, (size_t)length);
            to += length;
        }
        at += length > 0 ? length : 1;
    }
    *to = '\0';
}

void clean_text(char *text)
{
    clean(text, is_printable);
}

void clean_line(char *text)
{
    clean(text, is_printable_in_line);
}

CleanName clean_name(const char *name)
{
    CleanName clean;
    snprintf(clean.text, sizeof clean.text, "%s", name);
    clean_line(clean.text);
    return clean;
}
