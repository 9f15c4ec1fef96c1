/* WordPiece gives the ids of Hugging Face's tokenizer. */
#include "data/internal.h"
#include "temporary.h"

Suite *suite(void);

/* Ids are line numbers from 0: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then the tokens
 * below. */
static const char *const tokens[] = {
    "[PAD]",  "[UNK]",  "[CLS]",    "[SEP]",        "[MASK]",  "un", "##aff",
    "##able", "unaff",  "film",     "##s",          ".",       "'",  "$",
    "naive",  "a",      "##a",      "\u4E2D",       "b",       "[",  "]",
    "sep",    "\u0915", "##\u093E", "##\U0001D165", "##\u302E"};
static Tokenizer *tokenizer;
static Problem problem;

static char *vocabulary_file(const char *line_break)
{
    char text[1024] = "";
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        strcat(strcat(text, tokens[i]), line_break);
    return write_text("vocab.txt", text);
}

static void up(void)
{
    folder_up();
    tokenizer = tokenizer_open(vocabulary_file("\n"), &problem);
    ck_assert_ptr_nonnull(tokenizer);
}

static void down(void)
{
    tokenizer_free(tokenizer);
    folder_down();
}

/* The pieces, joined by blanks, [CLS] and [SEP] included. */
static const char *pieces(const char *text, size_t length, int seq)
{
    static char joined[4096];
    int32_t *ids = malloc(
        (size_t)seq * sizeof *ids); /* exactly seq: the sanitizer detects a write past the end */
    int64_t count =
        tokenizer_encode(tokenizer, (Text){text, length, "text.txt", 1}, seq, ids, &problem);
    ck_assert_int_le(count, seq);
    joined[0] = '\0';
    for (int64_t i = 0; i < count; i++)
        strcat(strcat(joined, i ? " " : ""), tokens[ids[i]]);
    free(ids);
    return joined;
}

#define ASSERT_PIECES(text, expected)                                                              \
    ck_assert_str_eq(pieces((text), sizeof(text) - 1, 512), "[CLS] " expected "[SEP]")

START_TEST(the_longest_piece_comes_first_and_a_rest_makes_the_word_unknown)
{
    ASSERT_PIECES("unaffable", "unaff ##able ");
    ASSERT_PIECES("films", "film ##s ");
    ASSERT_PIECES("film unaffx films", "film [UNK] film ##s ");
    ASSERT_PIECES("able", "[UNK] ");
}
END_TEST

START_TEST(empty_text_is_cls_and_sep)
{
    ASSERT_PIECES("", "");
    ASSERT_PIECES(" \t\r\n\u3000\u2028", "");
}
END_TEST

START_TEST(punctuation_stands_alone_in_ascii_and_beyond)
{
    ASSERT_PIECES("film.film'$", "film . film ' $ ");
    ASSERT_PIECES("film\u2026film", "film [UNK] film ");
    ASSERT_PIECES("film\u037Efilm", "film [UNK] film "); /* decomposes to a semicolon */
}
END_TEST

START_TEST(case_and_accents_are_folded)
{
    ASSERT_PIECES("NA\u00CFVE na\u00EFve nai\u0308ve FILM", "naive naive naive film ");
    ASSERT_PIECES("\u00C5\u212B", "a ##a ");
}
END_TEST

START_TEST(control_characters_vanish_and_other_blanks_separate)
{
    ASSERT_PIECES("fi\0l\x01m\x7F\xC2\x85\u00ADs\uFFFD\uFEFF", "film ##s ");
    ASSERT_PIECES("film\u00A0film\u2003film", "film film film ");
}
END_TEST

START_TEST(ideographs_are_words)
{
    ASSERT_PIECES("a\u4E2Db\u4E2D\u4E2D", "a \u4E2D b \u4E2D \u4E2D ");
}
END_TEST

START_TEST(remaining_marks_are_put_in_canonical_order)
{
    ASSERT_PIECES("a\u302E\U0001D165", "a ##\U0001D165 ##\u302E "); /* classes 224 and 216 */
}
END_TEST

START_TEST(special_tokens_in_the_text_are_those_tokens)
{
    ASSERT_PIECES("a[SEP]b [MASK][UNK] [PAD]", "a [SEP] b [MASK] [UNK] [PAD] ");
    ASSERT_PIECES("[sep] [SEP [[SEP]]", "[ sep ] [ sep [ [SEP] ] ");
}
END_TEST

START_TEST(word_of_a_hundred_characters_is_split_and_a_longer_one_unknown)
{
    char text[500] = "", expected[1000] = "[CLS] a";
    memset(text, 'a', 101);
    for (int i = 1; i < 100; i++)
        strcat(expected, " ##a");
    strcat(expected, " [SEP]");
    ck_assert_str_eq(pieces(text, 100, 512), expected);
    ck_assert_str_eq(pieces(text, 101, 512), "[CLS] [UNK] [SEP]");
    text[0] = '\0';
    for (int i = 0; i < 100; i++)
        strcat(text, "\u00E4"); /* the limit counts characters without accents, not bytes */
    ck_assert_str_eq(pieces(text, strlen(text), 512), expected);
}
END_TEST

