/* Reviews in CSV: files that are read, and files that are rejected. */
#include "data/internal.h"
#include "temporary.h"

Suite *suite(void);

static Problem problem;

static Reviews *parse(const char *text)
{
    return reviews_parse("films.csv", text, strlen(text), &problem);
}

static void assert_row(const Reviews *reviews, int64_t row, const char *text, int label)
{
    int64_t length = reviews->begin[row + 1] - reviews->begin[row];
    ck_assert_int_eq(length, (int64_t)strlen(text));
    ck_assert_mem_eq(reviews->text + reviews->begin[row], text, (size_t)length);
    ck_assert_int_eq(reviews->labels[row], label);
}

static void assert_bad(const char *text, const char *what, const char *where)
{
    problem = (Problem){0};
    ck_assert_ptr_null(parse(text));
    ASSERT_CONTAINS(problem.what, what);
    ck_assert_str_eq(problem.where, where);
    ck_assert_uint_gt(strlen(problem.hint), 10);
}

START_TEST(quoted_line_breaks_commas_and_doubled_quotes_stay_inside_one_row)
{
    Reviews *reviews = parse("review,label\n\"a, \"\"b\"\"\n\nc\r\nd\",1\nplain,0\n");
    ck_assert_int_eq(reviews->rows, 2);
    assert_row(reviews, 0, "a, \"b\"\n\nc\r\nd", 1);
    assert_row(reviews, 1, "plain", 0);
    reviews_free(reviews);
}
END_TEST

START_TEST(byte_order_mark_and_crlf_change_nothing)
{
    Reviews *reviews = parse("\xEF\xBB\xBFreview,label\r\n\"a\",1\r\nb,0\r\n");
    ck_assert_int_eq(reviews->rows, 2);
    assert_row(reviews, 0, "a", 1);
    assert_row(reviews, 1, "b", 0);
    reviews_free(reviews);
}
END_TEST

START_TEST(a_carriage_return_without_a_newline_is_named_unless_it_is_in_quotes)
{
    const char *const lone = "the row has a carriage return without a newline";
    assert_bad("review,label\rgood,1\rbad,0\r", lone, "films.csv: line 1");
    assert_bad("review,label\r\ngood,1\rbad,0\r\n", lone, "films.csv: row 1 (line 2)");
    assert_bad("review,label\n\r\na,1\ngo\rod,1\nb,0\n", lone, "films.csv: row 2 (line 4)");
    assert_bad("review,label\n\"good\"\r,1\n", lone, "films.csv: row 1 (line 2)");
    assert_bad("review,label\ngood,1\r\r\n", lone, "films.csv: row 1 (line 2)");
    assert_bad("review,label\ngood,1\r", lone, "films.csv: row 1 (line 2)");
    Reviews *reviews = parse("review,label\r\n\"go\rod\r\n\r\",1\r\n\r\nb,0\r\n");
    ck_assert_int_eq(reviews->rows, 2);
    assert_row(reviews, 0, "go\rod\r\n\r", 1);
    ck_assert_int_eq(reviews->lines[1], 5);
    reviews_free(reviews);
}
END_TEST

START_TEST(blanks_around_a_review_are_part_of_it)
{
    Reviews *reviews = parse("review,label\n  a \t,1\n\" b \",0\n");
    assert_row(reviews, 0, "  a \t", 1);
    assert_row(reviews, 1, " b ", 0);
    reviews_free(reviews);
}
END_TEST

START_TEST(labels_are_digits_or_words_and_an_empty_review_is_a_row)
{
    Reviews *reviews = parse("\"review\",\"label\"\na,neg\nb,pos\n,\"0\"\n\"\",1");
    ck_assert_int_eq(reviews->rows, 4);
    assert_row(reviews, 0, "a", 0);
    assert_row(reviews, 1, "b", 1);
    assert_row(reviews, 2, "", 0);
    assert_row(reviews, 3, "", 1);
    reviews_free(reviews);
}
END_TEST

START_TEST(last_row_needs_no_line_break_and_blank_lines_are_no_rows)
{
    Reviews *reviews = parse("review,label\n\na,1\n\r\n\nb,0");
    ck_assert_int_eq(reviews->rows, 2);
    assert_row(reviews, 1, "b", 0);
    reviews_free(reviews);
}
END_TEST

START_TEST(every_plane_of_unicode_is_kept)
{
    Reviews *reviews = parse("review,label\na\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x8E\xAC,1\n");
    assert_row(reviews, 0, "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x8E\xAC", 1);
    reviews_free(reviews);
}
END_TEST

START_TEST(many_rows_keep_their_order)
{
    char *text = malloc(100000), *end = text;
    end += sprintf(end, "review,label\n");
    for (int row = 0; row < 5000; row++)
        end += sprintf(end, "row %d,%d\n", row, row % 3 == 0);
    Reviews *reviews = parse(text);
    ck_assert_int_eq(reviews->rows, 5000);
    assert_row(reviews, 3000, "row 3000", 1);
    assert_row(reviews, 4999, "row 4999", 0);
    reviews_free(reviews);
    free(text);
}
END_TEST

START_TEST(files_without_rows_are_refused)
{
    assert_bad("", "is empty", "films.csv");
    assert_bad("\xEF\xBB\xBF", "is empty", "films.csv");
    assert_bad("\n\n", "is empty", "films.csv");
    assert_bad("review,label\n", "no rows", "films.csv");
}
END_TEST

