/* The token cache is written once, opened by many processes, and rewritten if damaged. */
#include "balise.h"
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

static TokenSet *open_set(int64_t seq)
{
    problem = (Problem){0};
    return token_set_open_reviews(csv, vocabulary, seq, cache, &problem);
}

static void assert_right(const TokenSet *set)
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
    TokenSet *set = open_set(seq);
    ck_assert_msg(set != NULL, "%s", problem.what);
    token_set_close(set);
}

START_TEST(rows_have_their_ids_and_labels)
{
    TokenSet *set = open_set(5);
    assert_right(set);
    token_set_close(set);
}
END_TEST

START_TEST(second_opening_reads_the_same_file)
{
    char path[512];
    struct stat first, second;
    open_and_close(5);
    ck_assert_int_eq(cache_files(path), 1);
    ck_assert_int_eq(stat(path, &first), 0);
    TokenSet *set = open_set(5);
    assert_right(set);
    token_set_close(set);
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
        TokenSet *set = open_set(5);
        assert_right(set);
        token_set_close(set);
    }
    for (size_t keep = 0; keep < length; keep += 7) {
        ck_assert_int_eq(truncate(path, (off_t)keep), 0);
        TokenSet *set = open_set(5);
        assert_right(set);
        token_set_close(set);
    }
    ck_assert_int_eq(cache_files(NULL), 1);
}
END_TEST

START_TEST(several_processes_may_open_the_same_set_at_once)
{
    enum { PROCESSES = 8 };
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            TokenSet *set = open_set(5);
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
    TokenSet *set = open_set(5);
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
    ASSERT_CONTAINS(problem.what, "tokenizer cannot be opened");
    vocabulary = write_text("bad.txt", "[CLS]\n[SEP]\n[PAD]\n");
    ck_assert_ptr_null(open_set(5));
    ASSERT_CONTAINS(problem.what, "no [UNK]");
    ck_assert_int_eq(cache_files(NULL), 0);
}
END_TEST

/* ---- a text ---- */

static const char *tokenizer = "data/stories/llama"; /* <s> is 1, </s> 2, "a" 259, "help" 320 */

static TokenSet *open_text(const char *text, int64_t seq)
{
    problem = (Problem){0};
    return token_set_open_text(write_text("text.txt", text), tokenizer, seq, cache, &problem);
}

static void assert_stream(const char *text, const int32_t *expected, int64_t count)
{
    TokenSet *set = open_text(text, 2);
    ck_assert_msg(set != NULL, "%s", problem.what);
    ck_assert_int_eq(set->tokens, count);
    ck_assert_mem_eq(set->ids, expected, (size_t)count * sizeof *expected);
    ck_assert_int_eq(set->vocabulary, 708);
    token_set_close(set);
}

START_TEST(documents_end_at_markers_or_dashes_or_lines_between_begin_and_end_tokens)
{
    static const int32_t two[] = {1, 259, 2, 1, 259, 320, 2}; /* "a", "a help" */
    static const int32_t three[] = {1, 259, 2, 1, 259, 2, 1, 320, 2};
    tokenizer = "data/stories/llama";
    assert_stream("a<|endoftext|>a help", two, 7);
    assert_stream("\xEF\xBB\xBF a\n<|endoftext|>\r\n\na help \n<|endoftext|>\n", two, 7);
    assert_stream("a\n-\na help\n-\n", two, 7);
    assert_stream("-\r\na\r\n-\r\n-\r\na help", two, 7);
    assert_stream("a\na help\n", two, 7);
    assert_stream("a\r\n\r\na\n  help", three, 9);
    static const int32_t gpt2[] = {64, 656, 64, 656}; /* <|endoftext|> only ends a document */
    static const int32_t wordpiece[] = {2, 0, 3, 2, 0, 3};
    tokenizer = "data/stories/gpt2";
    TokenSet *set = open_text("a\na", 2);
    ck_assert_mem_eq(set->ids, gpt2, sizeof gpt2);
    token_set_close(set);
    tokenizer = write_text("vocab.txt", "a\n[UNK]\n[CLS]\n[SEP]\n[PAD]\n");
    set = open_text("a\na", 2);
    ck_assert_mem_eq(set->ids, wordpiece, sizeof wordpiece);
    token_set_close(set);
}
END_TEST

