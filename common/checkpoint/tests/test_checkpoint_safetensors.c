/* Reading trusts nothing in a file: after any change, a file is read correctly or rejected. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"

static const real numbers[] = {1, 2, 3, 4, 5, 6, -1, 0.5};
static char path[PATH_MAX];

static void write_with(const char *step)
{
    const SafeTensor tensors[] = {{.name = "matrix", .shape = SHAPE(2, 3)},
                                  {.name = "empty", .shape = SHAPE(0, 3)},
                                  {.name = "row", .shape = SHAPE(2)}};
    const char *const metadata[] = {"step", step, NULL};
    Problem problem;
    SafetensorsWriter *writer = safetensors_begin(path, tensors, 3, metadata, NULL, &problem);
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

/* Writes a file with this header and `bytes` bytes of zeros as data. */
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
                     "2d06800538d394c2"); /* the checksum of no bytes */
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
    {"[1,2]", "not a JSON object: [1,2]"},
    {"{\"a\":", "not a JSON object"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{}}",
     "not a JSON object"},
    {"{\"a\":3}", "lacks"},
    {"{\"a\\u001b[31m\\nb\":3}", "of a?[31m?b"},
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
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,8]}}", "do not match"},
    {"{\"a\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,8]}}", "do not match"},
    {"{\"a\":{\"dtype\":\"I64\",\"shape\":[2305843009213693951],\"data_offsets\":[0,8]}}",
     "do not match"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,9]}}", "cut short"},
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

static const char other_types[] =
    "{\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
    "\"four\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[8,12]},"
    "\"half\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[12,24]},"
    "\"brain\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[24,30]},"
    "\"whole\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[30,38]}}";

/* Writes a file with this header and these bytes as data. */
static void write_data(const char *header, const void *data, size_t bytes)
{
    write_header(header, 0);
    FILE *file = fopen(path, "ab");
    fwrite(data, 1, bytes, file);
    fclose(file);
}

static Safetensors *opened(void)
{
    Problem problem = {0};
    Safetensors *file = safetensors_open(path, &problem);
    ck_assert_msg(file != NULL, "%s", problem.what);
    return file;
}

static void assert_numbers(const Safetensors *file, const char *name, int count,
                           const double *expected)
{
    real values[8];
    Problem problem;
    ck_assert(safetensors_read(file, safetensors_find(file, name), values, &problem));
    for (int i = 0; i < count; i++)
        ck_assert_double_eq((double)values[i], expected[i]);
}

START_TEST(numbers_of_16_and_64_bits_become_those_of_the_program)
{
    const uint16_t data[19] = {[6] = 0x3c00, 0xc000, 0x7bff, 0x0001, 0x83ff, 0xfc00, [12] = 0x3f80,
                               0xc049,       0x0001, 0,      0,      0,      0x3ff8};
    write_data(other_types, data, sizeof data);
    Safetensors *file = opened();
    assert_numbers(file, "half", 6, (double[]){1, -2, 65504, 0x1p-24, -1023 * 0x1p-24, -INFINITY});
    assert_numbers(file, "brain", 3, (double[]){1, -3.140625, 0x1p-133});
    assert_numbers(file, "whole", 1, (double[]){1.5});
    safetensors_close(file);
}
END_TEST

START_TEST(a_tensor_of_another_type_is_refused_only_when_it_is_read)
{
    const char *const names[] = {"ids", "four"}, *const types[] = {"I64", "F4"};
    const char data[38] = {0};
    real values[8];
    write_data(other_types, data, sizeof data);
    Safetensors *file = opened();
    for (int i = 0; i < 2; i++) {
        Problem problem = {0};
        ck_assert(!safetensors_read(file, safetensors_find(file, names[i]), values, &problem));
        ck_assert_ptr_nonnull(strstr(problem.what, types[i]));
        ck_assert_str_ne(problem.hint, "");
    }
    safetensors_close(file);
}
END_TEST

/* Reads rows 1 and 2, columns 1 and 2 of "matrix" [3,4], whose number in row i, column k is 10 i +
 * k. */
static void assert_reads_a_part(const Safetensors *file)
{
    const SafeTensor *matrix = safetensors_find(file, "matrix");
    const Box all = box_of(matrix->shape, -1, (Range){0});
    Box wanted = box_of(matrix->shape, 1, (Range){1, 3});
    real values[4] = {0};
    Problem problem;
    wanted.range[2] = (Range){1, 3};
    ck_assert(safetensors_read_box(file, matrix, &all, &wanted, values, &problem));
    ck_assert_mem_eq(values, ((real[]){11, 12, 21, 22}), sizeof values);
}

static const real matrix_numbers[] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
static const char matrix_header[] =
    "{\"matrix\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[0,48]}}";

START_TEST(a_part_is_read_with_and_without_checksums)
{
    Problem problem;
    const SafeTensor tensor = {.name = "matrix", .shape = SHAPE(3, 4)};
    write_data(matrix_header, matrix_numbers, sizeof matrix_numbers);
    Safetensors *file = opened();
    assert_reads_a_part(file);
    safetensors_close(file);
    SafetensorsWriter *writer =
        safetensors_begin(path, &tensor, 1, (const char *const[]){NULL}, NULL, &problem);
    safetensors_put(writer, matrix_numbers, 12);
    ck_assert(safetensors_end(writer, &problem));
    file = opened();
    ck_assert(file->has_checksums);
    assert_reads_a_part(file);
    safetensors_close(file);
}
END_TEST

