/* The token cache: written once, opened by many, rewritten if damaged. */
#include "data/internal.h"
#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

Suite *suite(void);

static const char *const csv_text = "review,label\na b,1\n\"b, b b b b\",0\n,neg\n";
static const char *const vocabulary_text = "[UNK]\n[CLS]\n[SEP]\n[PAD]\na\nb\n";
static char *csv, *vocabulary, *cache;
static Problem problem;

static void up(void)
{
    folder_up();
    csv = write_text("films.csv", csv_text);
    vocabulary = write_text("vocab.txt", vocabulary_text);
    cache = path_of("cache/below");
}

static ReviewSet *open_set(int64_t seq)
{
    problem = (Problem){0};
    return review_set_open(csv, vocabulary, seq, cache, &problem);
}

static void assert_right(const ReviewSet *set)
{
    static const int64_t begin[] = {0, 4, 9, 11};
    static const int32_t ids[] = {1, 4, 5, 2, 1, 5, 0, 5, 2, 1, 2}, labels[] = {1, 0, 0};
    ck_assert_msg(set != NULL, "%s", problem.what);
    ck_assert_int_eq(set->rows, 3);
    ck_assert_int_eq(set->seq, 5);
    ck_assert_int_eq(set->vocabulary, 6);
    ck_assert_int_eq(set->pad, 3);
    ck_assert_mem_eq(set->begin, begin, sizeof begin);
    ck_assert_mem_eq(set->labels, labels, sizeof labels);
    ck_assert_mem_eq(set->ids, ids, sizeof ids);
}

/* The number of files in the cache folder; `name` gets the last one's path. */
static int cache_files(char *name)
{
    int count = 0;
    DIR *entries = opendir(cache);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (name)
            snprintf(name, 512, "%s/%s", cache, entry->d_name);
    }
    if (entries)
        closedir(entries);
    return count;
}

static void open_and_close(int64_t seq)
{
    ReviewSet *set = open_set(seq);
    ck_assert_msg(set != NULL, "%s", problem.what);
    review_set_close(set);
}

START_TEST(rows_have_their_ids_and_labels)
{
    ReviewSet *set = open_set(5);
    assert_right(set);
    review_set_close(set);
}
END_TEST

START_TEST(second_opening_reads_the_same_file)
{
    char path[512];
    struct stat first, second;
    open_and_close(5);
    ck_assert_int_eq(cache_files(path), 1);
    ck_assert_int_eq(stat(path, &first), 0);
    ReviewSet *set = open_set(5);
    assert_right(set);
    review_set_close(set);
    ck_assert_int_eq(stat(path, &second), 0);
    ck_assert_uint_eq(first.st_ino, second.st_ino);
}
END_TEST

START_TEST(cache_is_keyed_by_contents_and_seq_not_by_names)
{
    open_and_close(5);
    csv = write_text("copy.csv", csv_text);
    open_and_close(5);
    ck_assert_int_eq(cache_files(NULL), 1);
    open_and_close(6);
    ck_assert_int_eq(cache_files(NULL), 2);
    write_text("copy.csv", "review,label\na b,0\n\"b, b b b b\",0\n,neg\n");
    open_and_close(5);
    ck_assert_int_eq(cache_files(NULL), 3);
    write_text("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\nb\na\n");
    open_and_close(5);
    ck_assert_int_eq(cache_files(NULL), 4);
}
END_TEST

START_TEST(any_damage_is_detected_and_the_cache_rewritten)
{
    char path[512], bytes[4096];
    open_and_close(5);
    cache_files(path);
    FILE *file = fopen(path, "rb");
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_uint_gt(length, 100);
    for (size_t at = 0; at < length; at++) {
        file = fopen(path, "r+b");
        fseek(file, (long)at, SEEK_SET);
        fputc(bytes[at] ^ 0x10, file);
        fclose(file);
        ReviewSet *set = open_set(5);
        assert_right(set);
        review_set_close(set);
    }
    for (size_t keep = 0; keep < length; keep += 7) {
        ck_assert_int_eq(truncate(path, (off_t)keep), 0);
        ReviewSet *set = open_set(5);
        assert_right(set);
        review_set_close(set);
    }
    ck_assert_int_eq(cache_files(NULL), 1);
}
END_TEST