START_TEST(windows_do_not_overlap_and_targets_are_the_next_tokens)
{
    enum { SEQ = 3 };
    static const int64_t rows[] = {2, 0, 3, 1};
    tokenizer = "data/stories/llama";
    TokenSet *set = open_text("a help a\nhelp a a a\nhelp", SEQ); /* 14 tokens */
    ck_assert_int_eq(set->tokens, 14);
    ck_assert_int_eq(set->rows, 4);
    Batch *batch = batch_new(4, SEQ);
    batch_fill(set, rows, 4, batch);
    for (int64_t b = 0; b < 4; b++) {
        ck_assert_int_eq(batch->samples[b], rows[b]);
        for (int64_t s = 0; s < SEQ; s++) {
            const int64_t at = batch->samples[b] * SEQ + s;
            ck_assert_int_eq(batch->ids[b * SEQ + s], set->ids[at]);
            ck_assert_int_eq(batch->targets[b * SEQ + s], set->ids[at + 1]);
            ck_assert_int_eq(batch->mask[b * SEQ + s], 1);
        }
    }
    batch_free(batch);
    token_set_close(set);
    set = open_text("a help a\nhelp a a a\nhelp", 13); /* the last token is only a target */
    ck_assert_int_eq(set->rows, 1);
    token_set_close(set);
}
END_TEST

static TokenSet *open_documents(const char *text, int64_t seq)
{
    problem = (Problem){0};
    return token_set_open_documents(write_text("text.txt", text), tokenizer, seq, cache, &problem);
}

START_TEST(each_document_is_a_row_whose_padding_and_last_token_have_no_target)
{
    enum { SEQ = 4 };
    static const int64_t rows[] = {2, 0, 1};
    static const int32_t ids[3][SEQ] = {{1, 320, 2, 2}, {1, 259, 320, 259}, {1, 320, 259, 259}},
                         targets[3][SEQ] = {{320, 2, NO_ID, NO_ID},
                                            {259, 320, 259, NO_ID},
                                            {320, 259, 259, NO_ID}},
                         mask[3][SEQ] = {{1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}};
    tokenizer = "data/stories/llama"; /* which pads with </s> */
    TokenSet *set = open_documents("a help a\nhelp a a a\n\nhelp", SEQ);
    ck_assert_int_eq(set->rows, 3);
    Batch *batch = batch_new(3, SEQ);
    for (int i = 0; i < 3 * SEQ; i++)
        batch->targets[i] = 7;
    batch_fill(set, rows, 3, batch);
    ck_assert_mem_eq(batch->ids, ids, sizeof ids);
    ck_assert_mem_eq(batch->targets, targets, sizeof targets);
    ck_assert_mem_eq(batch->mask, mask, sizeof mask);
    ck_assert_int_eq(batch_targets(batch), 8);
    batch_free(batch);
    token_set_close(set);
}
END_TEST

START_TEST(a_document_for_bert_ends_with_the_end_token_even_if_it_is_cut)
{
    enum { SEQ = 4 };
    static const int32_t ids[2][SEQ] = {{2, 0, 3, 4}, {2, 0, 1, 3}}; /* [PAD] is 4 */
    tokenizer = write_text("vocab.txt", "a\n[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\n");
    TokenSet *set = open_documents("a\na b a a", SEQ);
    Batch *batch = batch_new(2, SEQ);
    batch_fill(set, (int64_t[]){0, 1}, 2, batch);
    ck_assert_mem_eq(batch->ids, ids, sizeof ids);
    batch_free(batch);
    token_set_close(set);
}
END_TEST

START_TEST(one_cache_file_serves_every_seq_of_a_text)
{
    static const char *const text = "a help a\nhelp a a a\nhelp";
    tokenizer = "data/stories/llama";
    for (int64_t seq = 2; seq < 9; seq++)
        token_set_close(open_text(text, seq));
    TokenSet *documents = open_documents(text, 3), *windows = open_text(text, 3);
    ck_assert_int_eq(documents->rows, 3);
    ck_assert_int_eq(windows->rows, 4);
    token_set_close(documents);
    token_set_close(windows);
    ck_assert_int_eq(cache_files(NULL), 1);
    token_set_close(open_text("a help a a a a a a", 2));
    ck_assert_int_eq(cache_files(NULL), 2);
    tokenizer = "data/stories/gpt2";
    token_set_close(open_text(text, 2));
    ck_assert_int_eq(cache_files(NULL), 3);
}
END_TEST