START_TEST(reading_a_part_does_not_touch_the_rest)
{
    Problem problem;
    real values[12];
    write_data(matrix_header, matrix_numbers, sizeof matrix_numbers);
    Safetensors *file = opened();
    const SafeTensor *matrix = safetensors_find(file, "matrix");
    ck_assert_int_eq(truncate(path, file->size - 16), 0); /* cuts off the last row */
    const Box all = box_of(matrix->shape, -1, (Range){0}),
              rows = box_of(matrix->shape, 0, (Range){0, 2}),
              column = box_of(matrix->shape, 1, (Range){0, 1});
    ck_assert(safetensors_read_box(file, matrix, &all, &rows, values, &problem));
    ck_assert_mem_eq(values, matrix_numbers, 8 * sizeof(real));
    ck_assert(!safetensors_read_box(file, matrix, &all, &column, values, &problem));
    ck_assert_ptr_nonnull(strstr(problem.what, "became shorter"));
    safetensors_close(file);
}
END_TEST

/* ---- folders ------------------------------------------------------------------------------------------- */

static char folder[64];

static void begin_folder(void)
{
    strcpy(folder, "/tmp/balise-folder-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void end_folder(void)
{
    const char *const names[] = {"model.safetensors.index.json", "a.safetensors", "b.safetensors",
                                 "model.safetensors"};
    for (int i = 0; i < 4; i++)
        unlink(path_in(folder, names[i]).text);
    rmdir(folder);
}

static void write_tensor(const char *in, const char *name)
{
    char header[128];
    strcpy(path, path_in(folder, in).text);
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", name);
    write_data(header, numbers, 4);
}

static void write_index(const char *text)
{
    strcpy(path, path_in(folder, "model.safetensors.index.json").text);
    write_bytes(text, strlen(text));
}

START_TEST(the_files_of_an_index_are_one_set_of_tensors)
{
    Problem problem = {0};
    const Safetensors *file = NULL;
    write_tensor("a.safetensors", "one");
    write_tensor("b.safetensors", "two");
    write_index("{\"weight_map\":{\"one\":\"a.safetensors\",\"two\":\"b.safetensors\"}}");
    SafetensorsFolder *all = safetensors_folder_open(folder, &problem);
    ck_assert_msg(all != NULL, "%s", problem.what);
    ck_assert_int_eq(all->count, 2);
    ck_assert_str_eq(safetensors_folder_find(all, "two", &file)->name, "two");
    ck_assert_ptr_nonnull(strstr(file->path, "b.safetensors"));
    ck_assert_ptr_null(safetensors_folder_find(all, "three", &file));
    safetensors_folder_close(all);
}
END_TEST

static const struct {
    const char *index, *words;
} wrong_folders[] = {
    {NULL, "there is no model.safetensors"},
    {"", "cannot be used"},
    {"[]", "no weight_map"},
    {"{\"weight_map\":[]}", "no weight_map"},
    {"{\"weight_map\":{}}", "no weight_map"},
    {"{\"weight_map\":{\"one\":1}}", "the name of a file"},
    {"{\"weight_map\":{\"one\":\"\"}}", "the name of a file"},
    {"{\"weight_map\":{\"one\":\"../a.safetensors\"}}", "the name of a file"},
    {"{\"weight_map\":{\"one\":\"b.safetensors\"}}", "cannot be opened"},
    {"{\"weight_map\":{\"one\":\"a\\u001b.safetensors\"}}", "the name of a file"},
    {"{\"weight_map\":{\"two\":\"a.safetensors\"}}", "two is missing"},
    {"{\"weight_map\":{\"two\\n\\u009b\":\"a.safetensors\"}}", "two?? is missing"},
};

START_TEST(a_wrong_folder_is_refused)
{
    Problem problem = {0};
    write_tensor("a.safetensors", "one");
    if (wrong_folders[_i].index)
        write_index(wrong_folders[_i].index);
    ck_assert_ptr_null(safetensors_folder_open(folder, &problem));
    ck_assert_msg(strstr(problem.what, wrong_folders[_i].words), "'%s' does not say '%s'",
                  problem.what, wrong_folders[_i].words);
    ck_assert_str_ne(problem.hint, "");
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
    ck_assert_ptr_null(
        safetensors_begin(path, NULL, 0, (const char *const[]){NULL}, NULL, &problem));
    ck_assert_ptr_null(safetensors_open("/tmp/no/such/file", &problem));
    ck_assert_ptr_null(safetensors_open("/tmp", &problem));
    ck_assert_ptr_null(safetensors_begin("/tmp/no/such/file", NULL, 0, (const char *const[]){NULL},
                                         NULL, &problem));
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
    tcase_add_test(cases, numbers_of_16_and_64_bits_become_those_of_the_program);
    tcase_add_test(cases, a_tensor_of_another_type_is_refused_only_when_it_is_read);
    tcase_add_test(cases, a_part_is_read_with_and_without_checksums);
    tcase_add_test(cases, reading_a_part_does_not_touch_the_rest);
    tcase_add_test(cases, a_header_longer_than_the_file_is_refused);
    tcase_add_test(cases, a_missing_checksum_is_refused);
    tcase_add_test(cases, fifos_folders_and_missing_paths_are_refused);
    suite_add_tcase(all, cases);
    TCase *folders = tcase_create("folders");
    tcase_add_checked_fixture(folders, begin_folder, end_folder);
    tcase_add_test(folders, the_files_of_an_index_are_one_set_of_tensors);
    tcase_add_loop_test(folders, a_wrong_folder_is_refused, 0,
                        (int)(sizeof wrong_folders / sizeof *wrong_folders));
    suite_add_tcase(all, folders);
    return all;
}
