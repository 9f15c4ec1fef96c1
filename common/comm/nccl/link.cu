/* Watches the device and NCCL while the host waits. */
#include "comm/nccl/link.cuh"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "backend/cuda/device.cuh"
#include "base/language.h"
#include "base/run.h"

static Link *links; /* all links in this process: an error on any of them ends the run */

static void check(const Link *link, ncclResult_t result)
{
    if (result != ncclSuccess && result != ncclInProgress)
        misuse("NCCL_DEBUG=INFO says more; TRANSPORT=mpi does not need NCCL",
               "rank %d of group %s: %s #%lld failed in NCCL: %s", link->group->rank,
               link->group->name, link->last, (long long)link->calls, ncclGetErrorString(result));
}

static const double usual_patience = 600; /* seconds; NCCL itself would wait forever */

static double patience(void)
{
    const char *set = getenv("BALISE_NCCL_TIMEOUT");
    return set && atof(set) > 0 ? atof(set) : usual_patience;
}

/* Reports a wait that takes too long. If both threads call it, only the first reports. */
[[noreturn]] static void waited_in_vain(const Link *link, double waited, const char *where)
{
    static std::atomic_flag said = ATOMIC_FLAG_INIT;
    while (said.test_and_set())
        pause();
    misuse("does each rank of the group make the same calls, in the same order? "
           "BALISE_NCCL_TIMEOUT=seconds waits longer",
           "rank %d has waited %.0f seconds%s; its last call was %s #%lld of group %s",
           link->group->rank, waited, where, link->last, (long long)link->calls, link->group->name);
}

/* A second thread watches while the host's thread cannot. That is the case in two kinds of calls:
 * joining, splitting and a group's first operations, which wait for other ranks in NCCL before they
 * return; and CUDA calls that wait because the stream is full. The watching thread must not call
 * CUDA: the waiting call may hold CUDA's locks. */
static const Link *latest; /* the last link used; written by the host's thread under inside.one */
static struct {
    std::mutex one;
    const Link *link; /* the link on which a call has not returned yet, or NULL */
    std::chrono::steady_clock::time_point since;
} inside;

/* Looks for an error of any group on the device, and for a wait that takes too long. */
static void look(bool begins)
{
    static double since;
    ncclResult_t result;
    if (begins)
        since = MPI_Wtime();
    for (Link *link = links; link; link = link->next)
        if (ncclCommGetAsyncError(link->comm, &result) == ncclSuccess)
            check(link, result);
    const double waited = MPI_Wtime() - since;
    if (latest && waited > patience())
        waited_in_vain(latest, waited, "");
}

static double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

static void look_inside(void)
{
    std::lock_guard<std::mutex> lock(inside.one);
    const double waited = seconds_since(inside.since);
    if (inside.link && waited > patience())
        waited_in_vain(inside.link, waited, _(" within NCCL"));
}

/* Looks for a CUDA call that waits too long because the stream is full. */
static void look_at_calls(void)
{
    const double waited = device_call_seconds();
    std::lock_guard<std::mutex> lock(inside.one);
    if (latest && waited > patience())
        waited_in_vain(latest, waited, _(" for the GPU to accept more work"));
}

static void look_on(void)
{
    const std::chrono::duration<double> nap(patience() < 10 ? patience() / 10 : 1);
    for (;;) {
        std::this_thread::sleep_for(nap);
        look_inside();
        look_at_calls();
    }
}

static void note_inside(const Link *link)
{
    std::lock_guard<std::mutex> lock(inside.one);
    inside.link = link;
    inside.since = std::chrono::steady_clock::now();
}

/* Starts watching, once per process. */
static void begin(void)
{
    static bool begun;
    if (begun)
        return;
    begun = true;
    device_look_while_waiting(look);
    sigset_t all, before; /* signals are for the program's thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread(look_on).detach();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void link_ask(const Link *link, const std::function<ncclResult_t()> &call)
{
    begin();
    note_inside(link);
    const ncclResult_t result = call();
    note_inside(NULL);
    check(link, result);
}

Link *link_called(Group *group, const char *what)
{
    Link *link = (Link *)group->link;
    const std::lock_guard<std::mutex> lock(inside.one);
    link->last = what;
    link->calls++;
    latest = link;
    return link;
}

void link_add(Link *link)
{
    link->next = links;
    links = link;
}

void link_remove(Link *link)
{
    Link **at = &links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    const std::lock_guard<std::mutex> lock(inside.one);
    latest = latest == link ? NULL : latest;
}
