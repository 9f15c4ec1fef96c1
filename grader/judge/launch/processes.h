/** @file
 * What /proc says of processes, and an end for all that come from one.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/** What a process is at. */
typedef struct ProcessState {
    char state;       /**< 'R' runs or would run, 'S' sleeps, 'Z' is dead; 0: there is none */
    int parent;       /**< its process number */
    double cpu;       /**< seconds of CPU time */
    int threads;      /**< how many it has */
    int64_t resident; /**< bytes of memory that it holds */
} ProcessState;

/** What this process is at; zeros where there is none. */
ProcessState process_state(int pid);

/** The children of a process, those of one thread in the order in which it made them; returns how many there are, of which
 *  at most `room` are told. */
int process_children(int pid, int *children, int room);

/** Everything that comes from a process, itself left out, at most `room`. */
int process_descendants(int pid, int *found, int room);

/** How many processes and threads a user has. */
int process_count(uid_t user);

/** Sleeps for less than a second. */
void nap(long microseconds);

/** Ends everything that comes from the calling process, however fast it multiplies. The caller must have asked for the
 *  orphans among them (PR_SET_CHILD_SUBREAPER). */
void processes_end(void);
