/** @file
 * Where students' code runs: mpirun and the ranks as one family of processes, away from everything else.
 *
 * The sandbox is made of Linux namespaces, by the judge itself: nothing has to be installed, it costs some milliseconds,
 * its memory file systems have sizes, and root can lend the ranks the number of a user that is nobody else. Within it
 * - the family has its own process numbers: no other process can be seen or signalled, and all of it ends with its first
 *   process, which signals from within do not reach;
 * - every file is read-only, and what is neither the system's nor MPI's is hidden: homes, the kit, the other labs, mounted
 *   disks, sockets in /run; /tmp and /dev/shm are its own, empty, of a bounded size, and gone at the end;
 * - the only network is its own loopback;
 * - no process has a capability, can gain one, or can make namespaces of its own.
 *
 * Where the system allows no namespaces (most containers, some hardened systems) there are the limits of supervisor.c, and
 * what the runner itself refuses (grader/runner/filter.h); the report says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    MAX_GPU_FILES = 48, /**< device files of a machine */
    MAX_GPU_GROUPS = 8, /**< groups that they belong to */
};

/** The device files of GPUs, those of NVIDIA's driver, and under WSL2 the one of Windows' driver: what a process needs to see of a machine's GPUs. */
typedef struct Gpus {
    char path[MAX_GPU_FILES][64];  /**< where they are */
    char shown[MAX_GPU_FILES][64]; /**< where a driver looks for them: in /dev */
    int count;                     /**< of the files */
    gid_t group[MAX_GPU_GROUPS];   /**< of files that are not everybody's: video, render */
    int groups;                    /**< how many there are */
} Gpus;

/** The device files in `folder`: "/dev", or in tests another one. */
Gpus gpus_of(const char *folder);

/** What a launch gets to see and whom it runs as. */
typedef struct Place {
    const char *runner; /**< the program, by its path outside */
    const char *folder; /**< of this launch alone, outside; its file "launch" is shared */
    uid_t user;         /**< whom the ranks run as */
    gid_t group;        /**< and their group */
    bool sandboxed;     /**< in namespaces of their own */
    const Gpus *gpus; /**< whose files are shown too, and whose groups the ranks are in; or NULL */
} Place;

/** Paths as the ranks see them. */
typedef struct Seen {
    /** the program, the shared file, a folder for what they write */
    char runner[512], launch[128], temporary[128];
} Seen;

/** The paths that ranks in this place see. */
Seen place_seen(const Place *place);

/** Forks into new namespaces, where the child is process 1; as fork() otherwise. Returns -1 with `why` when the system
 *  refuses. */
pid_t sandbox_fork(const Place *place, int (*child)(void *context), void *context, char *why,
                   size_t size);

/** In the child: lays the file systems and gives up every privilege but that of having children.
 *  @return whether all of it could be done; if not, `why` says what could not */
bool sandbox_enter(const Place *place, const Seen *seen, char *why, size_t size);

/** Whether the judge can start processes and make files as another user. */
bool may_become_others(void);

/** Becomes the place's user, in no groups but those of its GPUs, and gives up all capabilities and the gaining of new ones. Who is that user
 *  already stays in all groups. */
bool become(const Place *place, bool keep_capabilities);

/** Lays the files that a sandbox shows in the calling process's own mount namespace, as `place->user`.
 *  @return whether all of it could be done; if not, `why` says what could not */
bool sandbox_files(const Place *place, const Seen *seen, char *why, size_t size);
