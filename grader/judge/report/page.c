/* Lays out texts for people, including what ranks printed. */
#include <stdlib.h>

#include "grader/judge/report/verdict.h"

void print_indented(FILE *out, Page page, const char *text, const char *indent)
{
    print_in_columns(out, page.columns, text, indent, indent);
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
