#include "grader/judge/launch/limits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PROCESSES = 200 }; /* mpirun and eight ranks take about thirty, each thread counted */
static const rlim_t addresses = 3L << 30, file_bytes = 64 << 20, stack_bytes = 8 << 20;

static void limit(int resource, rlim_t value)
{
    struct rlimit old;
    getrlimit(resource, &old);
    if (old.rlim_max != RLIM_INFINITY && old.rlim_max < value)
        value = old.rlim_max;
    setrlimit(resource, &(struct rlimit){value, value});
}

void limits_set(int already, bool many_addresses)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, file_bytes);
    limit(RLIMIT_STACK, stack_bytes);
    if (!many_addresses)
        limit(RLIMIT_AS, addresses);
    limit(RLIMIT_NPROC, (rlim_t)PROCESSES + (rlim_t)already);
    limit(RLIMIT_MEMLOCK, 0);
    limit(RLIMIT_NOFILE, 1024);
}

static bool is_for_libraries(const char *variable)
{
    static const char *const kept[] = {
        "PATH=", "LD_LIBRARY_PATH=", "OPAL_PREFIX=", "OMPI_MCA_", "PMIX_MCA_", "CUDA_",
        "EMULATED_GPUS=",
        /* the language of what a rank says */
        "LANGUAGE=", "LC_ALL=", "LC_MESSAGES=", "LANG=", "TEXTDOMAINDIR="};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strncmp(variable, kept[i], strlen(kept[i])))
            return true;
    return false;
}

void limits_environment(const Seen *seen)
{
    char *kept[256];
    int count = 0;
    for (char **at = environ; *at && count < 256; at++)
        if (is_for_libraries(*at))
            kept[count++] = *at; /* the strings outlive the list of them */
    clearenv();
    for (int i = 0; i < count; i++)
        putenv(kept[i]);
    setenv("HOME", seen->temporary, 1);
    setenv("TMPDIR", seen->temporary, 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
}
