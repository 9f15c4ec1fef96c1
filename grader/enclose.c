/* enclose [--read PATH...] [--write FILE...] -- COMMAND...: runs a command that can read only the
 * system's programs, libraries and headers and the given paths, and write only the given, existing
 * files. It cannot open TCP connections (from Linux 6.7 on) or signal other processes (from 6.12
 * on). Landlock (Linux 5.13) enforces these rules. It also restricts root, and needs no namespaces.
 * Without Landlock, the command runs unrestricted. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>

/* The versions of Landlock's interface that added these abilities. The header may be older than the
 * kernel and lack the newer names. */
enum { FIRST_VERSION = 1, TRUNCATES = 3, CONNECTS = 4, SCOPES = 6 };
static const uint64_t reading = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                LANDLOCK_ACCESS_FS_READ_DIR,
                      of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE,
                      writing = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE,
                      all_of_first = (1 << 13) - 1, truncating = 1 << 14;

/* The fields of struct landlock_ruleset_attr in versions 1, 4 and 6. */
typedef struct Rules {
    uint64_t files, network, scope;
} Rules;

static void allow(int rules, const char *path, uint64_t access)
{
    struct stat status;
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent_fd < 0 || fstat(rule.parent_fd, &status) != 0)
        return;
    rule.allowed_access = S_ISDIR(status.st_mode) ? access : access & ~LANDLOCK_ACCESS_FS_READ_DIR;
    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
}

static void allow_system(int rules)
{
    static const char *const folders[] = {"/usr",
                                          "/bin",
                                          "/sbin",
                                          "/lib",
                                          "/lib32",
                                          "/lib64",
                                          "/nix/store",
                                          "/gnu/store",
                                          "/etc/ld.so.cache",
                                          "/etc/ld.so.preload",
                                          "/etc/localtime"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        allow(rules, folders[i], reading);
    allow(rules, "/dev/null", writing);
    allow(rules, "/dev/urandom", of_files);
}

static int new_rules(long version)
{
    Rules rules = {.files = all_of_first | (version >= TRUNCATES ? truncating : 0)};
    size_t size = sizeof rules.files;
    if (version >= CONNECTS) {
        rules.network = 3; /* bind, connect */
        size += sizeof rules.network;
    }
    if (version >= SCOPES) {
        rules.scope = 3; /* abstract sockets, signals */
        size += sizeof rules.scope;
    }
    return (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
}

/* Restricts this process to the system and the paths of the options, which end at "--". */
static void enclose(char **argv)
{
    const long version =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    const int rules = version >= FIRST_VERSION ? new_rules(version) : -1;
    uint64_t access = reading;
    if (rules < 0)
        return;
    for (char **at = argv + 1; *at && strcmp(*at, "--") != 0; at++)
        if (!strcmp(*at, "--read"))
            access = reading;
        else if (!strcmp(*at, "--write"))
            access = writing | (version >= TRUNCATES ? truncating : 0);
        else
            allow(rules, *at, access);
    allow_system(rules);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_landlock_restrict_self, rules, 0) != 0)
        perror("enclose");
    close(rules);
}
#else
static void enclose(char **argv)
{
}
#endif

int main(int argc, char **argv)
{
    char **command = argv;
    while (*command && strcmp(*command, "--") != 0)
        command++;
    if (!*command || !*++command)
        return 127;
    enclose(argv);
    execvp(*command, command);
    perror(*command);
    return 127;
}
