/* Byte-level BPE and SentencePiece with the committed tokenizers, and files that are rejected.
 * Hugging Face's tokenizers 0.23.3 and SentencePiece 0.2 gave the expected ids. */
#include "data/internal.h"
#include "temporary.h"

#include <sys/stat.h>

Suite *suite(void);

#define GPT2  "data/stories/gpt2"
#define LLAMA "data/stories/llama"
static const char *const hard = "I'll  say \u201CZo\u00E9\u201D 3 times!\n\n";
static Problem problem;

static Text text_of(const char *bytes, size_t length)
{
    return (Text){bytes, length, "text.txt", 1};
}

static Tokenizer *open_good(const char *path)
{
    problem = (Problem){0};
    Tokenizer *tokenizer = tokenizer_open(path, &problem);
    ck_assert_msg(tokenizer != NULL, "%s", problem.what);
    return tokenizer;
}

static void assert_ids(const Tokenizer *tokenizer, const char *text, const int32_t *expected,
                       size_t size)
{
    int32_t *ids;
    size_t length;
    int64_t count = tokenizer_encode_text(tokenizer, text_of(text, strlen(text)), &ids, &problem);
    ck_assert_int_eq(count, (int64_t)(size / sizeof *ids));
    if (size > 0)
        ck_assert_mem_eq(ids, expected, size);
    char *back = tokenizer_decode(tokenizer, ids, count, &length);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_str_eq(back, text);
    free(back);
    free(ids);
}

/* A whole file, whose bytes the caller frees. */
static FileBytes bytes_of(const char *path)
{
    FileBytes file;
    ck_assert(file_read(path, "the file", "", &file, &problem));
    return file;
}

static char *copy_of(const char *path, const char *name)
{
    FileBytes file = bytes_of(path);
    char *copy = write_bytes(name, file.bytes, file.length);
    free(file.bytes);
    return copy;
}

START_TEST(bpe_has_the_ids_of_hugging_face_and_gives_the_text_back)
{
    static const int32_t easy_ids[] = {400, 478, 256, 477, 11, 403, 269, 256, 620, 13};
    static const int32_t hard_ids[] = {40,  377, 220, 270, 88,  522, 337, 426, 251,
                                       220, 18,  362, 76,  339, 0,   198, 198};
    static const int32_t blank_ids[] = {83,  257, 264, 157, 254, 236, 83,
                                        257, 126, 227, 159, 222, 222, 87};
    Tokenizer *t = open_good(GPT2);
    ck_assert_int_eq(tokenizer_size(t), 657);
    assert_ids(t, "Once upon a time, there was a bird.", easy_ids, sizeof easy_ids);
    assert_ids(t, hard, hard_ids, sizeof hard_ids);
    assert_ids(t, hard, hard_ids, sizeof hard_ids); /* now its words are in the cache */
    assert_ids(t, "the the\u180Ethe\xC2\x85\u3000x", blank_ids, sizeof blank_ids);
    assert_ids(t, "", NULL, 0);
    tokenizer_free(t);
}
END_TEST

START_TEST(sentencepiece_has_the_ids_of_its_library_and_gives_the_text_back)
{
    static const int32_t easy_ids[] = {707, 334, 411, 502, 259, 501, 413, 272, 259, 268, 453, 473};
    static const int32_t hard_ids[] = {295, 377, 707, 273, 706, 707, 229, 131, 159, 341, 198, 172,
                                       229, 131, 160, 707, 660, 362, 695, 343, 652, 13,  13};
    Tokenizer *t = open_good(LLAMA);
    ck_assert_int_eq(tokenizer_size(t), 708);
    assert_ids(t, "Once upon a time, there was a bird.", easy_ids, sizeof easy_ids);
    assert_ids(t, hard, hard_ids, sizeof hard_ids);
    assert_ids(t, "", NULL, 0);
    tokenizer_free(t);
}
END_TEST

