/* Lays out texts for people, including what ranks printed. */
#include <stdlib.h>

#include "grader/judge/report/verdict.h"

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

void print_indented(FILE *out, Page page, const char *text, const char *indent)
{
    const int width = page.columns - characters_of(indent);
    while (*text) {
        size_t take = bytes_of(text, width);
        if (text[take] && text[take] != '\n') {
            while (take > 0 && !may_end(text, take))
                take--;
            while (take == 0 || (text[take] && text[take] != '\n' && !may_end(text, take)))
                take++; /* a word longer than a line stays whole: it may be a path to copy */
        }
        fprintf(out, "%s%.*s\n", indent, (int)take, text);
        text += take;
        while (*text == ' ')
            text++;
        if (*text == '\n')
            text++;
    }
}

/* Counts the lines of a file, which may hold any bytes. `text` gets the first `shown` lines, each
 * after a bar and truncated to WIDTH. */
static int64_t read_lines(FILE *file, int shown, char *text, size_t size)
{
    enum { WIDTH = 90 };
    int64_t lines = 0;
    size_t used = 0;
    bool begins = true;
    int column = 0;
    for (int byte; (byte = getc_unlocked(file)) != EOF; begins = byte == '\n') {
        lines += begins;
        column = begins ? 0 : column + 1;
        if (lines > shown || used + WIDTH >= size)
            continue;
        if (begins)
            used += (size_t)snprintf(text + used, size - used, "\n| ");
        if (column < WIDTH && byte != '\n')
            text[used++] = byte ? (char)byte : ' ';
        text[used] = '\0';
    }
    return lines;
}

void printed_tell(LabResult *result, const char *runner, int lines, bool stays)
{
    char path[LOG_PATH], head[64], text[sizeof result->printed - 250] = "";
    printed_path(runner, path);
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    int64_t count = read_lines(file, lines, text, sizeof text);
    fclose(file);
    clean_text(text);
    if (count == 0)
        return;
    snprintf(head, sizeof head, count > 1 ? _("printed: %lld lines") : _("printed: %lld line"),
             (long long)count);
    snprintf(result->printed, sizeof result->printed, "%s%s%.150s%s", head, stays ? _(", in ") : "",
             stays ? path : "", text);
}
