/* The pool hands out buffers, takes them back and counts them. */
#include <check.h>
#include <math.h>

#include "tests/run_for_tests.h"
#include "tensor/pool.h"

enum { MB = 1000000 };

START_TEST(a_released_buffer_is_handed_out_again)
{
    Pool *pool = pool_new(0, false);
    Buffer *first = pool_get(pool, 1000, ACTIVATIONS);
    void *data = first->data;
    buffer_release(first);
    Buffer *second = pool_get(pool, 1000, ACTIVATIONS);
    ck_assert_ptr_eq(second->data, data);
    ck_assert_int_eq(pool_allocations(pool), 1);
    buffer_release(second);
    pool_free(pool);
}
END_TEST

START_TEST(nothing_is_allocated_after_the_first_step)
{
    Pool *pool = pool_new(0, false);
    const int64_t sizes[] = {100, 4096, 100, 0, 3 << 20, 64, 65};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    int64_t after_first = 0;
    for (int step = 0; step < 5; step++) {
        Buffer *held[COUNT];
        for (int i = 0; i < COUNT; i++)
            held[(i + step) % COUNT] = pool_get(pool, sizes[(i + step) % COUNT], ACTIVATIONS);
        for (int i = 0; i < COUNT; i++)
            buffer_release(held[i]);
        if (step == 0)
            after_first = pool_allocations(pool);
        ck_assert_int_eq(pool_allocations(pool), after_first);
    }
    ck_assert_int_eq(after_first, COUNT);
    pool_free(pool);
}
END_TEST

START_TEST(two_buffers_share_no_byte_and_are_aligned)
{
    Pool *pool = pool_new(0, false);
    for (int64_t bytes = 0; bytes < 200; bytes += 9) {
        Buffer *a = pool_get(pool, bytes, WEIGHTS), *b = pool_get(pool, bytes, WEIGHTS);
        char *from_a = a->data, *from_b = b->data;
        ck_assert(from_a + bytes <= from_b || from_b + bytes <= from_a);
        ck_assert_uint_eq((uintptr_t)from_a % 64, 0);
        ck_assert_uint_eq((uintptr_t)from_b % 64, 0);
        buffer_release(a);
        buffer_release(b);
    }
    pool_free(pool);
}
END_TEST

__attribute__((no_sanitize("address"))) static void flip(char *byte)
{
    *byte ^= 1;
}

START_TEST(a_write_beside_a_watched_buffer_is_detected)
{
    for (int at = -64; at < 136; at++) {
        Pool *pool = pool_new(0, true);
        Buffer *buffer = pool_get(pool, 100, ACTIVATIONS);
        ck_assert_int_eq(pool_damaged(), 0);
        flip((char *)buffer->data + at);
        const int beside = at < 0 || at >= 100;
        ck_assert_int_eq(pool_damaged(), beside ? 100 : 0);
        buffer_release(buffer);
        ck_assert_int_eq(pool_damaged(), beside ? 100 : 0);
        pool_free(pool);
    }
}
END_TEST

START_TEST(a_buffer_lives_until_its_last_holder_releases_it)
{
    Pool *pool = pool_new(0, false);
    Buffer *buffer = pool_get(pool, 640, ACTIVATIONS);
    ck_assert_ptr_eq(buffer_hold(buffer), buffer);
    buffer_release(buffer);
    ck_assert_int_eq(memory_use().now[ACTIVATIONS], 640);
    Buffer *other = pool_get(pool, 640, ACTIVATIONS);
    ck_assert_ptr_ne(other->data, buffer->data);
    buffer_release(buffer);
    buffer_release(other);
    ck_assert_int_eq(memory_use().now[ACTIVATIONS], 0);
    buffer_release(NULL);
    pool_free(pool);
}
END_TEST

START_TEST(the_peak_is_taken_at_the_highest_total)
{
    Pool *pool = pool_new(0, false);
    Buffer *weights = pool_get(pool, 6400, WEIGHTS);
    Buffer *a = pool_get(pool, 640, ACTIVATIONS), *b = pool_get(pool, 1280, ACTIVATIONS);
    buffer_release(a);
    buffer_release(b);
    Buffer *gradients = pool_get(pool, 1280, GRADIENTS); /* the total is now below the peak */
    MemoryUse use = memory_use();
    ck_assert_int_eq(use.peak_total, 8320);
    ck_assert_int_eq(use.peak[WEIGHTS], 6400);
    ck_assert_int_eq(use.peak[ACTIVATIONS], 1920);
    ck_assert_int_eq(use.peak[GRADIENTS], 0);
    ck_assert_int_eq(use.now[ACTIVATIONS], 0);
    ck_assert_int_eq(use.now[GRADIENTS], 1280);
    buffer_release(weights);
    buffer_release(gradients);
    pool_free(pool);
}
END_TEST

START_TEST(what_is_written_into_a_watched_buffers_fields_changes_no_count)
{
    Pool *pool = pool_new(0, true);
    Buffer *kept = pool_get(pool, 640, ACTIVATIONS), *forged = pool_get(pool, 640, ACTIVATIONS);
    const void *data = forged->data;
    *forged = (Buffer){.bytes = 64000, .category = WEIGHTS, .references = 1};
    buffer_release(forged);
    ck_assert_int_eq(memory_use().now[ACTIVATIONS], 640);
    ck_assert_int_eq(memory_use().total, 640);
    Buffer *again = pool_get(pool, 640, ACTIVATIONS);
    ck_assert_ptr_eq(again->data, data);
    buffer_release(again);
    buffer_release(kept);
    ck_assert_int_eq(memory_use().total, 0);
    pool_free(pool);
}
END_TEST

