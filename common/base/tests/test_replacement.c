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
    Replacement *file = replacement_begin(path, NULL, "", "%s", &problem);
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
    Replacement *file = replacement_begin(path, NULL, "", "%s", &problem);
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

static bool is_short(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0 && found.st_size < 20;
}

START_TEST(an_output_replaces_nothing_an_empty_file_or_an_earlier_output_of_its_kind)
{
    const OutputKind kind = {"a note", "note: ", is_short};
    char link[128];
    Problem problem = {0};
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink("file", link), 0);
    for (int through_link = 0; through_link < 2; through_link++) {
        const char *name = through_link ? link : path;
        unlink(path);
        ck_assert(output_may_replace(name, &kind, &problem));
        ck_assert(replace(""));
        ck_assert(output_may_replace(name, &kind, &problem));
        ck_assert(replace("a note: 1"));
        ck_assert(output_may_replace(name, &kind, &problem));
        ck_assert(replace("another text"));
        ck_assert_ptr_null(replacement_begin(name, &kind, "", "%s", &problem));
        ck_assert_str_eq(problem.what, "the file exists, and is not a note");
        ck_assert_str_eq(problem.where, name);
        ck_assert(replace("a note: 1, which is_one() finds too long"));
        ck_assert_ptr_null(replacement_begin(name, &kind, "", "%s", &problem));
    }
    ck_assert(output_may_replace("/dev/null", &kind, &problem));
}
END_TEST

START_TEST(two_paths_of_one_file_are_the_same_output_also_before_it_exists)
{
    char other[128];
    snprintf(other, sizeof other, "%s/./file", folder);
    for (int exists = 0; exists < 2; exists++) {
        ck_assert(is_same_output(path, other));
        ck_assert(!is_same_output(path, folder));
        ck_assert(!is_same_output("file", path));
        ck_assert(!is_same_output("/no/such/file", "/no/such/file"));
        ck_assert(replace("first"));
    }
}
END_TEST

START_TEST(each_of_two_writers_at_once_replaces_the_whole_file)
{
    Problem problem;
    has_only_named_files = _i == 1;
    Replacement *first = replacement_begin(path, NULL, "", "%s", &problem);
    Replacement *second = replacement_begin(path, NULL, "", "%s", &problem);
    replacement_put(first, "first", 5);
    replacement_put(second, "other", 5);
    ck_assert(replacement_end(first, "", "%s", &problem));
    Replacement *third = replacement_begin(path, NULL, "", "%s", &problem);
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
    tcase_add_test(c, an_output_replaces_nothing_an_empty_file_or_an_earlier_output_of_its_kind);
    tcase_add_test(c, two_paths_of_one_file_are_the_same_output_also_before_it_exists);
    suite_add_tcase(s, c);
    return s;
}
