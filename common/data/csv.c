/* Reads the reviews of a CSV file, with libcsv. */
#include "data/internal.h"

#include <csv.h>
#include <stdlib.h>
#include <string.h>

/* The state shared by libcsv's callbacks. */
typedef struct Parse {
    const char *path;
    const char *bytes; /* of the file, without a byte-order mark */
    size_t size;
    Problem *problem;
    bool failed;
    Reviews *reviews;
    int64_t capacity;  /* capacity in rows */
    int64_t line;      /* the line being parsed, from 1 */
    bool is_lone;      /* a carriage return ends the bytes that are fed, and no newline follows */
    int64_t row_line;  /* the line where the current row began */
    int64_t row_count; /* rows completed, including the header */
    int64_t fields;    /* of the current row */
    size_t length;     /* of the current review, which follows the last row in reviews->text */
    char second[16];   /* the second field, truncated if longer than any label */
    size_t second_length;
} Parse;

/* Reports an error in the current row. For the header, row 0, the message has only the line. */
static void fail(Parse *parse, const char *hint, const char *sentence)
{
    char place[PLACE_SIZE];
    place_in_file(place, parse->path, parse->row_count, parse->row_line);
    problem_set(parse->problem, place, hint, "%s", sentence);
    parse->failed = true;
}

static void fail_header(Parse *parse)
{
    fail(parse,
         is_compressed(parse->bytes, parse->size)
             ? hint_to_convert(parse->bytes, parse->size)
             : N_("the first line must be: review,label. To train on plain text, set MODEL=gpt2, "
                  "MODEL=llama or TASK=mlm"),
         _("the header is not review,label"));
}

static void fail_quotes(Parse *parse, const char *sentence)
{
    if (parse->row_count == 0)
        fail_header(parse);
    else
        fail(parse, N_("put the review in quotes, and double each quote within it (\"\")"),
             sentence);
}

static int is_no_space(unsigned char byte)
{
    return 0; /* RFC 4180, 2.4: blanks are part of a field */
}

static void on_field(void *field, size_t length, void *context)
{
    Parse *parse = context;
    if (parse->failed)
        return;
    if (length == 0)
        field = ""; /* libcsv may pass NULL */
    size_t valid = utf8_valid_length(field, length);
    if (valid < length) {
        char sentence[160];
        snprintf(sentence, sizeof sentence,
                 _("column %lld is not valid UTF-8: byte 0x%02X at byte %zu of the field"),
                 (long long)parse->fields + 1, ((unsigned char *)field)[valid], valid + 1);
        fail(parse, hint_to_convert(field, length), sentence);
        return;
    }
    const char *zero = memchr(field, 0, length);
    if (zero) {
        char sentence[160];
        snprintf(sentence, sizeof sentence, _("column %lld has a zero byte at byte %zu"),
                 (long long)parse->fields + 1, (size_t)(zero - (char *)field) + 1);
        fail(parse, N_("remove zero bytes, for example with tr -d '\\0'"), sentence);
        return;
    }
    if (parse->fields == 0) {
        Reviews *reviews = parse->reviews;
        memcpy(reviews->text + reviews->begin[reviews->rows], field, length);
        parse->length = length;
    } else if (parse->fields == 1) {
        parse->second_length = length;
        memcpy(parse->second, field, length < sizeof parse->second ? length : sizeof parse->second);
    }
    parse->fields++;
}

static bool second_is(const Parse *parse, const char *word)
{
    return parse->second_length == strlen(word) &&
           memcmp(parse->second, word, parse->second_length) == 0;
}

static void header_end(Parse *parse)
{
    const Reviews *reviews = parse->reviews;
    if (parse->fields == 2 && parse->length == strlen("review") &&
        memcmp(reviews->text, "review", 6) == 0 && second_is(parse, "label"))
        return;
    fail_header(parse);
}

static void grow(Parse *parse)
{
    Reviews *reviews = parse->reviews;
    if (reviews->rows + 1 < parse->capacity)
        return;
    parse->capacity = parse->capacity ? 2 * parse->capacity : 1024;
    reviews->begin = reallocate(reviews->begin, (size_t)parse->capacity * sizeof *reviews->begin);
    reviews->lines = reallocate(reviews->lines, (size_t)parse->capacity * sizeof *reviews->lines);
    reviews->labels =
        reallocate(reviews->labels, (size_t)parse->capacity * sizeof *reviews->labels);
}

