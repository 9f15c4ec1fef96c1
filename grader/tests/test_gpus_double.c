/* The device files of GPUs, and who can reach them in a sandbox. Files in a folder of this test
 * take the place of those in /dev. */
#include "grader/judge/launch/sandbox.h"

#include <check.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

Suite *suite(void);

enum { VIDEO = 44, RENDER = 105, SOMEBODY = 61500 };
static char folder[64];

static void make_file(const char *name, gid_t group, mode_t mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert(file >= 0 && fchmod(file, mode) == 0);
    close(file);
    if (geteuid() == 0)
        ck_assert(chown(path, 0, group) == 0);
}

static void folder_up(void)
{
    char caps[128];
    snprintf(folder, sizeof folder, "/tmp/balise.gpus.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert(chmod(folder, 0755) == 0);
    snprintf(caps, sizeof caps, "%s/nvidia-caps", folder);
    ck_assert(mkdir(caps, 0755) == 0);
    make_file("nvidia0", VIDEO, 0660);
    make_file("nvidia1", VIDEO, 0660);
    make_file("nvidiactl", VIDEO, 0666);
    make_file("nvidia-caps/nvidia-cap1", RENDER, 0660);
    make_file("dxg", 7, 0666);
    make_file("sda", 6, 0660);
    make_file("launch", 0, 0666);
}

static void folder_down(void)
{
    static const char *const names[] = {
        "nvidia0", "nvidia1", "nvidiactl", "nvidia-caps/nvidia-cap1", "nvidia-caps", "dxg",
        "sda",     "launch",  ""};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
}

static bool has(const Gpus *gpus, const char *shown)
{
    bool found = false;
    for (int i = 0; i < gpus->count; i++)
        found = found || !strcmp(gpus->shown[i], shown);
    return found;
}

START_TEST(device_files_of_nvidia_and_wsl2_are_found_and_no_others)
{
    const Gpus gpus = gpus_of(folder);
    ck_assert_int_eq(gpus.count, 5);
    ck_assert(has(&gpus, "/dev/nvidia0") && has(&gpus, "/dev/nvidia1") &&
              has(&gpus, "/dev/nvidiactl"));
    ck_assert(has(&gpus, "/dev/nvidia-caps") && has(&gpus, "/dev/dxg"));
}
END_TEST

START_TEST(groups_of_restricted_files_are_found_once)
{
    const Gpus gpus = gpus_of(folder);
    if (geteuid() != 0) {
        puts("skip - groups of restricted files are found once: only root can make such files");
        return;
    }
    ck_assert_int_eq(gpus.groups, 2);
    ck_assert(gpus.group[0] + gpus.group[1] == VIDEO + RENDER);
}
END_TEST

static bool opens(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0)
        close(file);
    return file >= 0;
}

enum { REACHED, NO_SANDBOX, NOT_REACHED, REACHED_OTHERS };

/* Runs in the sandbox, as the ranks' user. */
static int look_around(void *context)
{
    const Place *place = context;
    const Seen seen = place_seen(place);
    char why[256] = "";
    if (!sandbox_enter(place, &seen, why, sizeof why))
        _exit(NO_SANDBOX);
    if (opens("/dev/sda"))
        _exit(REACHED_OTHERS);
    _exit(opens("/dev/nvidia0") && opens("/dev/nvidiactl") && opens("/dev/dxg") &&
                  opens("/dev/nvidia-caps/nvidia-cap1")
              ? REACHED
              : NOT_REACHED);
}

static int outcome_of(uid_t user, gid_t group)
{
    const Gpus gpus = gpus_of(folder);
    Place place = {"/bin/true", folder, user, group, true, &gpus};
    char why[256] = "";
    int status = 0;
    const pid_t pid = sandbox_fork(&place, look_around, &place, why, sizeof why);
    if (pid < 0)
        return NO_SANDBOX;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_REACHED;
}

static void must_reach(const char *sentence, int outcome)
{
    if (outcome == NO_SANDBOX)
        printf("skip - %s: the system allows no sandbox\n", sentence);
    else
        ck_assert_int_eq(outcome, REACHED);
}

START_TEST(the_unprivileged_user_of_the_ranks_reaches_them_through_their_groups)
{
    if (geteuid() != 0)
        puts(
            "skip - the unprivileged user of the ranks reaches them through their groups: this is not root");
    else
        must_reach("the unprivileged user of the ranks reaches them through their groups",
                   outcome_of(SOMEBODY, SOMEBODY));
}
END_TEST

START_TEST(an_ordinary_user_of_their_groups_reaches_them)
{
    const char *sentence = "an ordinary user of their groups reaches them";
    int status = 0;
    if (geteuid() != 0) {
        must_reach(sentence, outcome_of(geteuid(), getegid()));
        return;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        const gid_t groups[] = {VIDEO, RENDER};
        _exit(setgroups(2, groups) == 0 && setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0 &&
                      setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0
                  ? outcome_of(SOMEBODY, SOMEBODY)
                  : NO_SANDBOX);
    }
    waitpid(pid, &status, 0);
    must_reach(sentence, WIFEXITED(status) ? WEXITSTATUS(status) : NOT_REACHED);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("gpus");
    TCase *tests = tcase_create("gpus");
    tcase_add_checked_fixture(tests, folder_up, folder_down);
    tcase_add_test(tests, device_files_of_nvidia_and_wsl2_are_found_and_no_others);
    tcase_add_test(tests, groups_of_restricted_files_are_found_once);
    tcase_add_test(tests, the_unprivileged_user_of_the_ranks_reaches_them_through_their_groups);
    tcase_add_test(tests, an_ordinary_user_of_their_groups_reaches_them);
    suite_add_tcase(suite, tests);
    return suite;
}
