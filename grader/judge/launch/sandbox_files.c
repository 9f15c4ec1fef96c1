/* The files that a sandbox shows: see sandbox.h. */
#include "grader/judge/launch/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/mount.h> /* sys/mount.h conflicts with it, and lacks the newer calls on some systems */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/language.h"

enum { MAX_HIDDEN = 256, MAX_SHOWN = 64 };

/* A file tree that is kept while the folder above it is hidden, and then shown again at `path`. */
typedef struct Shown {
    char path[PATH_MAX];
    int tree;
} Shown;

typedef struct Files {
    Shown shown[MAX_SHOWN];
    int shown_count;
    char *hidden[MAX_HIDDEN];
    int hidden_count;
    char *why;
    size_t size;
} Files;

static bool done(Files *files, bool good, const char *what, const char *path)
{
    if (!good)
        snprintf(files->why, files->size, "%s %.100s%s%s", _(what), path, _(": "), strerror(errno));
    return good;
}

static bool mount_memory(Files *files, const char *path, const char *options, bool readable_only)
{
    unsigned long flags = MS_NOSUID | MS_NODEV | (readable_only ? MS_RDONLY : 0);
    return done(files, syscall(SYS_mount, "balise", path, "tmpfs", flags, options) == 0,
                N_("a file system in memory at"), path);
}

static bool keep(Files *files, const char *from, const char *path)
{
    if (files->shown_count == MAX_SHOWN)
        return true;
    Shown *shown = &files->shown[files->shown_count];
    shown->tree = (int)syscall(SYS_open_tree, AT_FDCWD, from,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (shown->tree < 0)
        return done(files, false, N_("keeping"), from);
    snprintf(shown->path, sizeof shown->path, "%s", path);
    files->shown_count++;
    return true;
}

/* ---- what is hidden: the kit, and all folders of / except those of the system */

static bool is_of_the_system(const char *name)
{
    static const char *const names[] = {"bin", "boot", "dev",  "etc",  "gnu", "lib",
                                        "nix", "opt",  "proc", "sbin", "sys", "usr"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return !strncmp(name, "lib", 3);
}

static void hide(Files *files, const char *path)
{
    struct stat status;
    if (files->hidden_count < MAX_HIDDEN && lstat(path, &status) == 0 && S_ISDIR(status.st_mode))
        files->hidden[files->hidden_count++] = strdup(path);
}

static bool is_hidden(const Files *files, const char *path)
{
    for (int i = 0; i < files->hidden_count; i++) {
        size_t length = strlen(files->hidden[i]);
        if (!strncmp(path, files->hidden[i], length) && (path[length] == '/' || !path[length]))
            return true;
    }
    return false;
}

static void list_hidden(Files *files)
{
    char path[PATH_MAX];
    DIR *root = opendir("/");
    for (struct dirent *entry; root && (entry = readdir(root));) {
        snprintf(path, sizeof path, "/%s", entry->d_name);
        if (entry->d_name[0] != '.' && !is_of_the_system(entry->d_name))
            hide(files, path);
    }
    if (root)
        closedir(root);
    if (getcwd(path, sizeof path) && !is_hidden(files, path))
        hide(files, path);
}

/* ---- exceptions: an Open MPI in a hidden folder, and folders that the environment names */

static bool show_again(Files *files, const char *path)
{
    char real[PATH_MAX];
    if (!realpath(path, real) || !is_hidden(files, real))
        return true;
    for (int i = 0; i < files->shown_count; i++)
        if (!strcmp(files->shown[i].path, real))
            return true;
    return keep(files, real, real);
}

static bool show_installation(Files *files, const char *prefix)
{
    static const char *const parts[] = {"bin", "lib", "lib64", "etc", "share", "libexec"};
    char path[PATH_MAX + 16];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%s/%s", prefix, parts[i]);
        if (!show_again(files, path))
            return false;
    }
    return true;
}

static bool each_of(Files *files, const char *paths, bool (*show)(Files *files, const char *path))
{
    char path[PATH_MAX];
    for (const char *at = paths ? paths : ""; *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s", (int)length, at);
        at += length;
        if (!show(files, path))
            return false;
    }
    return true;
}

/* Shows a folder of PATH if it contains mpirun, and the installation that mpirun may link to. */
static bool show_mpi_of(Files *files, const char *folder)
{
    char path[PATH_MAX + 16], real[PATH_MAX];
    snprintf(path, sizeof path, "%s/mpirun", folder);
    if (!realpath(path, real))
        return true;
    for (int up = 0; up < 2; up++)
        *strrchr(real, '/') = '\0';
    return show_again(files, folder) && show_installation(files, real);
}

static bool keep_installed(Files *files)
{
    const char *prefix = getenv("OPAL_PREFIX");
    return each_of(files, getenv("PATH"), show_mpi_of) &&
           each_of(files, getenv("LD_LIBRARY_PATH"), show_again) &&
           each_of(files, getenv("TEXTDOMAINDIR"), show_again) && /* the translations */
           (!prefix || show_installation(files, prefix));
}

/* ---- GPUs */

/* Notes the file's group if its members may use the file, but others may not. */
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

static void show_gpu(Gpus *gpus, const char *folder, const char *path)
{
    if (gpus->count == MAX_GPU_FILES || strlen(path) >= sizeof gpus->path[0])
        return;
    snprintf(gpus->path[gpus->count], sizeof gpus->path[0], "%s", path);
    snprintf(gpus->shown[gpus->count], sizeof gpus->shown[0], "/dev%.50s", path + strlen(folder));
    gpus->count++;
}

Gpus gpus_of(const char *folder)
{
    /* A folder that matches is shown with its files: nvidia-caps, which shared GPUs (MIG) need. */
    static const char *const shown[] = {"nvidia*", "dxg"};
    Gpus gpus = {.count = 0};
    char pattern[128];
    glob_t found = {0};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        snprintf(pattern, sizeof pattern, "%.90s/%s", folder, shown[i]);
        glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        show_gpu(&gpus, folder, found.gl_pathv[i]);
    snprintf(pattern, sizeof pattern, "%.90s/%s", folder, "nvidia-caps/*");
    glob(pattern, GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        note_group(&gpus, found.gl_pathv[i]);
    globfree(&found);
    return gpus;
}

/* ---- mounting it all */

static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                      "/dev/urandom"};
enum { DEVICES = sizeof devices / sizeof *devices };

static bool make_read_only(Files *files, int tree, const char *path)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
    long result =
        syscall(SYS_mount_setattr, tree, tree < 0 ? path : "",
                AT_RECURSIVE | (tree < 0 ? 0 : AT_EMPTY_PATH), &attributes, sizeof attributes);
    return done(files, result == 0, N_("read-only"), path);
}

