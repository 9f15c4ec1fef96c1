/* A file is replaced as a whole, and nothing else is left in its folder, even by a process that is
 * killed while it writes. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/replacement.h"

Suite *suite(void);

static char folder[] = "/tmp/balise-replacement-XXXXXX", path[64];
static bool killed_by_fsync, has_only_named_files;

/* Replaces the C library's fsync(), to kill the process while it writes a file. fsync() takes the
 * most time, so a signal most likely arrives during it. */
int fsync(int fd)
{
    if (killed_by_fsync)
        raise(SIGKILL);
    return (int)syscall(SYS_fsync, fd);
}

/* Replaces the C library's open(), to act like a file system that has no unnamed files. */
int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    if (has_only_named_files && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

static void before(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    killed_by_fsync = has_only_named_files = false;
}

static int files(bool remove)
{
    int count = 0;
    DIR *all = opendir(folder);
    for (struct dirent *entry; (entry = readdir(all));)
        if (entry->d_name[0] != '.') {
            count++;
            if (remove)
                unlinkat(dirfd(all), entry->d_name, 0);
        }
    closedir(all);
    return count;
}

static void after(void)
{
    files(true);
    rmdir(folder);
    strcpy(folder + sizeof folder - sizeof "XXXXXX", "XXXXXX");
}

static bool replace(const char *text)
{
    Problem problem;
    Replacement *file = replacement_begin(path, "", "%s", &problem);
    ck_assert_ptr_nonnull(file);
    replacement_put(file, text, strlen(text));
    return replacement_end(file, "", "%s", &problem);
}

static void is(const char *text)
{
    char all[64] = "";
    struct stat status;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(all, 1, sizeof all - 1, file), strlen(text));
    fclose(file);
    ck_assert_str_eq(all, text);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0644);
    ck_assert_int_eq(files(false), 1);
}

START_TEST(a_file_is_created_and_replaced_and_others_may_read_it)
{
    has_only_named_files = _i == 1;
    ck_assert(replace("first"));
    is("first");
    ck_assert(replace("second"));
    is("second");
}
END_TEST

START_TEST(a_file_that_is_dropped_leaves_nothing)
{
    Problem problem;
    has_only_named_files = _i == 1;
    Replacement *file = replacement_begin(path, "", "%s", &problem);
    ck_assert_ptr_nonnull(file);
    replacement_drop(file);
    ck_assert_int_eq(files(false), 0);
}
END_TEST

START_TEST(a_process_killed_while_it_writes_leaves_the_old_file_alone)
{
    int status;
    ck_assert(replace("first"));
    pid_t writer = fork();
    if (writer == 0) {
        killed_by_fsync = true;
        replace("second");
        _exit(0);
    }
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    is("first");
}
END_TEST

START_TEST(where_files_need_names_the_next_write_replaces_what_a_killed_process_left)
{
    int status;
    has_only_named_files = true;
    ck_assert(replace("first"));
    for (int i = 0; i < 3; i++) {
        pid_t writer = fork();
        if (writer == 0) {
            killed_by_fsync = true;
            replace("a longer second");
            _exit(0);
        }
        ck_assert_int_eq(waitpid(writer, &status, 0), writer);
        ck_assert_int_eq(files(false), 2);
    }
    ck_assert(replace("third"));
    is("third");
}
END_TEST

START_TEST(each_of_two_writers_at_once_replaces_the_whole_file)
{
    Problem problem;
    has_only_named_files = _i == 1;
    Replacement *first = replacement_begin(path, "", "%s", &problem);
    Replacement *second = replacement_begin(path, "", "%s", &problem);
    replacement_put(first, "first", 5);
    replacement_put(second, "other", 5);
    ck_assert(replacement_end(first, "", "%s", &problem));
    Replacement *third = replacement_begin(path, "", "%s", &problem);
    replacement_drop(third);
    ck_assert(replacement_end(second, "", "%s", &problem));
    is("other");
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("replacement");
    TCase *c = tcase_create("replacement");
    tcase_add_checked_fixture(c, before, after);
    tcase_add_loop_test(c, a_file_is_created_and_replaced_and_others_may_read_it, 0, 2);
    tcase_add_loop_test(c, a_file_that_is_dropped_leaves_nothing, 0, 2);
    tcase_add_test(c, a_process_killed_while_it_writes_leaves_the_old_file_alone);
    tcase_add_test(c, where_files_need_names_the_next_write_replaces_what_a_killed_process_left);
    tcase_add_loop_test(c, each_of_two_writers_at_once_replaces_the_whole_file, 0, 2);
    suite_add_tcase(s, c);
    return s;
}