START_TEST(truncation_keeps_cls_and_sep)
{
    ck_assert_str_eq(pieces("unaffable film", 14, 2), "[CLS] [SEP]");
    ck_assert_str_eq(pieces("unaffable film", 14, 3), "[CLS] unaff [SEP]");
    ck_assert_str_eq(pieces("unaffable film", 14, 4), "[CLS] unaff ##able [SEP]");
    ck_assert_str_eq(pieces("unaffable film", 14, 5), "[CLS] unaff ##able film [SEP]");
    ck_assert_str_eq(pieces("unaffx film", 11, 3), "[CLS] [UNK] [SEP]");
    ck_assert_str_eq(pieces("aaaaaaaa", 8, 3), "[CLS] a [SEP]");
}
END_TEST

START_TEST(crlf_and_byte_order_mark_in_the_vocabulary_change_nothing)
{
    Tokenizer *other = tokenizer_open(vocabulary_file("\r\n"), &problem);
    ck_assert_ptr_nonnull(other);
    ck_assert_int_eq(tokenizer_size(other), tokenizer_size(tokenizer));
    int32_t ids[8];
    ck_assert_int_eq(
        tokenizer_encode(other, (Text){"unaffable", 9, "text.txt", 1}, 8, ids, &problem), 4);
    ck_assert_int_eq(ids[2], 7);
    tokenizer_free(other);
    other =
        tokenizer_open(write_text("bom.txt", "\xEF\xBB\xBF[PAD]\n[UNK]\n[CLS]\n[SEP]"), &problem);
    ck_assert_ptr_nonnull(other);
    ck_assert_int_eq(tokenizer_size(other), 4);
    ck_assert_int_eq(tokenizer_special(other, PAD_TOKEN), 0);
    tokenizer_free(other);
}
END_TEST

static void assert_bad_vocabulary(const char *text, const char *what, const char *where)
{
    ck_assert_ptr_null(tokenizer_open(write_text("bad.txt", text), &problem));
    ASSERT_CONTAINS(problem.what, what);
    ASSERT_CONTAINS(problem.where, where);
    ck_assert_uint_gt(strlen(problem.hint), 10);
}

START_TEST(vocabularies_that_lack_or_repeat_a_token_are_refused)
{
    assert_bad_vocabulary("[PAD]\n[CLS]\n[SEP]\n", "no [UNK]", "bad.txt");
    assert_bad_vocabulary("[PAD]\n[UNK]\n[SEP]\n", "no [CLS]", "bad.txt");
    assert_bad_vocabulary("[PAD]\n[UNK]\n[CLS]\n", "no [SEP]", "bad.txt");
    assert_bad_vocabulary("[CLS]\n[UNK]\n[SEP]\n", "no [PAD]", "bad.txt");
    assert_bad_vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##a\na\n", "twice: line 5",
                          "bad.txt: line 7");
    assert_bad_vocabulary("[PAD]\n\n[CLS]\n", "empty line", "bad.txt: line 2");
    assert_bad_vocabulary("[PAD]\ncaf\xE9\n", "UTF-8", "bad.txt: line 2");
    assert_bad_vocabulary("", "empty", "bad.txt");
}
END_TEST

START_TEST(missing_vocabulary_is_refused)
{
    ck_assert_ptr_null(tokenizer_open("/nowhere/vocab.txt", &problem));
    ASSERT_CONTAINS(problem.what, "No such file");
    ck_assert_str_eq(problem.where, "/nowhere/vocab.txt");
    ck_assert_ptr_null(tokenizer_open("/tmp", &problem));
    ASSERT_CONTAINS(problem.what, "the folder has no tokenizer");
}
END_TEST

/* The tokenizer of a vocabulary with capitals, accents and Chinese characters, with these settings. */
static Tokenizer *with_settings(const char *settings)
{
    write_text("tokenizer_config.json", settings);
    return tokenizer_open(
        write_text("cased.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nNa\u00EFve\nna\u00EFve\nNaive\nnaive\n"
                                "\u4E2D\u4E2D\n\u4E2D\ni\u0307\n"),
        &problem);
}

/* Compares the ids between [CLS] and [SEP], as digits from 4 on: "4" is "Na\u00EFve". */
static void assert_ids(const char *settings, const char *expected)
{
    static const char text[] = "Na\u00EFve \u4E2D\u4E2D \u0130";
    int32_t ids[32];
    char digits[40] = "";
    Tokenizer *other = with_settings(settings);
    ck_assert_msg(other, "%s", problem.what);
    const int64_t count =
        tokenizer_encode(other, (Text){text, sizeof text - 1, "text.txt", 1}, 32, ids, &problem);
    for (int64_t i = 1; i + 1 < count; i++)
        snprintf(digits + strlen(digits), sizeof digits - strlen(digits), i > 1 ? " %d" : "%d",
                 ids[i]);
    ck_assert_str_eq(digits, expected);
    tokenizer_free(other);
}

