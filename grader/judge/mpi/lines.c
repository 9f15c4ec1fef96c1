/* Source lines of addresses in the runner. addr2line reads what the student's compiler wrote, so it
 * has limits, and enclose lets it open no other file. */
#include "grader/judge/mpi/recorded.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clean.h"

enum {
    KEPT = 256, /* a lab makes calls on fewer lines; more are nonsense in a record */
    MOST_SECONDS = 3,
    MOST_MEMORY = 512 << 20
};

/* The lines found so far. The judge reads the calls of one runner at a time, in which the same
 * addresses occur again and again. One addr2line looks up all of them. */
static struct {
    char program[512]; /* "" before the first */
    const void *address[KEPT];
    char line[KEPT][64];
    int count;
    pid_t reader; /* 0: not started; -1: it has failed */
    int to_reader;
} lines;

static void limit(int what, rlim_t most)
{
    setrlimit(what, &(struct rlimit){most, most});
}

/* The folder above the bin/ in which the PATH has addr2line; it may be outside of the system. */
static void find_installation(char folder[512])
{
    char path[4096], program[600], *rest = path;
    const char *all = getenv("PATH");
    snprintf(path, sizeof path, "%s", all ? all : "");
    snprintf(folder, 512, "/usr");
    for (char *one; (one = strsep(&rest, ":"));) {
        snprintf(program, sizeof program, "%.500s/addr2line", one);
        if (access(program, X_OK) != 0)
            continue;
        snprintf(folder, 512, "%.500s/..", one);
        return;
    }
}

static _Noreturn void be_reader(int socket)
{
    char enclose[600], installation[512], libraries[4096], *rest = libraries;
    const char *all = getenv("LD_LIBRARY_PATH");
    char *argv[32] = {enclose, "--read", lines.program, installation};
    int count = 4;
    ssize_t length = readlink("/proc/self/exe", enclose, 512);
    enclose[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(enclose, '/');
    snprintf(slash ? slash : enclose, 80, "/enclose");
    find_installation(installation);
    snprintf(libraries, sizeof libraries, "%s", all ? all : "");
    for (char *one; count < 24 && (one = strsep(&rest, ":"));)
        argv[count++] = one;
    char **command = argv + count + 1;
    memcpy(argv + count, (char *[]){"--", "addr2line", "-e", lines.program}, 4 * sizeof *argv);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* NOLINT(cppcoreguidelines-pro-type-vararg) */
    dup2(socket, STDIN_FILENO);
    dup2(socket, STDOUT_FILENO);
    if (!freopen("/dev/null", "w", stderr))
        _exit(127);
    limit(RLIMIT_CPU, MOST_SECONDS);
    limit(RLIMIT_AS, MOST_MEMORY);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CORE, 0);
    execv(enclose, argv);
    execvp(*command, command);
    _exit(127);
}

static void start_reader(void)
{
    int ends[2];
    lines.reader = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    fflush(NULL);
    lines.reader = fork();
    if (lines.reader == 0)
        be_reader(ends[1]);
    close(ends[1]);
    lines.to_reader = ends[0];
    if (lines.reader < 0)
        close(ends[0]);
}

/* The reader ends when it reads the end of its input, or at its limit. */
static void end_reader(pid_t then)
{
    if (lines.reader > 0) {
        close(lines.to_reader);
        waitpid(lines.reader, NULL, WNOHANG);
    }
    lines.reader = then;
}

void lines_rest(void)
{
    if (lines.reader > 0)
        end_reader(0);
}

void lines_of(const char *runner)
{
    end_reader(0);
    snprintf(lines.program, sizeof lines.program, "%s", runner);
    lines.count = 0;
}

/* Reads the first line of the reader's answer. @return false if none comes */
static bool hear(char *text, size_t size)
{
    size_t length = 0;
    struct pollfd answer = {.fd = lines.to_reader, .events = POLLIN};
    while (length < size - 1 && poll(&answer, 1, 1000 * MOST_SECONDS) == 1) {
        const ssize_t more = recv(lines.to_reader, text + length, size - 1 - length, 0);
        if (more <= 0)
            return false;
        length += (size_t)more;
        text[length] = '\0';
        if (memchr(text, '\n', length)) {
            text[strcspn(text, "\n")] = '\0';
            return true;
        }
    }
    return false;
}

/* Discards the rest of an answer: a name in a #line may contain newlines. */
static void discard(void)
{
    char rest[4096];
    for (int i = 0; i < 1000 && recv(lines.to_reader, rest, sizeof rest, MSG_DONTWAIT) > 0; i++)
        ;
}

static void ask(const void *address, char line[64])
{
    static char text[65536];
    char question[32];
    line[0] = '\0';
    if (lines.reader == 0)
        start_reader();
    if (lines.reader < 0)
        return;
    discard();
    const int length =
        snprintf(question, sizeof question, "0x%jx\n", (uintmax_t)((uintptr_t)address - 1));
    if (send(lines.to_reader, question, (size_t)length, MSG_NOSIGNAL) != length ||
        !hear(text, sizeof text)) {
        end_reader(-1);
        return;
    }
    const char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text;
    if (text[0] == '?')
        return;
    snprintf(line, 64, "%.*s", (int)strcspn(name, " "), name); /* folders may contain blanks */
    clean_line(line);
}

const char *line_of(const void *address)
{
    if (!address || !lines.program[0])
        return "";
    for (int i = 0; i < lines.count; i++)
        if (lines.address[i] == address)
            return lines.line[i];
    if (lines.count == KEPT)
        return "";
    const int i = lines.count++;
    lines.address[i] = address;
    ask(address, lines.line[i]);
    return lines.line[i];
}
