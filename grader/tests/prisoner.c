/* Takes the place of a runner, without the system-call filter, and tries to get out of the sandbox.
 * Prints a line for each thing that it reached; in a working sandbox, only its last line. argv[1]
 * is the file shared with the judge; KIT is the kit's folder, HOME that of the user who runs the
 * test. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void reached(int did, const char *what, const char *detail)
{
    if (did)
        printf("reached: %s %s\n", what, detail);
}

static int writes(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    return file >= 0 && write(file, "x", 1) == 1;
}

static void try_files(void)
{
    static const char *const outside[] = {
        "/balise-was-here",         "/etc/balise-was-here",
        "/usr/balise-was-here",     "/run/balise-was-here",
        "/var/tmp/balise-was-here", "/dev/balise-was-here",
        "/home/balise-was-here",    HOME "/balise-was-here",
        "/sys/balise-was-here",     "/proc/sys/kernel/core_pattern",
        "/proc/self/exe",           "/etc/passwd"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        reached(writes(outside[i]), "writes", outside[i]);
    DIR *root = opendir("/home");
    for (struct dirent *entry; root && (entry = readdir(root));)
        reached(entry->d_name[0] != '.', "sees in /home", entry->d_name);
    reached(access("/dev/tty", F_OK) == 0, "sees", "a terminal");
    reached(access(KIT "/solutions", F_OK) == 0 || access(KIT "/grader", F_OK) == 0, "sees",
            "the kit");
    /* /tmp is the sandbox's own, of bounded size. */
    char block[1 << 16] = "x", path[64];
    long long kept = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "/tmp/full.%d", i);
        int file = open(path, O_WRONLY | O_CREAT, 0600);
        signal(SIGXFSZ, SIG_IGN);
        for (ssize_t n; (n = write(file, block, sizeof block)) > 0;)
            kept += n;
        close(file);
    }
    reached(kept > 100 << 20, "fills", "/tmp");
}

static void try_processes(void)
{
    char path[64], line[4096];
    for (int pid = 1; pid < 100000; pid++) {
        snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
        int file = open(path, O_RDONLY);
        ssize_t length = file < 0 ? 0 : read(file, line, sizeof line - 1);
        close(file);
        line[length > 0 ? length : 0] = '\0';
        for (ssize_t i = 0; i < length; i++)
            line[i] = line[i] ? line[i] : ' ';
        /* The processes that this program can see, and their command lines. */
        reached(pid == 1 && strstr(line, "--"), "reads how the judge was called:", line);
        reached(length > 0 && pid > 1 && !strstr(line, "prisoner") && !strstr(line, "mpirun"),
                "sees the process", line);
        snprintf(path, sizeof path, "/proc/%d/mem", pid);
        file = length > 0 && !strstr(line, "prisoner") && !strstr(line, "mpirun")
                   ? open(path, O_RDONLY)
                   : -1;
        reached(file >= 0, "opens the memory of", line);
        close(file);
    }
    snprintf(path, sizeof path, "/proc/1/environ");
    reached(open(path, O_RDONLY) >= 0, "reads", path);
    reached(getuid() == 0, "is", "root");
}

static void try_privileges(void)
{
    reached(unshare(CLONE_NEWUSER) == 0, "makes", "a user namespace");
    reached(mount("x", "/tmp", "tmpfs", 0, NULL) == 0, "mounts", "/tmp");
    reached(umount2("/home", MNT_DETACH) == 0, "unmounts", "/home");
    reached(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0, "remounts", "/");
    reached(setuid(0) == 0, "becomes", "root");
    reached(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1, "can gain", "privileges");
    reached(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0, "lifts",
            "a limit");
}

static void try_network(void)
{
    int internet = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in away = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_pton(AF_INET, "192.0.2.1", &away.sin_addr);
    reached(connect(internet, (struct sockaddr *)&away, sizeof away) == 0, "finds a way to",
            "192.0.2.1");
}

static void try_environment(void)
{
    static const char *const told[] = {"SEED",  "MAKEFLAGS", "MAKELEVEL",
                                       "BUILD", "ROOT",      "PRISONER"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        reached(getenv(told[i]) != NULL, "reads in its environment:", told[i]);
    for (int file = 3; file < 256; file++) {
        char path[64], where[256];
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        ssize_t length = readlink(path, where, sizeof where - 1);
        where[length > 0 ? length : 0] = '\0';
        reached(length > 0 && (strstr(where, "balise") || strstr(where, ".log")),
                "has open:", where);
    }
}

static void try_numbers(void)
{
    pid_t children[1000];
    int count = 0;
    while (count < 1000 && (children[count] = fork()) >= 0) {
        if (children[count] == 0) {
            pause();
            _exit(0);
        }
        count++;
    }
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    reached(count > 250, "makes", "hundreds of processes");
    reached(mmap(NULL, 100UL << 30, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED,
            "maps", "100 GB");
}

int main(int argc, char **argv)
{
    int rank = atoi(getenv("OMPI_COMM_WORLD_RANK"));
    if (rank == 0) {
        try_environment();
        try_files();
        try_processes();
        try_privileges();
        try_network();
        try_numbers();
        puts("the prisoner has tried");
        fflush(stdout);
        usleep(500000); /* lets its output get out first */
        kill(-1, SIGKILL);
    }
    for (;;)
        pause();
}
