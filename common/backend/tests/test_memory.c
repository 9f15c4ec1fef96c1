/* Memory of tensors, and host views of it. */
#include "backend/host_view.h"
#include "backend/tests/comparison.h"

enum { COUNT = 1000 };
static const int64_t BYTES = COUNT * sizeof(float);
static const MemoryKind KINDS[] = {DEVICE_MEMORY, HOST_MEMORY};

START_TEST(the_host_reads_what_kernels_wrote)
{
    float *x = backend_memory(BYTES, KINDS[_i]), host[COUNT];
    kernel_vector_fill(COUNT, 7, x);
    backend_read(host, x, BYTES);
    for (int i = 0; i < COUNT; i++)
        ck_assert(host[i] == 7);
    backend_memory_free(x, KINDS[_i]);
}
END_TEST

START_TEST(kernels_read_what_the_host_wrote)
{
    float *x = backend_memory(BYTES, KINDS[_i]), host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)i;
    backend_write(x, host, BYTES);
    memset(host, 0, sizeof host); /* the host's memory is its own again */
    kernel_vector_scale(COUNT, 2, x);
    backend_read(host, x, BYTES);
    for (int i = 0; i < COUNT; i++)
        ck_assert(host[i] == 2 * (float)i);
    backend_memory_free(x, KINDS[_i]);
}
END_TEST

START_TEST(bytes_are_set_in_the_order_of_the_kernels)
{
    float *x = backend_memory(BYTES, KINDS[_i]), host[COUNT];
    kernel_vector_fill(COUNT, 7, x);
    backend_set_bytes(x, 0, BYTES / 2);
    kernel_vector_fill(COUNT / 4, 5, x);
    backend_read(host, x, BYTES);
    ck_assert(host[0] == 5 && host[COUNT / 4] == 0 && host[COUNT / 2] == 7);
    backend_memory_free(x, KINDS[_i]);
}
END_TEST

START_TEST(kernels_and_host_share_the_contents_of_a_view)
{
    float *x = backend_memory(BYTES, KINDS[_i]);
    kernel_vector_fill(COUNT, 3, x);
    HostView view = host_view_read(x, COUNT);
    for (int i = 0; i < COUNT; i++)
        ck_assert(view.numbers[i] == 3);
    view.numbers[1] = 4;
    host_view_store(&view);
    kernel_vector_scale(COUNT, 10, x);
    view = host_view_read(x, COUNT);
    ck_assert(view.numbers[0] == 30 && view.numbers[1] == 40);
    host_view_end(&view);
    view = host_view_write(x, COUNT);
    for (int i = 0; i < COUNT; i++)
        view.numbers[i] = -1;
    host_view_store(&view);
    kernel_vector_accumulate(COUNT, x, x);
    view = host_view_read(x, COUNT);
    ck_assert(view.numbers[0] == -2 && view.numbers[COUNT - 1] == -2);
    host_view_end(&view);
    backend_memory_free(x, KINDS[_i]);
}
END_TEST

START_TEST(the_host_reaches_its_own_memory_in_place)
{
    float *x = backend_memory(BYTES, HOST_MEMORY);
    ck_assert_ptr_eq(backend_on_host(x), x);
    const HostView view = host_view_read(x, COUNT);
    ck_assert_ptr_eq(view.numbers, x);
    host_view_end(&view);
    backend_memory_free(x, HOST_MEMORY);
}
END_TEST

START_TEST(allocating_more_memory_than_exists_returns_null)
{
    ck_assert_ptr_null(backend_memory(INT64_C(1) << 50, KINDS[_i]));
    float *x = backend_memory(BYTES, KINDS[_i]);
    ck_assert_ptr_nonnull(x);
    backend_memory_free(x, KINDS[_i]);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("memory");
    TCase *tests = tcase_create("memory");
    tcase_add_loop_test(tests, the_host_reads_what_kernels_wrote, 0, 2);
    tcase_add_loop_test(tests, kernels_read_what_the_host_wrote, 0, 2);
    tcase_add_loop_test(tests, bytes_are_set_in_the_order_of_the_kernels, 0, 2);
    tcase_add_loop_test(tests, kernels_and_host_share_the_contents_of_a_view, 0, 2);
    tcase_add_test(tests, the_host_reaches_its_own_memory_in_place);
    tcase_add_loop_test(tests, allocating_more_memory_than_exists_returns_null, 0, 2);
    suite_add_tcase(s, tests);
    return s;
}
