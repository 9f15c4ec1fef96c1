#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/language.h"
#include "grader/gradebook/book.h"

enum { BAR = 30 };

static bool has_bar(void)
{
    return isatty(STDOUT_FILENO);
}

void tell_progress(const Book *book, int units_done, int units_to_do)
{
    static time_t begin;
    char bar[BAR + 1];
    if (!begin)
        begin = time(NULL);
    if (!has_bar() || units_to_do == 0)
        return;
    int filled = units_done * BAR / units_to_do;
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR] = '\0';
    printf("\r[%s] ", bar);
    printf(_("%d of %d labs"), units_done, units_to_do);
    if (units_done > 0) {
        long left = (long)(time(NULL) - begin) * (units_to_do - units_done) / units_done;
        printf(_(", %ld:%02ld left "), left / 60, left % 60);
    }
    printf("\033[K");
    fflush(stdout);
}

void tell_student_done(const Book *book, int submission, int done)
{
    const Submission *s = &book->submissions[submission];
    if (has_bar())
        return;
    printf(_("%d/%d  %s: "), done, book->count, s->student);
    if (s->refused)
        fputs(_("not graded"), stdout);
    else
        printf(_("%d points"), s->points);
    printf("%s%s\n", *s->remark ? _("; ") : "", s->remark);
    fflush(stdout);
}

void end_progress(void)
{
    if (has_bar())
        printf("\r\033[K");
}