START_TEST(other_headers_are_refused)
{
    assert_bad("text,label\na,1\n", "header", "films.csv: line 1");
    assert_bad("a,1\nb,0\n", "header", "films.csv: line 1");
    assert_bad("review,label,stars\na,1,3\n", "header", "films.csv: line 1");
    assert_bad("review\na\n", "header", "films.csv: line 1");
    assert_bad("A bird said \"no\".\nIt flew.\n", "header", "films.csv: line 1");
    ASSERT_CONTAINS(problem.hint, "plain text, set MODEL=");
    assert_bad("\"No\n\nit said.\n", "header", "films.csv: line 1");
    assert_bad("\n\nreview;label\na;1\n", "header", "films.csv: line 3");
}
END_TEST

START_TEST(missing_third_and_unknown_columns_name_row_and_line)
{
    assert_bad("review,label\n\"a\nb\",1\nno label\n", "no label", "films.csv: row 2 (line 4)");
    assert_bad("review,label\na,1\n\nb,0,c\n", "3 columns", "films.csv: row 2 (line 4)");
    assert_bad("review,label\na,1\nb,0\nc,2\n", "'2' names neither class",
               "films.csv: row 3 (line 4)");
    assert_bad("review,label\na,\n", "'' names neither class", "films.csv: row 1 (line 2)");
    assert_bad("review,label\na,1 \n", "'1 ' names neither class", "films.csv: row 1 (line 2)");
    assert_bad("review,label\na,positive and very long\n", "'positive and ver...'",
               "films.csv: row 1 (line 2)");
}
END_TEST

START_TEST(invalid_utf8_names_the_byte)
{
    const char *where = "films.csv: row 2 (line 3)";
    assert_bad("review,label\na,1\ncaf\xE9,1\n", "column 1 is not valid UTF-8: byte 0xE9 at byte 4",
               where);
    assert_bad("review,label\na,1\nb,\xFF\n", "column 2 is not valid UTF-8: byte 0xFF at byte 1",
               where);
    assert_bad("review,label\na,1\n\xC0\xAF,1\n", "0xC0", where);     /* overlong */
    assert_bad("review,label\na,1\n\xED\xA0\x80,1\n", "0xED", where); /* half a surrogate pair */
    assert_bad("review,label\na,1\n\xF4\x90\x80\x80,1\n", "0xF4", where); /* beyond U+10FFFF */
    assert_bad("review,label\na,1\nabcdefgh\xE2\x82,1\n", "0xE2", where); /* cut short */
}
END_TEST

START_TEST(zero_byte_names_row_and_line)
{
    static const char text[] = "review,label\n\"a\nb\",1\ngood\0film,1\n";
    problem = (Problem){0};
    ck_assert_ptr_null(reviews_parse("films.csv", text, sizeof text - 1, &problem));
    ASSERT_CONTAINS(problem.what, "column 1 has a zero byte at byte 5");
    ck_assert_str_eq(problem.where, "films.csv: row 2 (line 4)");
    ck_assert_uint_gt(strlen(problem.hint), 10);
}
END_TEST

START_TEST(stray_and_unclosed_quotes_name_the_row_where_they_begin)
{
    assert_bad("review,label\na,1\n\"b\nc,1\nd,0\n", "ends within a quoted field",
               "films.csv: row 2 (line 3)");
    assert_bad("review,label\na,1\n\"b\nc,1\n\"d\",0\n", "quote", "films.csv: row 2 (line 3)");
    assert_bad("review,label\na \"b\" c,1\n", "quote", "films.csv: row 1 (line 2)");
    assert_bad("review,label\n\"a\" ,1\n", "quote", "films.csv: row 1 (line 2)");
}
END_TEST

START_TEST(long_path_keeps_the_place)
{
    char path[600];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    ck_assert_ptr_null(reviews_parse(path, "review,label\na\n", 15, &problem));
    ASSERT_CONTAINS(problem.where, "xxx: row 1 (line 2)");
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("csv");
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, quoted_line_breaks_commas_and_doubled_quotes_stay_inside_one_row);
    tcase_add_test(rows, byte_order_mark_and_crlf_change_nothing);
    tcase_add_test(rows, a_carriage_return_without_a_newline_is_named_unless_it_is_in_quotes);
    tcase_add_test(rows, blanks_around_a_review_are_part_of_it);
    tcase_add_test(rows, labels_are_digits_or_words_and_an_empty_review_is_a_row);
    tcase_add_test(rows, last_row_needs_no_line_break_and_blank_lines_are_no_rows);
    tcase_add_test(rows, every_plane_of_unicode_is_kept);
    tcase_add_test(rows, many_rows_keep_their_order);
    suite_add_tcase(s, rows);
    TCase *bad = tcase_create("bad input");
    tcase_add_test(bad, files_without_rows_are_refused);
    tcase_add_test(bad, other_headers_are_refused);
    tcase_add_test(bad, missing_third_and_unknown_columns_name_row_and_line);
    tcase_add_test(bad, invalid_utf8_names_the_byte);
    tcase_add_test(bad, zero_byte_names_row_and_line);
    tcase_add_test(bad, stray_and_unclosed_quotes_name_the_row_where_they_begin);
    tcase_add_test(bad, long_path_keeps_the_place);
    suite_add_tcase(s, bad);
    return s;
}