START_TEST(bpe_and_sentencepiece_read_the_name_of_a_special_token_as_text)
{
    static const int32_t end_ids[] = {64, 27, 91, 68, 262, 609, 68, 87, 83, 91, 29, 65};
    static const int32_t begin_ids[] = {259, 707, 63, 700, 65, 268, 63, 50, 700, 65};
    Tokenizer *gpt2 = open_good(GPT2), *llama = open_good(LLAMA);
    assert_ids(gpt2, "a<|endoftext|>b", end_ids, sizeof end_ids);
    assert_ids(llama, "a <s> b</s>", begin_ids, sizeof begin_ids);
    tokenizer_free(gpt2);
    tokenizer_free(llama);
}
END_TEST

START_TEST(any_text_comes_back_from_bpe_and_so_do_long_words)
{
    enum { LENGTH = 300000 };
    static const char *const parts[] = {"a",    " ",      "\n",           "\t",         "\u3000",
                                        "'s",   "7",      "\u00E9",       "\U0001F600", "the",
                                        "\x01", "\u4E2D", "<|endoftext|>"};
    Tokenizer *t = open_good(GPT2);
    char *text = malloc(LENGTH + 16);
    for (size_t part = 0; part <= sizeof parts / sizeof *parts; part++) {
        size_t length = 0;
        uint32_t drawn = 1;
        while (length < LENGTH) { /* one part repeated; in the last text, parts at random */
            drawn = drawn * 1664525u + 1013904223u;
            const size_t any = drawn >> 16;
            const char *next =
                parts[part < sizeof parts / sizeof *parts ? part
                                                          : any % (sizeof parts / sizeof *parts)];
            length += (size_t)sprintf(text + length, "%s", next);
        }
        int32_t *ids;
        size_t back_length;
        int64_t count = tokenizer_encode_text(t, text_of(text, length), &ids, &problem);
        char *back = tokenizer_decode(t, ids, count, &back_length);
        ck_assert_uint_eq(back_length, length);
        ck_assert_mem_eq(back, text, length);
        free(back);
        free(ids);
    }
    free(text);
    tokenizer_free(t);
}
END_TEST

/* The ids of a text that repeats a few characters repeat too, wherever the text is cut. */
START_TEST(long_words_are_cut_where_no_id_changes)
{
    static const char *const periods[] = {"once\n", "\xE4\xB8\xAD\xE6\x96\x87", "\xC2\xA0le"};
    enum { BYTES = 3 << 20 };
    Tokenizer *t = open_good(LLAMA);
    char *text = malloc(BYTES);
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        const size_t size = strlen(periods[i]), length = BYTES / size * size;
        int32_t *two, *three, *ids;
        for (size_t at = 0; at < length; at += size)
            memcpy(text + at, periods[i], size);
        const int64_t end = tokenizer_encode_text(t, text_of(text, 2 * size), &two, &problem);
        const int64_t next = tokenizer_encode_text(t, text_of(text, 3 * size), &three, &problem);
        const int64_t count = tokenizer_encode_text(t, text_of(text, length), &ids, &problem);
        const int64_t period = next - end, begin = end - period;
        ck_assert_msg(count > 0, "%s: %s", periods[i], problem.what);
        ck_assert_int_eq(count, begin + (int64_t)(length / size - 1) * period);
        ck_assert_mem_eq(ids, three, (size_t)next * sizeof *ids);
        ck_assert_mem_eq(ids + begin, ids + end, (size_t)(count - end) * sizeof *ids);
        free(two);
        free(three);
        free(ids);
    }
    free(text);
    tokenizer_free(t);
}
END_TEST