/* Creates a file or folder to mount a tree on, with the folders above it. */
static void make_target(const char *path, bool folder)
{
    char part[PATH_MAX];
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0755);
    }
    if (folder)
        mkdir(path, 0755);
    else
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static bool show_all(Files *files)
{
    for (int i = 0; i < files->shown_count; i++) {
        Shown *shown = &files->shown[i];
        struct stat status;
        make_target(shown->path, fstat(shown->tree, &status) == 0 && S_ISDIR(status.st_mode));
        long result = syscall(SYS_move_mount, shown->tree, "", AT_FDCWD, shown->path,
                              MOVE_MOUNT_F_EMPTY_PATH);
        close(shown->tree);
        if (!done(files, result == 0, N_("showing"), shown->path))
            return false;
    }
    return true;
}

static bool lay_memory(Files *files)
{
    bool good = mount_memory(files, "/dev", "size=64k,nr_inodes=64,mode=0755", false);
    for (int i = 0; good && i < files->hidden_count; i++)
        good = mount_memory(files, files->hidden[i], "size=64k,nr_inodes=1024,mode=0755", false);
    mkdir("/dev/shm", 0755);
    good = good && mount_memory(files, "/dev/shm", "size=256m,nr_inodes=1024,mode=0700", false) &&
           mount_memory(files, "/tmp", "size=64m,nr_inodes=4096,mode=0700", false) &&
           show_all(files);
    for (int i = -1; good && i < files->hidden_count; i++) {
        const char *path = i < 0 ? "/dev" : files->hidden[i];
        unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
        if (strcmp(path, "/tmp") != 0)
            good = done(files, syscall(SYS_mount, NULL, path, NULL, flags, NULL) == 0,
                        N_("read-only"), path);
    }
    return good;
}

static bool keep_gpus(Files *files, const Gpus *gpus)
{
    bool good = true;
    for (int i = 0; good && i < gpus->count; i++)
        good = keep(files, gpus->path[i], gpus->shown[i]);
    return good;
}

static bool keep_all(Files *files, const Place *place, const Seen *seen)
{
    char launch[PATH_MAX];
    snprintf(launch, sizeof launch, "%s/launch", place->folder);
    bool good = keep_installed(files);
    for (int i = 0; good && i < files->shown_count; i++)
        good = make_read_only(files, files->shown[i].tree, files->shown[i].path);
    int runner = files->shown_count;
    good = good && keep(files, place->runner, seen->runner) &&
           make_read_only(files, files->shown[runner].tree, seen->runner) &&
           keep(files, launch, seen->launch);
    for (int i = 0; good && i < DEVICES; i++)
        good = keep(files, devices[i], devices[i]);
    return good && (!place->gpus || keep_gpus(files, place->gpus));
}

bool sandbox_files(const Place *place, const Seen *seen, char *why, size_t size)
{
    static Files files;
    files = (Files){.why = why, .size = size};
    list_hidden(&files);
    /* Keeps files before it becomes the user, because only root may be able to read them. Makes new
     * files afterwards, because they must belong to the user. */
    bool good =
        keep_all(&files, place, seen) && make_read_only(&files, -1, "/") &&
        done(&files, become(place, true), N_("becoming"), _("the user")) && lay_memory(&files) &&
        done(&files,
             syscall(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ==
                 0,
             N_("mounting"), "/proc");
    for (int i = 0; i < files.hidden_count; i++)
        free(files.hidden[i]);
    return good && done(&files, chdir("/tmp") == 0, N_("going to"), "/tmp");
}