/* The bytes of this process's data and stack, which no file backs. */
static rlim_t bytes_of_data(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_int_eq(fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

START_TEST(a_cache_is_found_without_the_whole_text_in_memory)
{
    const size_t size = 8 << 20;
    char *text = malloc(size + 1);
    memset(text, ' ', size);
    memcpy(text, csv_text, strlen(csv_text));
    memcpy(text + size - 2, ",1", 3);
    csv = write_text("films.csv", text);
    free(text);
    TokenSet *set = open_set(5);
    ck_assert_msg(set != NULL, "%s", problem.what);
    token_set_close(set);
    struct rlimit limit, lower;
    getrlimit(RLIMIT_DATA, &limit);
    lower = (struct rlimit){bytes_of_data() + size / 2, limit.rlim_max};
    setrlimit(RLIMIT_DATA, &lower);
    set = open_set(5);
    setrlimit(RLIMIT_DATA, &limit);
    ck_assert_msg(set != NULL, "%s", problem.what);
    token_set_close(set);
}
END_TEST

static void assert_no_text(const char *path, const char *what, const char *where)
{
    problem = (Problem){0};
    ck_assert_ptr_null(token_set_open_text(path, tokenizer, 8, cache, &problem));
    ASSERT_CONTAINS(problem.what, what);
    ASSERT_CONTAINS(problem.where, where);
    ck_assert_uint_gt(strlen(problem.hint), 10);
}

START_TEST(texts_that_are_empty_or_short_or_no_text_are_problems)
{
    tokenizer = "data/stories/llama";
    assert_no_text(write_text("t.txt", ""), "the text is empty", "t.txt");
    assert_no_text(write_text("t.txt", "\n \r\n\n"), "the text is empty", "t.txt");
    assert_no_text(write_text("t.txt", "<|endoftext|>\n<|endoftext|>"), "is empty", "t.txt");
    assert_no_text(write_text("t.txt", "a help"), "has 4 tokens; a window needs SEQ+1 = 9",
                   "t.txt");
    assert_no_text(write_text("t.txt", "a\nb\nc\xE9t\xE9\n"), "byte 0xE9 at byte 2",
                   "t.txt: line 3");
    assert_no_text(csv, "the file is not plain text: it has reviews with labels", "films.csv");
    assert_no_text(write_text("FILMS.CSV", "text,stars\na,5\n"), "its name ends with .csv",
                   "FILMS.CSV");
    assert_no_text(path_of("none.txt"), "the text cannot be opened: No such file", "none.txt");
    assert_no_text("/dev/zero", "it is not a file", "/dev/zero");
    ck_assert_int_eq(mkfifo(path_of("fifo"), 0666), 0);
    assert_no_text(path_of("fifo"), "it is not a file", "fifo");
    assert_no_text(folder, "it is a folder", folder);
    tokenizer = path_of("none");
    assert_no_text(write_text("t.txt", "a"), "the tokenizer cannot be opened", "none");
    ck_assert_ptr_null(token_set_open_text("t", "t", 0, cache, &problem));
    ASSERT_CONTAINS(problem.what, "SEQ is 0");
}
END_TEST

/* A megabyte of one letter and line breaks, after `begin`. The caller frees it. */
static char *long_word(const char *begin, const char *end)
{
    enum { LENGTH = 1 << 20 };
    char *text = malloc(LENGTH + 64), *word = stpcpy(text, begin);
    memset(word, 'a', LENGTH);
    strcpy(word + LENGTH, end);
    return text;
}

START_TEST(word_that_sentencepiece_cannot_cut_is_a_problem)
{
    tokenizer = "data/stories/llama";
    char *text = long_word("-\nb\n\n b ", "");
    token_set_close(open_text(text, 2));
    text[7] = 'a';
    assert_no_text(write_text("t.txt", text), "SentencePiece must encode 1048578 bytes",
                   "t.txt: line 4");
    free(text);
    text = long_word("review,label\nx,0\n\"b\nba", "\",1\n");
    csv = write_text("films.csv", text);
    vocabulary = "data/stories/llama";
    ck_assert_ptr_null(open_set(8));
    ASSERT_CONTAINS(problem.what, "SentencePiece must encode 1048580 bytes");
    ASSERT_CONTAINS(problem.where, "films.csv: line 3");
    free(text);
}
END_TEST

START_TEST(other_tokenizers_encode_a_word_of_any_length)
{
    char *text = long_word("abcdefgh", "i");
    tokenizer = "data/stories/gpt2";
    token_set_close(open_text(text, 2));
    tokenizer = vocabulary;
    token_set_close(open_text(text, 2));
    free(text);
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
    TCase *text = tcase_create("text");
    tcase_add_checked_fixture(text, up, folder_down);
    tcase_add_test(text, documents_end_at_markers_or_dashes_or_lines_between_begin_and_end_tokens);
    tcase_add_test(text, windows_do_not_overlap_and_targets_are_the_next_tokens);
    tcase_add_test(text, each_document_is_a_row_whose_padding_and_last_token_have_no_target);
    tcase_add_test(text, a_document_for_bert_ends_with_the_end_token_even_if_it_is_cut);
    tcase_add_test(text, one_cache_file_serves_every_seq_of_a_text);
    tcase_add_test(text, a_cache_is_found_without_the_whole_text_in_memory);
    tcase_add_test(text, word_that_sentencepiece_cannot_cut_is_a_problem);
    tcase_add_test(text, other_tokenizers_encode_a_word_of_any_length);
    tcase_add_test(text, texts_that_are_empty_or_short_or_no_text_are_problems);
    suite_add_tcase(s, text);
    return s;
}