START_TEST(the_limit_is_enforced_and_the_error_lists_what_is_held)
{
    Pool *pool = pool_new(10 * MB, false);
    Buffer *held[] = {pool_get(pool, 3 * MB, WEIGHTS), pool_get(pool, 2 * MB, GRADIENTS),
                      pool_get(pool, 1 * MB, OPTIMISER), pool_get(pool, 1 * MB, ACTIVATIONS)};
    ASSERT_MISUSE(pool_get(pool, 4 * MB, ACTIVATIONS), "10 MB that MEM allows", "4 MB more",
                  "weights 3 MB", "gradients 2 MB", "optimiser state 1 MB", "activations 1 MB");
    for (int i = 0; i < 4; i++)
        buffer_release(held[i]);
    pool_free(pool);
}
END_TEST

START_TEST(a_limit_below_a_megabyte_is_not_shown_as_none)
{
    Pool *pool = pool_new(10000, false);
    ASSERT_MISUSE(pool_get(pool, 4 * MB, ACTIVATIONS), "the 0.010 MB that MEM allows");
    pool_free(pool);
}
END_TEST

START_TEST(a_graded_lab_gets_no_hint_for_a_run)
{
    Pool *pool = pool_new(10 * MB, true);
    ASSERT_MISUSE(pool_get(pool, 11 * MB, WEIGHTS), "the 10 MB that a case may take");
    pool_free(pool);
}
END_TEST

START_TEST(what_was_released_makes_room_below_the_limit)
{
    Pool *pool = pool_new(10 * MB, false);
    for (int64_t megabytes = 1; megabytes <= 9; megabytes++)
        buffer_release(pool_get(pool, megabytes * MB, ACTIVATIONS));
    ck_assert_int_eq(memory_use().peak_total, 9 * MB);
    pool_free(pool);
}
END_TEST

/* Each buffer takes more than half of the emulated GPU's memory. */
START_TEST(free_buffers_are_returned_before_memory_is_refused)
{
    Pool *pool = pool_new(0, false);
    buffer_release(pool_get(pool, 600 * MB, ACTIVATIONS));
    buffer_release(pool_get(pool, 700 * MB, ACTIVATIONS));
    ck_assert_int_eq(memory_use().peak_total, 700 * MB);
    pool_free(pool);
}
END_TEST

START_TEST(the_error_about_an_activation_has_its_shape)
{
    Pool *pool = pool_new(10 * MB, false);
    const Shape shape = {.rank = 2, .size = {1 << 10, 5 << 10}};
    ASSERT_MISUSE(pool_get_shaped(pool, 20 * MB, shape), "(activations: [1024,5120])");
    ck_assert(strstr(expectation.problem.hint, "BATCH_SIZE"));
    pool_free(pool);
}
END_TEST

START_TEST(more_memory_than_the_machine_has_is_refused)
{
    Pool *pool = pool_new(0, false);
    ASSERT_MISUSE(pool_get(pool, (int64_t)1 << 60, WEIGHTS), "do not fit in", "(weights)");
    pool_free(pool);
}
END_TEST

START_TEST(poison_fills_each_buffer_that_is_handed_out)
{
    Pool *pool = pool_new(0, true);
    for (int round = 0; round < 2; round++) {
        Buffer *buffer = pool_get(pool, 64, ACTIVATIONS);
        float *single = buffer->data;
        double *number = buffer->data;
        for (int i = 0; i < 16; i++) {
            ck_assert(isnan(single[i]) && isnan(number[i / 2]));
            single[i] = 1;
        }
        buffer_release(buffer);
    }
    pool_free(pool);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *suite = suite_create("pool");
    TCase *tcase = tcase_create("pool");
    tcase_add_test(tcase, a_released_buffer_is_handed_out_again);
    tcase_add_test(tcase, nothing_is_allocated_after_the_first_step);
    tcase_add_test(tcase, two_buffers_share_no_byte_and_are_aligned);
    tcase_add_test(tcase, a_write_beside_a_watched_buffer_is_detected);
    tcase_add_test(tcase, a_buffer_lives_until_its_last_holder_releases_it);
    tcase_add_test(tcase, the_peak_is_taken_at_the_highest_total);
    tcase_add_test(tcase, what_is_written_into_a_watched_buffers_fields_changes_no_count);
    tcase_add_test(tcase, the_limit_is_enforced_and_the_error_lists_what_is_held);
    tcase_add_test(tcase, a_limit_below_a_megabyte_is_not_shown_as_none);
    tcase_add_test(tcase, a_graded_lab_gets_no_hint_for_a_run);
    tcase_add_test(tcase, what_was_released_makes_room_below_the_limit);
    tcase_add_test(tcase, free_buffers_are_returned_before_memory_is_refused);
    tcase_add_test(tcase, the_error_about_an_activation_has_its_shape);
    tcase_add_test(tcase, more_memory_than_the_machine_has_is_refused);
    tcase_add_test(tcase, poison_fills_each_buffer_that_is_handed_out);
    suite_add_tcase(suite, tcase);
    return suite;
}
