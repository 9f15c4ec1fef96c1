/* While the host waits: for what is on the device, and within NCCL. */
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

static Link *links; /* all of this process: an error of one ends the run */

static void check(const Link *link, ncclResult_t result)
{
    if (result != ncclSuccess && result != ncclInProgress)
        misuse("NCCL_DEBUG=INFO says more; TRANSPORT=mpi goes without NCCL",
               "rank %d of group %s: %s #%lld failed in NCCL: %s", link->group->rank,
               link->group->name, link->last, (long long)link->calls, ncclGetErrorString(result));
}

static const double usual_patience = 600; /* seconds; by itself NCCL waits for ever */

static double patience(void)
{
    const char *set = getenv("BALISE_NCCL_TIMEOUT");
    return set && atof(set) > 0 ? atof(set) : usual_patience;
}

/* By this thread or by that which looks on: whoever is first speaks. */
[[noreturn]] static void waited_in_vain(const Link *link, double waited, const char *where)
{
    static std::atomic_flag said = ATOMIC_FLAG_INIT;
    while (said.test_and_set())
        pause();
    misuse(
        "did each rank of the group call it, in this order? BALISE_NCCL_TIMEOUT=seconds waits longer",
        "rank %d has waited %.0f seconds%s, the last call being %s #%lld of group %s",
        link->group->rank, waited, where, link->last, (long long)link->calls, link->group->name);
}

/* A thread looks on where the host cannot look; it calls nothing of CUDA itself, whose locks may be taken then. Within NCCL: joining, splitting and the first exchanges of a group wait for the others before
 * they return. And where it has put so much behind an exchange that the stream takes no more. */
static const Link
    *latest; /* that something was called on; written by the host's thread, under inside.one */
static struct {
    std::mutex one;
    const Link *link; /* that a call has not returned on yet, or NULL */
    std::chrono::steady_clock::time_point since;
} inside;

/* On the device: an error that came up there, in whatever group; or a wait that takes too long. */
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

/* In a call of CUDA: what is put on a stream that works, and takes no more, waits. */
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

/* Once a process. */
static void begin(void)
{
    static bool begun;
    if (begun)
        return;
    begun = true;
    device_look_while_waiting(look);
    sigset_t all, before; /* signals are the program's thread's */
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
    device_changed();
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
