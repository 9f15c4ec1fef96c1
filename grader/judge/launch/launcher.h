/** @file
 * A launcher: mpirun and its ranks, sandboxed and limited, from start to end.
 */
#pragma once

#include <sys/types.h>

#include "grader/judge/launch/sandbox.h"
#include "grader/protocol.h"

/** Is there a sandbox? The first launcher finds out; all launches of a run share this record. */
typedef struct Sandbox {
    enum {
        SANDBOX_IF_ALLOWED, /**< if the system allows one */
        SANDBOX_OFF,        /**< no sandbox */
        SANDBOX_DEMANDED,   /**< no grading without one */
    } wish;                 /**< what was requested */
    bool sanitized; /**< the runners have sanitizers, which need more address space and time */
    bool gpu;       /**< the runners use a GPU, which needs more address space, memory and time */
    bool debugged;  /**< a debugger will examine a rank */
    char missing[256]; /**< why there is no sandbox; otherwise empty */
    bool used;         /**< a launcher has started in the sandbox */
} Sandbox;

/** One launch, while it runs. */
typedef struct Launcher {
    Launch *launch;        /**< shared with the ranks */
    char folder[64];       /**< of this launcher alone, in /dev/shm or /tmp */
    pid_t supervisor;      /**< its process ID, from outside; in the sandbox it is process 1 */
    bool sandboxed, ended; /**< it runs in a sandbox; mpirun has ended */
    bool fell;             /**< mpirun ended before all ranks were ready */
    int status;            /**< of the supervisor: 0 if mpirun succeeded */
    int pid[MAX_RANKS];    /**< of the ranks, as seen from outside */
    int mpirun, ranks;     /**< mpirun's process ID, from outside; number of ranks */
    int said;              /**< receives the output of mpirun and the ranks */
    int log;               /**< stores it, up to LOG_BYTES */
    int64_t logged;        /**< bytes in the log so far */
    bool shows;            /**< also prints the ranks' output at once */
    int64_t memory;        /**< the most bytes that a rank may hold */
    double weighed;        /**< time of the last launcher_is_too_big() */
} Launcher;

enum { LOG_PATH = 600 }; /**< bytes of the path of a log */
/** The file that stores the output of a runner's ranks, shared by all launches of a lab. */
void printed_path(const char *runner, char path[LOG_PATH]);
/** Deletes that file. Call this before the first launch of a lab. */
void printed_forget(const char *runner);

/** Can mpirun start a program in a sandbox on this machine? Otherwise `why` gives the reason. */
bool sandbox_works(char *why, size_t size);

/** Chooses the folder for what launches share with their ranks: /dev/shm, or /tmp if /dev/shm has
 *  no room for a launch (the first time, a sentence on stderr says so). Returns how many launches
 *  at a time the folder has room for, at least 1. */
int launches_with_room(const char **folder);

/** Starts `ranks` ranks of `runner`, and waits until all are ready for the first case.
 *  @return whether they are; otherwise `why` gives the reason, and nothing of the launcher is
 *  left */
bool launcher_start(Launcher *launcher, Sandbox *sandbox, const char *runner, int ranks, char *why,
                    size_t size);

/** Call this often: reads the output, and returns whether mpirun has ended. */
bool launcher_has_ended(Launcher *launcher);

/** Waits until mpirun has ended, at most this long. Returns whether it has ended. */
bool launcher_wait(Launcher *launcher, double seconds);

/** Do the launcher's processes exceed their memory limit? If so, `diagnosis` says which one, or how
 *  many, and by how much. */
bool launcher_is_too_big(Launcher *launcher, char *diagnosis, size_t size);

/** Ends every process of the launcher. The ranks' results stay in launcher->launch; the caller
 *  unmaps them. */
void launcher_stop(Launcher *launcher);
