#include "grader/judge/processes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

ProcessState process_state(int pid)
{
    ProcessState process = {0};
    char path[64], line[1024];
    unsigned long user = 0, kernel = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = pid > 0 ? fopen(path, "r") : NULL;
    if (!file)
        return process;
    const char *rest =
        fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL; /* a name may have blanks */
    if (rest)
        sscanf(rest, ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &process.state, &process.parent,
               &user, &kernel);
    fclose(file);
    process.cpu = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    return process;
}
