/* Replaces sched_yield(). Open MPI polls for what it waits for and, with the setting for ranks that
 * share cores (open_mpi.sh: yield), calls sched_yield() in between. The kernel then runs the next
 * rank, which usually waits too: with more ranks than cores, much of the time goes into polling.
 * With this replacement, a rank that has polled in vain for a while sleeps between polls, longer and
 * longer, and leaves the core to ranks that compute. */
#include "comm/yield.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PATIENT = 64 }; /* polls of a wait without a sleep */
/* Nanoseconds: how much longer each sleep is, the longest one, and the work that ends a wait. */
enum { STEP = 2000, LONGEST = 200000, WORK = 20000 };

static int64_t (*wait_of_poll)(void); /* see yield_by() */

void yield_by(int64_t (*wait_of)(void))
{
    wait_of_poll = wait_of;
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

/* Does this process share its core, and is this its first thread? Others wait for the threads of a
 * kernel, which takes no longer than a sleep. */
static bool may_sleep(void)
{
    static _Thread_local enum { UNKNOWN, NO, YES } may;
    if (may == UNKNOWN)
        may = getenv("RANKS_SHARE_CORES") && syscall(SYS_gettid) == getpid() ? YES : NO;
    return may == YES;
}

/* The wait of a poll that comes `work` nanoseconds after the last one. */
static int64_t wait_after(int64_t work)
{
    static int64_t wait;
    wait += work > WORK;
    return wait;
}

int sched_yield(void)
{
    static int64_t last, wait, turns;
    const int64_t this = wait_of_poll  ? wait_of_poll()
                         : may_sleep() ? wait_after(nanoseconds() - last)
                                       : -1;
    if (this < 0)
        return (int)syscall(SYS_sched_yield);
    if (this != wait) {
        wait = this;
        turns = 0;
    }
    if (turns++ < PATIENT) {
        syscall(SYS_sched_yield);
    } else {
        const int64_t sleep = (turns - PATIENT) * STEP;
        nanosleep(&(struct timespec){0, sleep < LONGEST ? sleep : LONGEST}, NULL);
    }
    last = nanoseconds();
    return 0;
}