START_TEST(settings_beside_the_vocabulary_are_followed)
{
    assert_ids("{}", "7 9 9 1");
    assert_ids("\xEF\xBB\xBF{\"do_lower_case\": false}", "4 9 9 1");
    assert_ids("{\"do_lower_case\": false, \"strip_accents\": true}", "6 9 9 1");
    assert_ids("{\"do_lower_case\": true, \"strip_accents\": false}", "5 9 9 10");
    assert_ids("{\"strip_accents\": null, \"tokenize_chinese_chars\": false}", "7 8 1");
    assert_ids(
        "{\"tokenizer_class\": \"BertTokenizerFast\", \"unk_token\": {\"content\": \"[UNK]\"}, "
        "\"additional_special_tokens\": [], \"bos_token\": \"[CLS]\", \"eos_token\": null}",
        "7 9 9 1");
}
END_TEST

START_TEST(files_of_tokens_beside_the_vocabulary_may_have_the_usual_ones_only)
{
    Tokenizer *other;
    write_text("special_tokens_map.json",
               "{\"unk_token\": \"[UNK]\", \"sep_token\": {\"content\": \"[SEP]\"}}");
    write_text("added_tokens.json", "{\"[PAD]\": 0}");
    other = with_settings("{}");
    ck_assert_msg(other, "%s", problem.what);
    tokenizer_free(other);
    write_text("added_tokens.json", "{\"[NEW]\": 11}");
    ck_assert_ptr_null(with_settings("{}"));
    ASSERT_CONTAINS(problem.what, "[NEW]");
    ASSERT_CONTAINS(problem.where, "added_tokens.json");
    write_text("added_tokens.json", "{}");
    write_text("special_tokens_map.json", "{\"additional_special_tokens\": [\"na\"]}");
    ck_assert_ptr_null(with_settings("{}"));
    ASSERT_CONTAINS(problem.where, "special_tokens_map.json");
    write_text("special_tokens_map.json", "{}");
}
END_TEST

static void assert_refused_settings(const char *settings, const char *what)
{
    ck_assert_ptr_null(with_settings(settings));
    ASSERT_CONTAINS(problem.what, what);
    ASSERT_CONTAINS(problem.where, "tokenizer_config.json");
    ck_assert_uint_gt(strlen(problem.hint), 10);
}

START_TEST(settings_that_are_not_implemented_are_refused)
{
    assert_refused_settings("{\"tokenizer_class\": \"BertJapaneseTokenizer\"}",
                            "tokenizer_class is BertJapaneseTokenizer");
    assert_refused_settings("{\"do_basic_tokenize\": false}", "do_basic_tokenize is false");
    assert_refused_settings("{\"unk_token\": \"<unk>\"}", "unk_token is <unk>");
    assert_refused_settings("{\"truncation_side\": \"left\"}", "truncation_side is left");
    assert_refused_settings("{\"added_tokens_decoder\": {\"5\": {\"content\": \"[NEW]\"}}}",
                            "[NEW]");
    assert_refused_settings("{\"additional_special_tokens\": [\"[SEP]\", \"na\"]}", "tokens is na");
    assert_refused_settings("{\"extra_special_tokens\": {\"image\": {\"content\": \"na\"}}}",
                            "tokens is na");
    assert_refused_settings("{\"bos_token\": \"na\"}", "bos_token is na");
    assert_refused_settings("{\"do_lower_case\": \"false\"}", "do_lower_case is neither");
    assert_refused_settings("{\"strip_accents\": 0}", "strip_accents is neither");
    assert_refused_settings("[]", "no object");
    assert_refused_settings("{", "cannot be read");
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("wordpiece");
    TCase *text = tcase_create("text");
    tcase_add_checked_fixture(text, up, down);
    tcase_add_test(text, the_longest_piece_comes_first_and_a_rest_makes_the_word_unknown);
    tcase_add_test(text, empty_text_is_cls_and_sep);
    tcase_add_test(text, punctuation_stands_alone_in_ascii_and_beyond);
    tcase_add_test(text, case_and_accents_are_folded);
    tcase_add_test(text, control_characters_vanish_and_other_blanks_separate);
    tcase_add_test(text, ideographs_are_words);
    tcase_add_test(text, remaining_marks_are_put_in_canonical_order);
    tcase_add_test(text, special_tokens_in_the_text_are_those_tokens);
    tcase_add_test(text, word_of_a_hundred_characters_is_split_and_a_longer_one_unknown);
    tcase_add_test(text, truncation_keeps_cls_and_sep);
    suite_add_tcase(s, text);
    TCase *vocabulary = tcase_create("vocabulary");
    tcase_add_checked_fixture(vocabulary, up, down);
    tcase_add_test(vocabulary, crlf_and_byte_order_mark_in_the_vocabulary_change_nothing);
    tcase_add_test(vocabulary, vocabularies_that_lack_or_repeat_a_token_are_refused);
    tcase_add_test(vocabulary, missing_vocabulary_is_refused);
    tcase_add_test(vocabulary, settings_beside_the_vocabulary_are_followed);
    tcase_add_test(vocabulary, settings_that_are_not_implemented_are_refused);
    tcase_add_test(vocabulary, files_of_tokens_beside_the_vocabulary_may_have_the_usual_ones_only);
    suite_add_tcase(s, vocabulary);
    return s;
}
