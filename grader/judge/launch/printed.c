/* Where it is kept what ranks print. */
#include "grader/judge/launch/printed.h"

#include <stdio.h>
#include <unistd.h>

void printed_path(const char *runner, char path[LOG_PATH])
{
    snprintf(path, LOG_PATH, "%s.log", runner);
}

void printed_forget(const char *runner)
{
    char path[LOG_PATH];
    printed_path(runner, path);
    unlink(path);
}
