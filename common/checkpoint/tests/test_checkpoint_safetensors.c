/* Reading trusts nothing in a file: whatever is done to it, it is read correctly or rejected. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"

static const real numbers[] = {1, 2, 3, 4, 5, 6, -1, 0.5};
static char path[64];

static void write_with(const char *step)
{
    const SafeTensor tensors[] = {{.name = "matrix", .shape = SHAPE(2, 3)},
                                  {.name = "empty", .shape = SHAPE(0, 3)},
                                  {.name = "row", .shape = SHAPE(2)}};
    const char *const metadata[] = {"step", step, NULL};
    Problem problem;
    SafetensorsWriter *writer = safetensors_begin(path, tensors, 3, metadata, &problem);
    ck_assert_ptr_nonnull(writer);
    safetensors_put(writer, numbers, 6);
    safetensors_put(writer, numbers, 0);
    safetensors_put(writer, numbers + 6, 2);
    ck_assert(safetensors_end(writer, &problem));
}

static void write_good(void)
{
    write_with("7");
}

static void begin(void)
{
    strcpy(path, "/tmp/balise-safetensors-XXXXXX");
    close(mkstemp(path));
}

static void end(void)
{
    unlink(path);
}

static size_t read_bytes(char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t length = fread(bytes, 1, room, file);
    fclose(file);
    return length;
}

static void write_bytes(const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    fwrite(bytes, 1, length, file);
    fclose(file);
}

/* A file with this header and `bytes` of data. */
static void write_header(const char *header, size_t bytes)
{
    char file[4096] = {0};
    uint64_t length = strlen(header);
    memcpy(file, &length, sizeof length);
    memcpy(file + 8, header, length);
    write_bytes(file, 8 + length + bytes);
}

static void assert_refused(const char *words)
{
    Problem problem = {0};
    Safetensors *file = safetensors_open(path, &problem);
    ck_assert_ptr_null(file);
    ck_assert_msg(strstr(problem.what, words), "'%s' does not say '%s'", problem.what, words);
    ck_assert_str_eq(problem.where, path);
    ck_assert_str_ne(problem.hint, "");
}

START_TEST(a_file_is_read_as_it_was_written)
{
    Problem problem;
    real values[6];
    write_good();
    Safetensors *file = safetensors_open(path, &problem);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(file->count, 3);
    ck_assert_str_eq(safetensors_metadata(file, "step"), "7");
    ck_assert(file->has_checksums);
    ck_assert_str_eq(safetensors_metadata(file, "xxh3:empty"),
                     "2d06800538d394c2"); /* of no bytes */
    ck_assert_ptr_null(safetensors_metadata(file, "steps"));
    ck_assert_ptr_null(safetensors_find(file, "column"));
    const SafeTensor *matrix = safetensors_find(file, "matrix"),
                     *row = safetensors_find(file, "row");
    ck_assert(shape_equal(matrix->shape, SHAPE(2, 3)) && shape_equal(row->shape, SHAPE(2)));
    ck_assert(safetensors_read(file, matrix, values, &problem));
    ck_assert_mem_eq(values, numbers, 6 * sizeof(real));
    ck_assert(safetensors_read(file, row, values, &problem));
    ck_assert_mem_eq(values, numbers + 6, 2 * sizeof(real));
    safetensors_close(file);
}
END_TEST

START_TEST(data_begin_at_a_multiple_of_eight)
{
    const char step[] = "1000000000";
    for (size_t digits = 1; digits < sizeof step; digits++) {
        char bytes[1024], text[sizeof step] = "";
        uint64_t length;
        write_with(memcpy(text, step, digits));
        ck_assert_uint_gt(read_bytes(bytes, sizeof bytes), 8);
        memcpy(&length, bytes, sizeof length);
        ck_assert_uint_eq(length % 8, 0);
        ck_assert_mem_eq(bytes + 8 + length, numbers, 6 * sizeof(real));
    }
}
END_TEST

START_TEST(a_file_cut_short_anywhere_is_refused)
{
    char bytes[1024];
    write_good();
    size_t length = read_bytes(bytes, sizeof bytes);
    for (size_t kept = 0; kept < length; kept++) {
        write_bytes(bytes, kept);
        assert_refused("cut short");
    }
}
END_TEST

