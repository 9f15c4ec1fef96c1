/* Below the output of a program that fails, make prints an error of its own. On SIGQUIT it prints
 * nothing: it waits for its children, and exits with status 1. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "grader/judge/grade.h"

/* Is this signal in the process's set `set`, such as SigCgt (/proc/PID/status)? */
static bool has_signal(long process, const char *set, int number)
{
    char path[64], line[256];
    unsigned long long signals = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, set, strlen(set)))
            signals = strtoull(line + strlen(set) + 1, NULL, 16);
    if (file)
        fclose(file);
    return signals >> (number - 1) & 1;
}

bool end_make(const char *make)
{
    const long process = make ? atol(make) : 0;
    if (process <= 1 || !has_signal(process, "SigCgt", SIGQUIT) || kill((pid_t)process, SIGQUIT))
        return false;
    /* make must take the signal before this program ends: it would otherwise wait for a child that
     * it has already seen end, and fail. */
    while (has_signal(process, "ShdPnd", SIGQUIT))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return true;
}
