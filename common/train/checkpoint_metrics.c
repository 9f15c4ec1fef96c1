#include "train/checkpoint_metrics.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The evaluation after the epoch in which `step` lies, or ends, is done again. */
static bool is_kept(const char *text, int64_t step, int64_t steps_an_epoch)
{
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *done = json_object_get(line, "step"), *epoch = json_object_get(line, "epoch");
    bool kept = done                                 ? json_integer_value(done) <= step
                : json_object_get(line, "test_loss") ? json_integer_value(epoch) * steps_an_epoch < step
                                                     : false;
    json_decref(line);
    return kept;
}

static bool copy_kept(FILE *from, FILE *to, int64_t step, int64_t steps_an_epoch)
{
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    while (good && getline(&line, &room, from) > 0)
        if (is_kept(line, step, steps_an_epoch))
            good = fputs(line, to) >= 0;
    free(line);
    return good && !ferror(from);
}

bool metrics_keep(const char *path, int64_t step, int64_t steps_an_epoch, Problem *problem)
{
    FILE *from = fopen(path, "re");
    if (!from)
        return errno == ENOENT || problem_set(problem, path, "name a file that can be read and written",
                                              "the metrics cannot be continued: %s", strerror(errno));
    char *beside = malloc(strlen(path) + sizeof ".partial");
    strcat(strcpy(beside, path), ".partial");
    FILE *to = fopen(beside, "we");
    bool good = to && copy_kept(from, to, step, steps_an_epoch) && fflush(to) == 0 && fsync(fileno(to)) == 0;
    int error = errno;
    if (to)
        fclose(to);
    fclose(from);
    if (good && rename(beside, path)) {
        good = false;
        error = errno;
    }
    if (!good) {
        unlink(beside);
        problem_set(problem, path, "free some space, or name a file that can be written",
                    "the metrics cannot be continued: %s", strerror(error));
    }
    free(beside);
    return good;
}
