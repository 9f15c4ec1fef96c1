/* The message about a run without progress: which ranks on this machine are stopped or, if none is,
 * the possible causes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/language.h"
#include "train/trainer.h"

/* A rank of this machine, and all that a signal handler needs to report it. */
typedef struct Neighbour {
    int rank;
    char path[64];
    char sentence[300]; /* translated */
} Neighbour;

enum { MOST = 256 };
static Neighbour neighbours[MOST];
static int neighbour_count = -1, own_rank;

/* The rank of a process, according to mpirun or Slurm; -1 if the process is no rank. */
static int rank_of(int process)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK="};
    char path[64], *word = NULL;
    size_t room = 0;
    int rank = -1;
    snprintf(path, sizeof path, "/proc/%d/environ", process);
    FILE *file = fopen(path, "re");
    while (file && rank < 0 && getdelim(&word, &room, '\0', file) > 0)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!strncmp(word, names[i], strlen(names[i])))
                rank = atoi(word + strlen(names[i]));
    if (file)
        fclose(file);
    free(word);
    return rank;
}

static void add_neighbour(int process)
{
    const int rank = rank_of(process);
    if (process == getpid())
        own_rank = rank > 0 ? rank : 0;
    if (rank < 0 || neighbour_count == MOST)
        return;
    Neighbour *n = &neighbours[neighbour_count++];
    n->rank = rank;
    snprintf(n->path, sizeof n->path, "/proc/%d/stat", process);
    snprintf(
        n->sentence, sizeof n->sentence,
        _("\nno step has finished for a while: rank %d is stopped (process %d)\n  HINT: kill -CONT %d resumes it\n"),
        rank, process, process);
}

/* Finds the ranks on this machine: the children of this rank's parent, listed by the parent's
 * threads. */
static void find_neighbours(void)
{
    char path[300];
    int child;
    neighbour_count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)getppid());
    DIR *threads = opendir(path);
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        snprintf(path, sizeof path, "/proc/%d/task/%.200s/children", (int)getppid(),
                 thread->d_name);
        FILE *file = fopen(path, "re");
        while (file && fscanf(file, "%d", &child) == 1)
            add_neighbour(child);
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
}

/* ---- functions that a signal handler may call */

static volatile sig_atomic_t said;
static double longest, since;
static const char *line; /* translated */

static bool is_stopped(const Neighbour *n)
{
    char text[128];
    const int file = open(n->path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *name_ends = strrchr(text, ')'); /* a blank and the state follow */
    return name_ends && name_ends[1] && name_ends[2] == 'T';
}

static bool put(const char *text)
{
    return write(STDERR_FILENO, text, strlen(text)) > 0;
}

/* May interrupt anything, so it uses only what POSIX allows in signal handlers. */
static void say(int signal)
{
    const int error = errno;
    bool speaks = own_rank == 0, stopped = false;
    for (int i = 0; i < neighbour_count; i++)
        speaks = speaks || (neighbours[i].rank == 0 && is_stopped(&neighbours[i]));
    for (int i = 0; speaks && i < neighbour_count; i++)
        if (is_stopped(&neighbours[i]))
            stopped = put(neighbours[i].sentence) || stopped;
    if (speaks && !stopped && !said && put(line))
        said = 1;
    errno = error;
}

/* ---- */

void stall_moved(int patience)
{
    double time = clock_now(), took = since > 0 ? time - since : 0;
    if (neighbour_count < 0)
        find_neighbours();
    line = _(
        "\nno step has finished for a while. Either a step takes that long here, or the ranks are deadlocked; if they are, press Ctrl-C twice to stop\n  HINT: make grade says which lab's calls do not match those of the other ranks; make trace LAB=n shows the calls\n");
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = say, .sa_flags = SA_RESTART | SA_ONSTACK},
              NULL);
    longest = took > longest ? took : longest;
    since = time;
    alarm((unsigned)(10 * longest > patience ? 10 * longest : patience));
}

void stall_end(void)
{
    alarm(0);
    longest = since = 0;
}
