/* The SAVE folder: its checkpoints and its lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"
#include "checkpoint/checkpoint.h"

enum { KEPT = 2 };

Path path_in(const char *folder, const char *name)
{
    Path path;
    if (snprintf(path.text, sizeof path.text, "%s/%s", folder, name) < 0)
        abort();
    return path;
}

Path checkpoint_path(const char *folder, int64_t step, bool partial)
{
    char name[64];
    snprintf(name, sizeof name, partial ? ".step-%06" PRId64 ".partial" : "step-%06" PRId64, step);
    return path_in(folder, name);
}

/* Waits until FOLDER's directory entries are on disk. */
static bool folder_sync(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* The step of a (partial) checkpoint with this name, or -1 for other names. */
static int64_t step_of(const char *name, bool partial)
{
    int64_t step = -1;
    if (sscanf(name, partial ? ".step-%" SCNd64 : "step-%" SCNd64, &step) != 1 || step < 0)
        return -1;
    return strcmp(checkpoint_path(".", step, partial).text + 2, name) ? -1 : step;
}

static bool has_index(const char *folder)
{
    return access(path_in(folder, "index.json").text, F_OK) == 0;
}

int64_t checkpoint_newest(const char *folder, int64_t limit)
{
    int64_t newest = -1;
    DIR *names = opendir(folder);
    for (struct dirent *entry; names && (entry = readdir(names));) {
        int64_t step = step_of(entry->d_name, false);
        if (step > newest && step < limit && has_index(checkpoint_path(folder, step, false).text))
            newest = step;
    }
    if (names)
        closedir(names);
    return newest;
}

Path checkpoint_find(const char *folder)
{
    int64_t newest = checkpoint_newest(folder, INT64_MAX);
    Path found = newest >= 0 ? checkpoint_path(folder, newest, false) : (Path){""};
    if (newest < 0 && has_index(folder))
        snprintf(found.text, sizeof found.text, "%s", folder);
    return found;
}

Path checkpoint_before(const char *checkpoint)
{
    char *above = strdup(checkpoint), *last = strdup(checkpoint), *folder = dirname(above);
    int64_t step = step_of(basename(last), false);
    int64_t older = step >= 0 ? checkpoint_newest(folder, step) : -1;
    Path found = older >= 0 ? checkpoint_path(folder, older, false) : (Path){""};
    free(above);
    free(last);
    return found;
}

/* May a file of this name be removed? If a folder holds other files, they stay, and so does the
 * folder. */
static bool is_ours(const char *name)
{
    return !fnmatch("index.json*", name, 0) || !fnmatch("rank-*-of-*.safetensors*", name, 0);
}

void checkpoint_abandon(const char *folder, int64_t step)
{
    const Path path = checkpoint_path(folder, step, true);
    DIR *names = opendir(path.text);
    for (struct dirent *entry; names && (entry = readdir(names));)
        if (is_ours(entry->d_name))
            unlinkat(dirfd(names), entry->d_name, 0);
    if (names)
        closedir(names);
    rmdir(path.text);
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
    Path probe = path_in(folder, ".probe-XXXXXX");
    return (mkdtemp(probe.text) && rmdir(probe.text) == 0) ||
           problem_set(problem, folder, "name a writable folder",
                       "checkpoints cannot be saved here: %s", strerror(errno));
}

FILE *checkpoint_folder_open(const char *folder, bool *made, Problem *problem)
{
    *made = mkdir(folder, 0777) == 0;
    if (!*made && errno != EEXIST) {
        problem_set(problem, folder, "name a folder inside an existing, writable one",
                    "the folder for checkpoints cannot be created: %s", strerror(errno));
        return NULL;
    }
    if (!prove_writable(folder, problem))
        return NULL;
    FILE *lock = fopen(path_in(folder, ".lock").text, "we");
    /* On a file system without locks, the run saves without one. */
    if (!lock || (flock(fileno(lock), LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)) {
        problem_set(problem, folder, "wait until it has ended, or name another SAVE folder",
                    lock ? N_("another run is saving its checkpoints here")
                         : N_("checkpoints cannot be saved here"));
        if (lock)
            fclose(lock);
        lock = NULL;
    } else {
        remove_partials(folder);
    }
    return lock;
}

void checkpoint_folder_close(FILE *lock, const char *folder, bool made)
{
    if (made && checkpoint_newest(folder, INT64_MAX) < 0) {
        unlink(path_in(folder, ".lock").text);
        rmdir(folder);
    }
    fclose(lock);
}

bool checkpoint_begin(const char *folder, int64_t step, Problem *problem)
{
    const Path path = checkpoint_path(folder, step, true);
    return mkdir(path.text, 0777) == 0 ||
           problem_set(problem, path.text, "free some space; the earlier checkpoints are intact",
                       "the checkpoint cannot be written: %s", strerror(errno));
}

/* Renames a checkpoint to a partial one before removing its files, so checkpoints with a final name
 * are always complete. */
static void remove_older(const char *folder)
{
    int kept = 0;
    for (int64_t step = INT64_MAX; (step = checkpoint_newest(folder, step)) >= 0;)
        if (++kept > KEPT && rename(checkpoint_path(folder, step, false).text,
                                    checkpoint_path(folder, step, true).text) == 0)
            checkpoint_abandon(folder, step);
}

bool checkpoint_commit(const char *folder, int64_t step, Problem *problem)
{
    const Path from = checkpoint_path(folder, step, true),
               to = checkpoint_path(folder, step, false);
    if (!folder_sync(from.text) || rename(from.text, to.text) || !folder_sync(folder))
        return problem_set(problem, to.text, "free some space; the earlier checkpoints are intact",
                           "cannot rename the finished checkpoint: %s", strerror(errno));
    remove_older(folder);
    return true;
}
