/* Which submissions share a file, byte for byte. */
#include <string.h>

#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/report/verdict.h"

/* Have both handed in the same file for a lab? An unchanged start file does not count. */
static bool is_shared(const Book *book, int one, int other, int lab)
{
    const int a = book->submissions[one].unit[lab], b = book->submissions[other].unit[lab];
    if (a < 0 || b < 0 || strcmp(book->units[a].source, book->units[b].source) != 0)
        return false;
    const char *state = json_string_value(json_object_get(book->units[a].lab_verdict, "state"));
    return !state || strcmp(state, state_names[NOT_STARTED_YET]) != 0;
}

/* Writes for which labs they share a file. @return whether there is any */
static bool tell_shared(const Book *book, int one, int other, char labs[LABS_SIZE])
{
    bool shared[MOST_LABS] = {false}, any = false;
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++)
        any |= shared[lab] = is_shared(book, one, other, lab);
    if (any)
        tell_labs(book, shared, labs);
    return any;
}

void tell_identical(const Book *book, int submission, char text[REMARK_SIZE])
{
    enum { SHOWN = 5 };
    char labs[LABS_SIZE];
    int others = 0;
    *text = '\0';
    for (int other = 0; other < book->count; other++) {
        if (other == submission || !tell_shared(book, submission, other, labs) || ++others > SHOWN)
            continue;
        append(text, REMARK_SIZE, "%s", others > 1 ? _("; ") : "");
        append(text, REMARK_SIZE, _("%.100s: %s"), book->submissions[other].entry, labs);
    }
    if (others > SHOWN)
        append(text, REMARK_SIZE, _("; and %d more"), others - SHOWN);
    make_line(text);
}
