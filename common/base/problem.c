/* Errors in two or three lines. */
#include "base/problem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/language.h"

bool problem_set(Problem *problem, const char *where, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem->what, sizeof problem->what, _(format), args);
    va_end(args);
    snprintf(problem->where, sizeof problem->where, "%s", where ? where : "");
    snprintf(problem->hint, sizeof problem->hint, "%s", *hint ? _(hint) : "");
    return false;
}

void problem_print(FILE *stream, const Problem *problem)
{
    char text[sizeof *problem + 64];
    bool has_where = problem->where[0] != '\0';
    snprintf(text, sizeof text, "%s%s\n%s%s%s%s%s\n", _("error: "), problem->what,
             has_where ? _("  at ") : "", problem->where, has_where ? "\n" : "", _("  HINT: "),
             problem->hint);
    fputs(text, stream);
    fflush(stream);
}

static void check_output(void)
{
    Problem problem;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    problem_set(&problem, _("standard output"), N_("free some space, then run the command again"),
                N_("the output could not be written completely"));
    problem_print(stderr, &problem);
    _exit(2);
}

void problem_if_output_is_lost(void)
{
    atexit(check_output);
}