START_TEST(special_tokens_are_known_and_enclose_a_row)
{
    int32_t ids[5];
    Tokenizer *t = open_good(GPT2);
    ck_assert_int_eq(tokenizer_special(t, BEGIN_TOKEN), 656);
    ck_assert_int_eq(tokenizer_special(t, END_TOKEN), 656);
    ck_assert_int_eq(tokenizer_special(t, PAD_TOKEN), -1);
    ck_assert_int_eq(tokenizer_encode(t, text_of("Once upon a time, there", 23), 5, ids, &problem),
                     5);
    ck_assert_mem_eq(ids, ((int32_t[]){656, 400, 478, 256, 656}), sizeof ids);
    tokenizer_free(t);
    t = open_good(LLAMA);
    static const int32_t expected[] = {0, 1, 2, -1, -1};
    for (int special = 0; special < SPECIAL_TOKENS; special++)
        ck_assert_int_eq(tokenizer_special(t, (SpecialToken)special), expected[special]);
    ck_assert_int_eq(tokenizer_encode(t, text_of("a", 1), 5, ids, &problem), 3);
    ck_assert_mem_eq(ids, ((int32_t[]){1, 259, 2}), 3 * sizeof *ids);
    tokenizer_free(t);
    t = open_good("data/reviews");
    ck_assert_int_eq(tokenizer_special(t, PAD_TOKEN), 0);
    ck_assert_int_eq(tokenizer_special(t, MASK_TOKEN), 4);
    tokenizer_free(t);
}
END_TEST

static void assert_piece(const Tokenizer *t, int32_t before, int32_t id, const char *expected)
{
    size_t length;
    const char *piece = tokenizer_piece(t, before, id, &length);
    ck_assert_uint_eq(length, strlen(expected));
    ck_assert_mem_eq(piece, expected, length);
}

START_TEST(pieces_one_by_one_are_the_text_without_its_first_space)
{
    Tokenizer *t = open_good(LLAMA);
    assert_piece(t, -1, 259, "a");
    assert_piece(t, 1, 259, "a");
    assert_piece(t, 502, 259, " a");
    assert_piece(t, 259, 1, "");
    assert_piece(t, 259, 13, "\n");      /* <0x0A> */
    assert_piece(t, 259, 229, "\xE2");   /* <0xE2>, a part of a character */
    assert_piece(t, 259, 0, " \u2047 "); /* <unk> */
    tokenizer_free(t);
    t = open_good(GPT2);
    assert_piece(t, -1, 256, " a");
    assert_piece(t, 656, 256, " a");
    assert_piece(t, 256, 656, "<|endoftext|>");
    tokenizer_free(t);
}
END_TEST

START_TEST(wordpiece_decodes_to_words)
{
    static const char *const text = "[SEP]Film, zzx";
    int32_t ids[16];
    size_t length;
    Tokenizer *t = open_good("data/reviews/vocab.txt");
    int64_t count = tokenizer_encode(t, text_of(text, strlen(text)), 16, ids, &problem);
    char *back = tokenizer_decode(t, ids, count, &length);
    ck_assert_str_eq(back, " film , zzx");
    free(back);
    tokenizer_free(t);
}
END_TEST

START_TEST(contents_decide_the_kind_whatever_the_name)
{
    Tokenizer *t = open_good(copy_of(LLAMA "/tokenizer.model", "vocab.json"));
    ck_assert_int_eq(tokenizer_size(t), 708);
    tokenizer_free(t);
    unlink(path_of("vocab.json"));
    copy_of(GPT2 "/vocab.json", "encoder.json");
    copy_of(GPT2 "/merges.txt", "vocab.bpe");
    const char *const names[] = {"", "encoder.json", "vocab.bpe"};
    for (int i = 0; i < 3; i++) {
        t = open_good(path_of(names[i]));
        ck_assert_int_eq(tokenizer_size(t), 657);
        tokenizer_free(t);
    }
}
END_TEST

/* ---- files that are rejected ---- */

static void assert_refused(const char *path, const char *what, const char *where)
{
    problem = (Problem){0};
    ck_assert_ptr_null(tokenizer_open(path, &problem));
    ASSERT_CONTAINS(problem.what, what);
    ASSERT_CONTAINS(problem.where, where);
    ck_assert_uint_gt(strlen(problem.hint), 10);
}

static void refuse_vocabulary(const char *vocabulary, const char *what)
{
    write_text("vocab.json", vocabulary);
    assert_refused(folder, what, "vocab.json");
}

