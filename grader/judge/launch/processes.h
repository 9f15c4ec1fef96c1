/** @file
 * Information about processes from /proc, and a way to end all descendants.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/** The state of a process. */
typedef struct ProcessState {
    char state;       /**< 'R' running or ready, 'S' sleeping, 'Z' a zombie; 0: no such process */
    int parent;       /**< its parent's process ID */
    double cpu;       /**< seconds of CPU time */
    int threads;      /**< number of threads */
    int64_t resident; /**< bytes of memory that it holds */
} ProcessState;

/** The state of this process; zeros if it does not exist. */
ProcessState process_state(int pid);

/** Lists at most `room` children of a process, each thread's in the order of creation. Returns how
 *  many children there are, which may be more. */
int process_children(int pid, int *children, int room);

/** Lists at most `room` descendants of a process, without itself. Returns how many it listed. */
int process_descendants(int pid, int *found, int room);

/** The number of threads in all processes of a user. */
int process_count(uid_t user);

/** Sleeps for this many microseconds, less than a second. */
void nap(long microseconds);

/** Ends all descendants of the calling process, however fast they multiply. The caller must be
 *  their reaper (PR_SET_CHILD_SUBREAPER). */
void processes_end(void);
