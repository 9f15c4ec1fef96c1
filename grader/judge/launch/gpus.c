#include "grader/judge/launch/gpus.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Who is in the group may use what others may not. */
static void note_group(Gpus *gpus, const char *path)
{
    struct stat status;
    const mode_t others = S_IROTH | S_IWOTH, group = S_IRGRP | S_IWGRP;
    if (stat(path, &status) != 0 || S_ISDIR(status.st_mode) ||
        (status.st_mode & others) == others || (status.st_mode & group) != group)
        return;
    for (int i = 0; i < gpus->groups; i++)
        if (gpus->group[i] == status.st_gid)
            return;
    if (gpus->groups < MAX_GPU_GROUPS)
        gpus->group[gpus->groups++] = status.st_gid;
}

static void show(Gpus *gpus, const char *folder, const char *path)
{
    if (gpus->count == MAX_GPU_FILES || strlen(path) >= sizeof gpus->path[0])
        return;
    snprintf(gpus->path[gpus->count], sizeof gpus->path[0], "%s", path);
    snprintf(gpus->shown[gpus->count], sizeof gpus->shown[0], "/dev%.50s", path + strlen(folder));
    gpus->count++;
}

Gpus gpus_of(const char *folder)
{
    /* A folder is shown with all that is in it: nvidia-caps, of GPUs that are shared out (MIG). */
    static const char *const shown[] = {"nvidia*", "dxg"};
    Gpus gpus = {.count = 0};
    char pattern[128];
    glob_t found = {0};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        snprintf(pattern, sizeof pattern, "%.90s/%s", folder, shown[i]);
        glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        show(&gpus, folder, found.gl_pathv[i]);
    snprintf(pattern, sizeof pattern, "%.90s/%s", folder, "nvidia-caps/*");
    glob(pattern, GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        note_group(&gpus, found.gl_pathv[i]);
    globfree(&found);
    return gpus;
}
