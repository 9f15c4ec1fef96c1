/* Handles what would end a rank: signals, and calls to exit and similar functions. */
#include "grader/runner/guard.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/run.h"
#include "grader/labs/room.h"
#include "grader/runner/filter.h"
#include "grader/runner/recorder.h"

enum {
    PATIENCE = 10000, /* pauses of 0.1 ms, in which a crashing rank waits for the others */
    IN_VAIN = 200,    /* unsuccessful polls of MPI */
};

/* Signal handlers get no context. */
static struct {
    const Launch *launch;
    RankHeader *header;
    char stack[1 << 16];
} guard;

static bool stack_is_full(const siginfo_t *info, const ucontext_t *context)
{
#if defined __x86_64__
    intptr_t stack = (intptr_t)context->uc_mcontext.gregs[REG_RSP];
#else
    intptr_t stack = (intptr_t)context->uc_mcontext.sp;
#endif
    intptr_t below = stack - (intptr_t)info->si_addr;
    return below > -4096 && below < 1 << 20;
}

/* The place in the lab, as a return address: its line is that of the byte before. If the lab itself
 * was interrupted, callsite() is the address of the instruction, so one byte is added. */
static void *place_in_lab(const ucontext_t *context)
{
    char *place = callsite();
#if defined __x86_64__
    uintptr_t interrupted = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    uintptr_t interrupted = (uintptr_t)context->uc_mcontext.pc;
#endif
    return place && (uintptr_t)place == interrupted ? place + 1 : place;
}

/* Has the other rank progressed as far as it can in the case in which this rank has crashed? */
static bool is_as_far(const RankHeader *other, int64_t *events, int64_t *asked)
{
    int state = atomic_load(&other->state);
    int64_t now = atomic_load(&other->events), looks = atomic_load(&other->asked);
    if (state == STARTING || atomic_load(&other->signal) ||
        atomic_load(&other->done_cases) > atomic_load(&guard.header->done_cases))
        return true;
    if (state != IN_MPI || now != *events) {
        *events = now;
        *asked = looks;
        return false;
    }
    return looks - *asked > IN_VAIN;
}

/* When a rank dies, mpirun ends the others, wherever they are. What they were about to write, and
 * the points for it, must not depend on chance. */
static void wait_for_others(void)
{
    int64_t events[MAX_RANKS], asked[MAX_RANKS] = {0};
    memset(events, -1, sizeof events);
    atomic_store(&guard.header->state,
                 RUNNING); /* a rank that crashes in MPI waits for nothing there */
    for (int nap = 0, rank = 0; nap < PATIENCE && rank < MAX_RANKS;) {
        if (is_as_far(&guard.launch->rank[rank], &events[rank], &asked[rank])) {
            rank++;
        } else {
            nanosleep(&(struct timespec){0, 100000}, NULL);
            nap++;
        }
    }
}

/* A forbidden system call, an index far out of bounds and a stack overflow do no damage, so they
 * end only the case. Other errors end the rank. */
static void caught(int number, siginfo_t *info, void *context)
{
    if (number == SIGSYS && !recorder_active()) {
        filter_answer(context, info->si_syscall);
        return;
    }
    if (number == SIGSYS)
        misuse(
            "a lab computes, and communicates with its group through balise.h or MPI",
            "forbidden system call %d: a lab must not start threads, start or signal processes, write "
            "files, open connections or change code",
            info->si_syscall);
    const Room *room = number == SIGSEGV && recorder_active() ? room_missed(info->si_addr) : NULL;
    if (room)
        misuse("does the loop around this line end where it should?",
               "an index into `%s` is far out of bounds: the array holds %lld numbers, %s[0] to "
               "%s[%lld]",
               room->name, (long long)room->count, room->name, room->name,
               (long long)room->count - 1);
    if (number == SIGSEGV && recorder_active() && stack_is_full(info, context))
        misuse("does a function call itself endlessly? allocate large arrays with malloc()",
               "stack overflow");
    guard.header->signal_address = place_in_lab(context);
    if (number == SIGUSR1) { /* the judge asks where this rank is */
        atomic_store(&guard.header->answered, 1);
        return;
    }
    atomic_store(&guard.header->signal, number);
    wait_for_others();
    signal(number, SIG_DFL);
    raise(number);
}

void guard_signals(Launch *launch, int rank)
{
    static const int numbers[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                  SIGABRT, SIGTRAP, SIGSYS, SIGUSR1};
    guard.launch = launch;
    guard.header = &launch->rank[rank];
    sigaltstack(&(stack_t){.ss_sp = guard.stack, .ss_size = sizeof guard.stack}, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i],
                  &(struct sigaction){.sa_sigaction = caught,
                                      .sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO},
                  NULL);
}

/* ---- the end */

static _Noreturn void must_not_end(const char *call)
{
    if (!recorder_active())
        abort();
    misuse("return from the function instead",
           "%s was called: it ends this rank before the check is complete", call);
}

#define ENDS(name)                                                                                 \
    GRADED(_Noreturn void, name, int status)                                                       \
    {                                                                                              \
        must_not_end(#name "()");                                                                  \
    }
ENDS(exit)
ENDS(_exit)
ENDS(_Exit)
ENDS(quick_exit)

GRADED(_Noreturn void, abort, void)
{
    must_not_end("abort()");
}
