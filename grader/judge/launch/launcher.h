/** @file
 * A launcher: mpirun and the ranks that it started, in their sandbox and with their limits, from start to end.
 */
#pragma once

#include <sys/types.h>

#include "grader/judge/launch/sandbox.h"
#include "grader/protocol.h"

/** Is there a sandbox? The first launcher finds out. One for all launches of a run. */
typedef struct Sandbox {
    enum {
        SANDBOX_IF_ALLOWED, /**< where the system allows one */
        SANDBOX_OFF,        /**< none */
        SANDBOX_DEMANDED,   /**< rather no grade than none */
    } wish;                 /**< what was asked for */
    bool sanitized;         /**< the runners have sanitizers, which take more addresses and time */
    bool gpu;               /**< the runners see one, and take more addresses, memory and time */
    bool debugged;          /**< a debugger is to look at a rank */
    char missing[256];      /**< why there is none; empty while there is one */
    bool used;              /**< a launcher has started in it */
} Sandbox;

/** One launch, while it lives. */
typedef struct Launcher {
    Launch *launch;        /**< shared with the ranks */
    char folder[64];       /**< of this launcher alone, in /dev/shm or /tmp */
    pid_t supervisor;      /**< process 1 of the sandbox, or what stands for it */
    bool sandboxed, ended; /**< it runs in a sandbox; mpirun has ended */
    int status;            /**< of the supervisor: 0 if mpirun ended well */
    int pid[MAX_RANKS];    /**< of the ranks, from outside: not what a rank says of itself */
    int mpirun, ranks;     /**< the process of mpirun, from outside; how many ranks there are */
    int said;              /**< what mpirun and the ranks print comes here */
    int log;               /**< and is written there, up to LOG_BYTES */
    int64_t logged;        /**< bytes that are in the log by now */
    int64_t memory;        /**< bytes that a rank may hold */
    double weighed;        /**< when launcher_is_too_big() has looked last */
} Launcher;

enum { LOG_PATH = 600 }; /**< bytes of the path of a log */
/** Where it is kept what the ranks of a runner print. All launches of a lab print into one file. */
void printed_path(const char *runner, char path[LOG_PATH]);
/** To be called before the first launch of a lab. */
void printed_forget(const char *runner);

/** Whether mpirun starts a program in a sandbox on this machine; otherwise `why` says what is in the way. */
bool sandbox_works(char *why, size_t size);

/** Starts `ranks` ranks of `runner`, and waits until all of them are ready for the first case.
 *  @return whether they are; otherwise `why` says what is wrong, and nothing is left of the launcher */
bool launcher_start(Launcher *launcher, Sandbox *sandbox, const char *runner, int ranks, char *why,
                    size_t size);

/** To be called often: takes what was printed, and says whether mpirun has ended. */
bool launcher_has_ended(Launcher *launcher);

/** Whether the launcher holds more memory than it may; `diagnosis` then says who and how much. */
bool launcher_is_too_big(Launcher *launcher, char *diagnosis, size_t size);

/** Ends every process of the launcher. What the ranks have written stays in launcher->launch, for the caller to unmap. */
void launcher_stop(Launcher *launcher);
