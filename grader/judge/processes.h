/** @file
 * What /proc says of a process.
 */
#ifndef BALISE_GRADER_PROCESSES_H
#define BALISE_GRADER_PROCESSES_H

typedef struct ProcessState {
    char state; /**< 'R' runs or would run, 'S' sleeps, 'Z' is dead, ...; 0: there is no such process */
    int parent;
    double cpu; /**< seconds of CPU time */
} ProcessState;

ProcessState process_state(int pid);

#endif
