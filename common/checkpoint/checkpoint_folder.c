/* The SAVE folder: its checkpoints, its lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"
#include "checkpoint/checkpoint.h"

enum { KEPT = 2 };

char *path_in(const char *folder, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        abort();
    return path;
}

char *checkpoint_path(const char *folder, int64_t step, bool partial)
{
    char name[64];
    snprintf(name, sizeof name, partial ? ".step-%06" PRId64 ".partial" : "step-%06" PRId64, step);
    return path_in(folder, name);
}

bool folder_sync(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* The step that a name in FOLDER stands for, or -1. */
static int64_t step_of(const char *name, bool partial)
{
    int64_t step = -1;
    if (sscanf(name, partial ? ".step-%" SCNd64 : "step-%" SCNd64, &step) != 1 || step < 0)
        return -1;
    char *path = checkpoint_path(".", step, partial);
    bool same = !strcmp(path + 2, name);
    free(path);
    return same ? step : -1;
}

static bool is_complete(const char *folder, int64_t step)
{
    char *path = checkpoint_path(folder, step, false), *index = path_in(path, "index.json");
    bool complete = access(index, F_OK) == 0;
    free(index);
    free(path);
    return complete;
}

/* The newest complete checkpoint before `limit`, or -1. */
static int64_t newest_before(const char *folder, int64_t limit)
{
    int64_t newest = -1;
    DIR *names = opendir(folder);
    for (struct dirent *entry; names && (entry = readdir(names));) {
        int64_t step = step_of(entry->d_name, false);
        if (step > newest && step < limit && is_complete(folder, step))
            newest = step;
    }
    if (names)
        closedir(names);
    return newest;
}

int64_t checkpoint_newest(const char *folder)
{
    return newest_before(folder, INT64_MAX);
}

char *checkpoint_find(const char *folder)
{
    char *index = path_in(folder, "index.json"), *found = NULL;
    int64_t newest = checkpoint_newest(folder);
    if (newest >= 0)
        found = checkpoint_path(folder, newest, false);
    else if (access(index, F_OK) == 0)
        found = strdup(folder);
    free(index);
    return found;
}

char *checkpoint_before(const char *checkpoint)
{
    char *folder = strdup(checkpoint), *slash = strrchr(folder, '/');
    while (slash && !slash[1] && slash > folder) {
        *slash = '\0';
        slash = strrchr(folder, '/');
    }
    int64_t step = step_of(slash ? slash + 1 : folder, false), older = -1;
    if (slash)
        *slash = '\0';
    if (step >= 0)
        older = newest_before(slash ? folder : ".", step);
    char *found = older >= 0 ? checkpoint_path(slash ? folder : ".", older, false) : NULL;
    free(folder);
    return found;
}

/* Whatever else somebody put there stays, and the folder with it. */
static bool is_ours(const char *name)
{
    return !fnmatch("index.json*", name, 0) || !fnmatch("rank-*-of-*.safetensors*", name, 0);
}

void checkpoint_abandon(const char *folder, int64_t step)
{
    char *path = checkpoint_path(folder, step, true);
    DIR *names = opendir(path);
    for (struct dirent *entry; names && (entry = readdir(names));)
        if (is_ours(entry->d_name))
            unlinkat(dirfd(names), entry->d_name, 0);
    if (names)
        closedir(names);
    rmdir(path);
    free(path);
}

static void remove_partials(const char *folder)
{
    DIR *names = opendir(folder);
    for (struct dirent *entry; names && (entry = readdir(names));) {
        int64_t step = step_of(entry->d_name, true);
        if (step >= 0)
            checkpoint_abandon(folder, step);
    }
    if (names)
        closedir(names);
}

static bool prove_writable(const char *folder, Problem *problem)
{
    char *probe = path_in(folder, ".probe-XXXXXX");
    bool good = mkdtemp(probe) && rmdir(probe) == 0;
    if (!good)
        problem_set(problem, folder, "name a folder that can be written",
                    "checkpoints cannot be saved here: %s", strerror(errno));
    free(probe);
    return good;
}

FILE *checkpoint_folder_open(const char *folder, Problem *problem)
{
    if (mkdir(folder, 0777) && errno != EEXIST) {
        problem_set(problem, folder, "name a folder inside one that exists and can be written",
                    "the folder for checkpoints cannot be made: %s", strerror(errno));
        return NULL;
    }
    if (!prove_writable(folder, problem))
        return NULL;
    char *path = path_in(folder, ".lock");
    FILE *lock = fopen(path, "we");
    /* A file system without locks is no reason not to save. */
    if (!lock || (flock(fileno(lock), LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)) {
        problem_set(problem, folder, "wait until it has ended, or name another SAVE folder",
                    lock ? N_("another run saves its checkpoints here")
                         : N_("checkpoints cannot be saved here"));
        if (lock)
            fclose(lock);
        lock = NULL;
    } else {
        remove_partials(folder);
    }
    free(path);
    return lock;
}

bool checkpoint_begin(const char *folder, int64_t step, Problem *problem)
{
    char *path = checkpoint_path(folder, step, true);
    bool good = mkdir(path, 0777) == 0;
    if (!good)
        problem_set(problem, path, "free some space; the checkpoints before are untouched",
                    "the checkpoint cannot be written: %s", strerror(errno));
    free(path);
    return good;
}

/* A checkpoint loses its name before it loses a file, so that what has a name is complete at any moment. */
static void remove_older(const char *folder)
{
    int64_t step = checkpoint_newest(folder);
    for (int kept = 1; step >= 0; kept++) {
        int64_t older = newest_before(folder, step);
        if (kept > KEPT) {
            char *from = checkpoint_path(folder, step, false),
                 *to = checkpoint_path(folder, step, true);
            if (rename(from, to) == 0)
                checkpoint_abandon(folder, step);
            free(from);
            free(to);
        }
        step = older;
    }
}

bool checkpoint_commit(const char *folder, int64_t step, Problem *problem)
{
    char *from = checkpoint_path(folder, step, true), *to = checkpoint_path(folder, step, false);
    bool good = folder_sync(from) && rename(from, to) == 0 && folder_sync(folder);
    if (!good)
        problem_set(problem, to, "free some space; the checkpoints before are untouched",
                    "the checkpoint cannot be given its name: %s", strerror(errno));
    free(from);
    free(to);
    if (good)
        remove_older(folder);
    return good;
}
