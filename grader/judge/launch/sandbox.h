/** @file
 * The sandbox for students' code. It isolates mpirun and the ranks from all other processes.
 *
 * The judge itself makes the sandbox from Linux namespaces, so nothing needs to be installed. It
 * starts in a few milliseconds, its memory file systems are bounded, and root can run the ranks
 * under an unused user ID. Inside the sandbox,
 * - processes have their own process IDs: they cannot see or signal any process outside. All of them
 *   end with the first process, which signals from inside do not reach;
 * - every file is read-only, and everything that belongs neither to the system nor to MPI is
 *   hidden: homes, the kit, the other labs, mounted disks, sockets in /run. /tmp and /dev/shm are
 *   the sandbox's own: empty, bounded, and deleted at the end;
 * - the only network is its own loopback;
 * - no process has a capability, can gain one, or can make namespaces of its own.
 *
 * If the system allows no namespaces (most containers, some hardened systems), the limits of
 * supervisor.c and the runner's system-call filter (grader/runner/filter.h) remain; the report says
 * so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    MAX_GPU_FILES = 48, /**< device files of GPUs */
    MAX_GPU_GROUPS = 8, /**< groups that own them */
};

/** The device files that a process needs to use the machine's GPUs: those of NVIDIA's driver and,
 *  under WSL2, that of Windows' driver. */
typedef struct Gpus {
    char path[MAX_GPU_FILES][64];  /**< their paths */
    char shown[MAX_GPU_FILES][64]; /**< the paths at which a driver looks for them: in /dev */
    int count;                     /**< number of files */
    gid_t group[MAX_GPU_GROUPS];   /**< of files not open to everybody: video, render */
    int groups;                    /**< how many there are */
} Gpus;

/** Finds the device files in `folder`: "/dev", or another one in tests. */
Gpus gpus_of(const char *folder);

/** What a launch can see, and the user who runs it. */
typedef struct Place {
    const char *runner; /**< the program's path outside */
    const char *folder; /**< the launch's own folder, outside; its file "launch" is shared */
    uid_t user;         /**< the ranks' user */
    gid_t group;        /**< the ranks' group */
    bool sandboxed;     /**< runs in its own namespaces */
    const Gpus *gpus;   /**< GPUs to show, whose groups the ranks join; or NULL */
} Place;

/** Paths as the ranks see them. */
typedef struct Seen {
    /** the program, the shared file, a folder for the ranks' files */
    char runner[512], launch[128], temporary[128];
} Seen;

/** Returns the paths that ranks in this place see. */
Seen place_seen(const Place *place);

/** Runs child(context) as process 1 of new namespaces, with a copy of the caller's memory.
 *  @return its process ID; or -1 with `why` if the system refuses */
pid_t sandbox_fork(const Place *place, int (*child)(void *context), void *context, char *why,
                   size_t size);

/** In the child: mounts the file systems, starts the loopback, forbids further namespaces and drops
 *  every capability.
 *  @return true; or false with `why` if something failed */
bool sandbox_enter(const Place *place, const Seen *seen, char *why, size_t size);

/** Can the judge start processes and create files as another user? */
bool may_become_others(void);

/** Becomes the place's user, with no groups except those of its GPUs. A process that already is
 *  that user keeps its groups. Unless `keep_capabilities`, also gives up all capabilities for good.
 *  @return whether all of it succeeded */
bool become(const Place *place, bool keep_capabilities);

/** Mounts the files of the sandbox in the calling process's own mount namespace, and becomes
 *  `place->user`, but keeps its capabilities.
 *  @return true; or false with `why` if something failed */
bool sandbox_files(const Place *place, const Seen *seen, char *why, size_t size);
