#include "grader/judge/launch/stamp_of.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"
#include "grader/protocol.h"

static const char hint[] =
    N_("make grade builds runners and judge alike; make -B grade builds them anew");

bool stamp_fits(const char *runner, Problem *problem)
{
    struct stat status;
    const char *bytes = MAP_FAILED;
    int file = open(runner, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return problem_set(problem, runner, hint, "there is no runner: %s", strerror(errno));
    size_t size = fstat(file, &status) == 0 ? (size_t)status.st_size : 0;
    if (size > 0)
        bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED)
        return problem_set(problem, runner, hint, "the runner cannot be read");
    bool fits = memmem(bytes, size, protocol_stamp, strlen(protocol_stamp) + 1) != NULL;
    munmap((void *)bytes, size);
    return fits || problem_set(problem, runner, hint,
                               "this runner was built of another protocol than the judge");
}
