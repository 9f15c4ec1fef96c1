/* Errors in two or three lines. */
#include "base/problem.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/language.h"

/* No terminal takes what remains for a command: not C0, nor DEL, nor C1 in UTF-8. */
static void without_controls(char *text)
{
    for (char *at = text; *at; at++)
        if (((unsigned char)*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f)
            *at = '?';
        else if ((unsigned char)*at == 0xc2 && ((unsigned char)at[1] & 0xe0) == 0x80)
            at[1] = (char)0xbf; /* an inverted question mark */
}

void problem_clean(Problem *problem)
{
    without_controls(problem->what);
    without_controls(problem->where);
}

bool problem_set(Problem *problem, const char *where, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem->what, sizeof problem->what, _(format), args);
    va_end(args);
    snprintf(problem->where, sizeof problem->where, "%s", where ? where : "");
    problem_clean(problem);
    snprintf(problem->hint, sizeof problem->hint, "%s", *hint ? _(hint) : "");
    return false;
}

void problem_print(FILE *stream, const Problem *problem)
{
    char line[sizeof *problem], *lines = NULL;
    size_t size;
    FILE *whole = open_memstream(&lines, &size);
    const bool is_piped = getenv("BALISE_PROGRESS"); /* to mpirun, which has a terminal */
    const int columns = is_piped || isatty(fileno(stream)) ? 80 : INT_MAX;
    snprintf(line, sizeof line, "%s%s\n", _("error: "), problem->what);
    print_in_columns(whole, columns, line, "", "    ");
    if (problem->where[0])
        fprintf(whole, "%s%s\n", _("  at "), problem->where);
    snprintf(line, sizeof line, "%s%s\n", _("  HINT: "), problem->hint);
    print_in_columns(whole, columns, line, "", "    ");
    fclose(whole);
    fputs(lines, stream);
    fflush(stream);
    free(lines);
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