static void data_row_end(Parse *parse)
{
    char sentence[160];
    if (parse->fields < 2) {
        fail(parse, N_("write each row as: review,label"), _("the row has no label"));
        return;
    }
    if (parse->fields > 2) {
        snprintf(sentence, sizeof sentence, _("the row has %lld columns instead of 2"),
                 (long long)parse->fields);
        fail(parse, N_("put a review that contains commas in quotes"), sentence);
        return;
    }
    bool positive = second_is(parse, "1") || second_is(parse, "pos");
    if (!positive && !second_is(parse, "0") && !second_is(parse, "neg")) {
        int shown = (int)(parse->second_length < sizeof parse->second ? parse->second_length
                                                                      : sizeof parse->second);
        snprintf(sentence, sizeof sentence, _("the label '%.*s%s' names neither class"), shown,
                 parse->second, parse->second_length > sizeof parse->second ? "..." : "");
        fail(parse, N_("labels are 0 or neg, and 1 or pos"), sentence);
        return;
    }
    grow(parse);
    Reviews *reviews = parse->reviews;
    reviews->lines[reviews->rows] = parse->row_line;
    reviews->labels[reviews->rows] = positive;
    reviews->rows++;
    reviews->begin[reviews->rows] = reviews->begin[reviews->rows - 1] + (int64_t)parse->length;
}

static void on_row_end(int terminator, void *context)
{
    Parse *parse = context;
    if (parse->failed)
        return;
    if (terminator == '\r' && parse->is_lone) {
        fail(parse,
             N_("end each row with a newline, for example with tr '\\r' '\\n', and put a review "
                "that has line breaks in quotes"),
             _("the row has a carriage return without a newline"));
        return;
    }
    if (parse->row_count == 0)
        header_end(parse);
    else
        data_row_end(parse);
    parse->row_count++;
    parse->fields = 0;
}

/* Feeds up to each newline and each carriage return, because libcsv does not report line numbers,
 * takes a lone carriage return for the end of a row, and a quoted field may contain both. */
static void feed(Parse *parse, struct csv_parser *csv, const char *bytes, size_t length)
{
    bool within_row = false, is_new_line = true;
    for (const char *end = bytes + length; bytes < end && !parse->failed;) {
        size_t size = 1;
        while (bytes[size - 1] != '\n' && bytes[size - 1] != '\r' && bytes + size < end)
            size++;
        int64_t rows_before = parse->row_count;
        parse->is_lone = bytes[size - 1] == '\r' && (bytes + size == end || bytes[size] != '\n');
        parse->line += is_new_line;
        is_new_line = bytes[size - 1] == '\n';
        if (!within_row)
            parse->row_line = parse->line;
        if (csv_parse(csv, bytes, size, on_field, on_row_end, parse) != size && !parse->failed)
            fail_quotes(parse, _("a field has a stray quote, or a quote is not closed"));
        within_row = parse->row_count == rows_before && (within_row || size > 1);
        bytes += size;
    }
    if (!parse->failed && csv_fini(csv, on_field, on_row_end, parse) != 0)
        fail_quotes(parse, _("the file ends within a quoted field"));
}

Reviews *reviews_parse(const char *path, const char *bytes, size_t length, Problem *problem)
{
    const char *hint =
        N_("the file must begin with the line review,label and have one row per review");
    struct csv_parser csv;
    Reviews *reviews = allocate(sizeof *reviews);
    *reviews = (Reviews){.text = allocate(length)};
    skip_bom(&bytes, &length);
    Parse parse = {path, bytes, length, .problem = problem, .reviews = reviews};
    grow(&parse);
    reviews->begin[0] = 0;
    csv_init(&csv, CSV_STRICT | CSV_STRICT_FINI);
    csv_set_space_func(&csv, is_no_space);
    csv_set_blk_size(&csv, 1 << 16);
    feed(&parse, &csv, bytes, length);
    csv_free(&csv);
    if (!parse.failed && parse.row_count == 0)
        parse.failed = !problem_set(problem, path, hint, "the file is empty");
    if (!parse.failed && reviews->rows == 0)
        parse.failed = !problem_set(problem, path, hint, "the file has a header and no rows");
    if (!parse.failed)
        return reviews;
    reviews_free(reviews);
    return NULL;
}

void reviews_free(Reviews *reviews)
{
    if (!reviews)
        return;
    free(reviews->text);
    free(reviews->begin);
    free(reviews->lines);
    free(reviews->labels);
    free(reviews);
}