START_TEST(several_processes_may_open_the_same_set_at_once)
{
    enum { PROCESSES = 8 };
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            ReviewSet *set = open_set(5);
            _exit(set && set->rows == 3 && set->ids[5] == 5 ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        ck_assert_int_gt(wait(&status), 0);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ck_assert_int_eq(cache_files(NULL), 1);
}
END_TEST

START_TEST(no_space_is_a_problem_and_leaves_nothing_behind)
{
    struct rlimit limit, small;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 100;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ReviewSet *set = open_set(5);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_ptr_null(set);
    ASSERT_CONTAINS(problem.what, "cannot be written: File too large");
    ASSERT_CONTAINS(problem.where, cache);
    ASSERT_CONTAINS(problem.hint, "space");
    ck_assert_int_eq(cache_files(NULL), 0);
}
END_TEST

START_TEST(folder_that_cannot_be_created_is_a_problem)
{
    cache = path_of("films.csv");
    ck_assert_ptr_null(open_set(5));
    ck_assert_str_eq(problem.where, cache);
    cache = path_of("films.csv/below");
    ck_assert_ptr_null(open_set(5));
    ASSERT_CONTAINS(problem.what, "folder");
    cache[0] = '\0';
    ck_assert_ptr_null(open_set(5));
    ASSERT_CONTAINS(problem.what, "folder");
}
END_TEST

START_TEST(seq_out_of_range_is_a_problem)
{
    static const int64_t bad[] = {1, 0, -5, SEQ_MAX + 1, INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_ptr_null(open_set(bad[i]));
        ASSERT_CONTAINS(problem.what, "SEQ");
    }
    open_and_close(2);
}
END_TEST

START_TEST(missing_and_bad_files_are_problems)
{
    char *good = csv;
    csv = path_of("none.csv");
    ck_assert_ptr_null(open_set(5));
    ASSERT_CONTAINS(problem.what, "reviews cannot be opened: No such file");
    ck_assert_str_eq(problem.where, csv);
    ASSERT_CONTAINS(problem.hint, "make data");
    csv = write_text("bad.csv", "review,label\na\n");
    ck_assert_ptr_null(open_set(5));
    ASSERT_CONTAINS(problem.where, "bad.csv: row 1 (line 2)");
    csv = good;
    vocabulary = path_of("none.txt");
    ck_assert_ptr_null(open_set(5));
    ASSERT_CONTAINS(problem.what, "vocabulary cannot be opened");
    vocabulary = write_text("bad.txt", "[CLS]\n[SEP]\n[PAD]\n");
    ck_assert_ptr_null(open_set(5));
    ASSERT_CONTAINS(problem.what, "no [UNK]");
    ck_assert_int_eq(cache_files(NULL), 0);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("cache");
    TCase *t = tcase_create("cache");
    tcase_add_checked_fixture(t, up, folder_down);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, rows_have_their_ids_and_labels);
    tcase_add_test(t, second_opening_reads_the_same_file);
    tcase_add_test(t, cache_is_keyed_by_contents_and_seq_not_by_names);
    tcase_add_test(t, any_damage_is_detected_and_the_cache_rewritten);
    tcase_add_test(t, several_processes_may_open_the_same_set_at_once);
    tcase_add_test(t, no_space_is_a_problem_and_leaves_nothing_behind);
    tcase_add_test(t, folder_that_cannot_be_created_is_a_problem);
    tcase_add_test(t, seq_out_of_range_is_a_problem);
    tcase_add_test(t, missing_and_bad_files_are_problems);
    suite_add_tcase(s, t);
    return s;
}