START_TEST(vocabularies_with_missing_or_repeated_ids_are_refused)
{
    copy_of(GPT2 "/merges.txt", "merges.txt");
    refuse_vocabulary("{\"a\": 0, \"b\": 0}", "'a' and 'b' have the same id 0");
    refuse_vocabulary("{\"a\": 0, \"b\": 2}", "'b' is not a number from 0 to 1, for 2 tokens");
    refuse_vocabulary("{\"a\": 0, \"b\": -1}", "'b' is not a number from 0 to 1");
    refuse_vocabulary("{\"a\": 0, \"b\": \"1\"}", "'b' is not a number");
    refuse_vocabulary("{\"a\": 0, \"b\": 1e0}", "'b' is not a number");
    refuse_vocabulary("{\"a\": 0, \"b\": 99999999999999999999}", "not JSON");
    refuse_vocabulary("{\"a\": 0, \"a\": 1}", "not JSON: line 1, column");
    refuse_vocabulary("{\"a\": 0, \"b", "not JSON: line 1, column");
    refuse_vocabulary("{\"a\": 0} x", "not JSON");
    refuse_vocabulary("{\"a\xFF\": 0}", "not JSON");
    refuse_vocabulary("{\"a\": 0, \"\u4E2D\": 1}",
                      "'\u4E2D' has a character that stands for no byte");
    refuse_vocabulary("{\"a b\": 0}", "'a b' has a character that stands for no byte");
    refuse_vocabulary("{\"a\": 0}", "no token for the byte 0x00");
    refuse_vocabulary("{}", "no token for the byte 0x00");
    write_text("vocab.json", "[\"a\", \"b\"]");
    assert_refused(path_of("merges.txt"), "JSON, but not an object", "vocab.json");
}
END_TEST

static void refuse_merges(const char *merges, const char *what, const char *where)
{
    write_text("merges.txt", merges);
    assert_refused(folder, what, where);
}

START_TEST(merges_that_do_not_fit_the_vocabulary_are_refused)
{
    copy_of(GPT2 "/vocab.json", "vocab.json");
    refuse_merges("#version: 0.2\nh e\nq q\n", "lacks one of the two symbols",
                  "merges.txt: line 3");
    refuse_merges("h e\n\u4E2D e\n", "lacks one of the two symbols", "merges.txt: line 2");
    refuse_merges("h e\nh e\n", "an earlier line has the same merge", "merges.txt: line 2");
    refuse_merges("h e\nhe\n", "not two symbols", "merges.txt: line 2");
    refuse_merges("h e\n\nh e\n", "not two symbols", "merges.txt: line 2");
    refuse_merges("h e\nh e r\n", "not two symbols", "merges.txt: line 2");
    refuse_merges("h e\n h\n", "not two symbols", "merges.txt: line 2");
    refuse_merges("", "the merges make 0 of the vocabulary's 400 tokens that consist of two",
                  "merges.txt");
    refuse_merges("#version: 0.2\r\nh e\r\n", "the merges make 1 of the", "merges.txt");
    FileBytes all = bytes_of(GPT2 "/merges.txt");
    const char *half = memchr(all.bytes + all.length / 2, '\n', all.length / 2);
    write_bytes("merges.txt", all.bytes, (size_t)(half - all.bytes));
    assert_refused(folder, "the merges make ", "merges.txt");
    write_bytes("merges.txt", all.bytes, all.length - 8); /* without the last line */
    assert_refused(folder, "the merges make 399 of the vocabulary's 400", "merges.txt");
    free(all.bytes);
}
END_TEST

START_TEST(bytes_and_special_tokens_need_no_merges)
{
    FileBytes all = bytes_of(GPT2 "/vocab.json");
    char *first = memmem(all.bytes, all.length, ", \"\u0120a\": 256", 12);
    ck_assert_ptr_nonnull(first);
    ck_assert_uint_gt(all.length, (size_t)(first - all.bytes) + 40);
    strcpy(first, ", \"<|endoftext|>\": 256, \"[PAD]\": 257, \"made!\": 258}");
    write_text("vocab.json", all.bytes);
    write_text("merges.txt", "");
    Tokenizer *t = open_good(folder);
    assert_ids(t, "ab", (int32_t[]){64, 65}, 2 * sizeof(int32_t));
    tokenizer_free(t);
    free(all.bytes);
}
END_TEST

