/* Information about processes, from /proc. */
#include "grader/judge/launch/processes.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 4096 };

ProcessState process_state(int pid)
{
    ProcessState process = {0};
    char path[64], line[1024];
    unsigned long user = 0, kernel = 0;
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = pid > 0 ? fopen(path, "r") : NULL;
    if (!file)
        return process;
    const char *rest =
        fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL; /* names may contain blanks */
    if (rest)
        sscanf(rest,
               ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %d %*d %*u %*u "
               "%ld",
               &process.state, &process.parent, &user, &kernel, &process.threads, &pages);
    fclose(file);
    process.cpu = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    process.resident = (int64_t)pages * sysconf(_SC_PAGESIZE);
    return process;
}

static int number_of(const char *name)
{
    char *end;
    long number = strtol(name, &end, 10);
    return *name && !*end ? (int)number : 0;
}

/* For kernels that do not list children: reads the parent of every process. */
static int search_children(int pid, int *children, int room)
{
    int count = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *one; all && (one = readdir(all));) {
        int child = number_of(one->d_name);
        if (!child || process_state(child).parent != pid)
            continue;
        if (count < room)
            children[count] = child;
        count++;
    }
    if (all)
        closedir(all);
    return count;
}

/* The kernel lists each child with the thread that made it. */
int process_children(int pid, int *children, int room)
{
    char path[300];
    int count = 0, child;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (access(path, R_OK) != 0)
        return search_children(pid, children, room);
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        snprintf(path, sizeof path, "/proc/%d/task/%.200s/children", pid, thread->d_name);
        FILE *file = number_of(thread->d_name) ? fopen(path, "r") : NULL;
        while (file && fscanf(file, "%d", &child) == 1) {
            if (count < room)
                children[count] = child;
            count++;
        }
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return count;
}

int process_descendants(int pid, int *found, int room)
{
    int count = process_children(pid, found, room);
    count = count < room ? count : room;
    for (int i = 0; i < count; i++) {
        int more = process_children(found[i], found + count, room - count);
        count += more < room - count ? more : room - count;
    }
    return count;
}

int process_count(uid_t user)
{
    int count = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *one; all && (one = readdir(all));) {
        char path[300];
        struct stat status;
        snprintf(path, sizeof path, "/proc/%.200s", one->d_name);
        if (number_of(one->d_name) && stat(path, &status) == 0 && status.st_uid == user)
            count += process_state(number_of(one->d_name)).threads;
    }
    if (all)
        closedir(all);
    return count;
}

void nap(long microseconds)
{
    nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
}

static bool all_are_stopped(const int *pids, int count)
{
    for (int i = 0; i < count; i++)
        if (!strchr("TtZX", process_state(pids[i]).state))
            return false;
    return true;
}

/* Stops all processes before it kills any, because a killed process makes room for a new one. Two
 * consecutive looks must find all of them stopped, because the second finds a process that was made
 * while its parent was being stopped. */
void processes_end(void)
{
    enum { LOOKS = 5000 };
    static int found[MANY];
    int count, still = 0;
    for (int look = 0; look < LOOKS && (count = process_descendants(getpid(), found, MANY)) > 0;
         look++) {
        still = all_are_stopped(found, count) ? still + 1 : 0;
        for (int i = 0; i < count; i++)
            kill(found[i], still > 1 || look == LOOKS - 1 ? SIGKILL : SIGSTOP);
        nap(100);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}