START_TEST(bytes_after_the_last_tensor_are_refused)
{
    char bytes[1024] = {0};
    write_good();
    size_t length = read_bytes(bytes, sizeof bytes - 4);
    write_bytes(bytes, length + 4);
    assert_refused("after the last tensor");
}
END_TEST

START_TEST(any_flipped_bit_is_refused_or_changes_no_number)
{
    char bytes[1024];
    write_good();
    size_t length = read_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < length; i++)
        for (int bit = 0; bit < 8; bit++) {
            Problem problem = {0};
            real values[6];
            bytes[i] ^= (char)(1 << bit);
            write_bytes(bytes, length);
            Safetensors *file = safetensors_open(path, &problem);
            const SafeTensor *tensor = file ? safetensors_find(file, "matrix") : NULL;
            if (tensor && shape_count(tensor->shape) == 6 &&
                safetensors_read(file, tensor, values, &problem))
                ck_assert_mem_eq(values, numbers, sizeof values);
            ck_assert(file || *problem.what);
            if (file)
                safetensors_close(file);
            bytes[i] ^= (char)(1 << bit);
        }
}
END_TEST

static const struct {
    const char *header, *words;
} wrong[] = {
    {"", "not a JSON object"},
    {"[1,2]", "not a JSON object"},
    {"{\"a\":", "not a JSON object"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{}}",
     "not a JSON object"},
    {"{\"a\":3}", "lacks"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
     "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[\"0\",4]}}", "lacks"},
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", "of type BF16"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "do not match"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "do not match"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", "do not match"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[-9223372036854775808,9223372036854775807]}}",
     "do not match"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "a gap or an overlap"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     "a gap or an overlap"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", "cut short"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "after the last tensor"},
};

START_TEST(a_wrong_header_is_refused)
{
    write_header(wrong[_i].header, 8);
    assert_refused(wrong[_i].words);
}
END_TEST

START_TEST(a_header_longer_than_the_file_is_refused)
{
    const uint64_t lengths[] = {100,        99999999,       100000001,
                                UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char bytes[64] = {0};
        memcpy(bytes, &lengths[i], sizeof lengths[i]);
        write_bytes(bytes, sizeof bytes);
        assert_refused("header");
    }
}
END_TEST

START_TEST(a_missing_checksum_is_refused)
{
    write_header("{\"__metadata__\":{\"xxh3:a\":\"0123456789abcdef\"},"
                 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                 8);
    assert_refused("there is no checksum of b");
}
END_TEST

START_TEST(fifos_folders_and_missing_paths_are_refused)
{
    Problem problem;
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    assert_refused("it is not a file");
    ck_assert_ptr_null(safetensors_begin(path, NULL, 0, (const char *const[]){NULL}, &problem));
    ck_assert_ptr_null(safetensors_open("/tmp/no/such/file", &problem));
    ck_assert_ptr_null(safetensors_open("/tmp", &problem));
    ck_assert_ptr_null(
        safetensors_begin("/tmp/no/such/file", NULL, 0, (const char *const[]){NULL}, &problem));
}
END_TEST

Suite *suite(void);
Suite *suite(void)
{
    Suite *all = suite_create("safetensors");
    TCase *cases = tcase_create("files");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, a_file_is_read_as_it_was_written);
    tcase_add_test(cases, data_begin_at_a_multiple_of_eight);
    tcase_add_test(cases, a_file_cut_short_anywhere_is_refused);
    tcase_add_test(cases, bytes_after_the_last_tensor_are_refused);
    tcase_add_test(cases, any_flipped_bit_is_refused_or_changes_no_number);
    tcase_add_loop_test(cases, a_wrong_header_is_refused, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(cases, a_header_longer_than_the_file_is_refused);
    tcase_add_test(cases, a_missing_checksum_is_refused);
    tcase_add_test(cases, fifos_folders_and_missing_paths_are_refused);
    suite_add_tcase(all, cases);
    return all;
}