static void refuse_unknown(const char *bytes, size_t length, const char *what)
{
    assert_refused(write_bytes("vocab.json", bytes, length), what, "vocab.json");
    ASSERT_CONTAINS(problem.hint, "vocab.txt");
    ASSERT_CONTAINS(problem.hint, "merges.txt");
    ASSERT_CONTAINS(problem.hint, "SentencePiece model");
}

START_TEST(hint_for_a_file_of_no_known_kind_names_all_kinds)
{
    refuse_unknown("", 0, "is empty");
    refuse_unknown("[\"a\",\"b\"]", 9, "has no [UNK]");
    refuse_unknown("null", 4, "has no [UNK]");
    refuse_unknown("\x1B\0\0\0\0\0\x3F\xC3", 8, "a zero byte at byte 2"); /* llama2.c's */
}
END_TEST

START_TEST(half_of_a_bpe_is_refused)
{
    char *vocabulary = copy_of(GPT2 "/vocab.json", "tokens");
    assert_refused(vocabulary, "the vocabulary's folder has no merges", "tokens");
    char *merges = copy_of(GPT2 "/merges.txt", "merges");
    assert_refused(merges, "the merges' folder has no vocabulary", "merges");
    assert_refused(folder, "the folder has no tokenizer", folder);
    unlink(vocabulary);
    mkdir(path_of("merges.txt"), 0777);
    assert_refused(copy_of(GPT2 "/vocab.json", "vocab.json"), "it is a folder", "merges.txt");
}
END_TEST

START_TEST(damaged_sentencepiece_models_are_refused_and_end_nothing)
{
    FileBytes file = bytes_of(LLAMA "/tokenizer.model");
    for (size_t keep = 3; keep + 1 < file.length; keep += keep < 40 ? 1 : 211) {
        problem = (Problem){0};
        Tokenizer *t = tokenizer_open(write_bytes("short", file.bytes, keep), &problem);
        if (!t)
            ASSERT_CONTAINS(problem.what, "SentencePiece model is damaged: ");
        tokenizer_free(t);
    }
    assert_refused(write_bytes("short", file.bytes, file.length / 2), "it is not complete",
                   "short");
    assert_refused(write_bytes("short", file.bytes, 16), "no pieces are loaded", "short");
    free(file.bytes);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("tokenizers");
    TCase *text = tcase_create("text");
    tcase_add_checked_fixture(text, folder_up, folder_down);
    tcase_set_timeout(text, 60);
    tcase_add_test(text, bpe_has_the_ids_of_hugging_face_and_gives_the_text_back);
    tcase_add_test(text, sentencepiece_has_the_ids_of_its_library_and_gives_the_text_back);
    tcase_add_test(text, bpe_and_sentencepiece_read_the_name_of_a_special_token_as_text);
    tcase_add_test(text, any_text_comes_back_from_bpe_and_so_do_long_words);
    tcase_add_test(text, long_words_are_cut_where_no_id_changes);
    tcase_add_test(text, special_tokens_are_known_and_enclose_a_row);
    tcase_add_test(text, pieces_one_by_one_are_the_text_without_its_first_space);
    tcase_add_test(text, wordpiece_decodes_to_words);
    tcase_add_test(text, contents_decide_the_kind_whatever_the_name);
    suite_add_tcase(s, text);
    TCase *bad = tcase_create("bad");
    tcase_add_checked_fixture(bad, folder_up, folder_down);
    tcase_set_timeout(bad, 60);
    tcase_add_test(bad, vocabularies_with_missing_or_repeated_ids_are_refused);
    tcase_add_test(bad, merges_that_do_not_fit_the_vocabulary_are_refused);
    tcase_add_test(bad, bytes_and_special_tokens_need_no_merges);
    tcase_add_test(bad, hint_for_a_file_of_no_known_kind_names_all_kinds);
    tcase_add_test(bad, half_of_a_bpe_is_refused);
    tcase_add_test(bad, damaged_sentencepiece_models_are_refused_and_end_nothing);
    suite_add_tcase(s, bad);
    return s;
}
