/* Type signatures: equal for all names of the same basic type, and different for other types. */
#include "comm/tests/ranks.h"
#include "grader/runner/recorder.h"

Suite *suite(void);

static bool equal(Signature a, Signature b)
{
    return a.count == b.count && a.basic == b.basic;
}

START_TEST(a_signature_has_the_count_and_the_basic_type)
{
    Signature six = signature_of(6, MPI_FLOAT);
    ck_assert_int_eq(six.count, 6);
    ck_assert_int_eq(six.basic, BASIC(FLOATING, 4));
    ck_assert(!equal(six, signature_of(5, MPI_FLOAT)));
    ck_assert(!equal(six, signature_of(6, MPI_INT)));
    ck_assert(!equal(six, signature_of(3, MPI_DOUBLE)));
    ck_assert(!equal(signature_of(4, MPI_BYTE), signature_of(1, MPI_FLOAT)));
}
END_TEST

START_TEST(empty_messages_of_all_types_have_the_same_signature)
{
    ck_assert(equal(signature_of(0, MPI_FLOAT), signature_of(0, MPI_INT)));
    ck_assert_int_eq(signature_of(7, MPI_DATATYPE_NULL).count, 0);
    ck_assert_int_eq(signature_of(-3, MPI_FLOAT).count, 0);
}
END_TEST

START_TEST(two_names_of_one_type_have_the_same_signature)
{
    ck_assert(equal(signature_of(3, MPI_INT), signature_of(3, MPI_INT32_T)));
    ck_assert(equal(signature_of(3, MPI_LONG), signature_of(3, MPI_INT64_T)));
    ck_assert(!equal(signature_of(3, MPI_INT), signature_of(3, MPI_UNSIGNED)));
}
END_TEST

/* As the kit joins matrices along their columns (comm/mpi.c). */
START_TEST(columns_of_the_kit_have_the_signature_of_their_numbers)
{
    MPI_Datatype real_type = sizeof(real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT, row, matrix,
                 resized;
    MPI_Type_contiguous(3, real_type, &row);
    MPI_Type_create_hvector(4, 1, 100, row, &matrix);
    MPI_Type_create_resized(matrix, 0, 12, &resized);
    ck_assert(equal(signature_of(2, resized), signature_of(24, real_type)));
    MPI_Type_free(&row);
    MPI_Type_free(&matrix);
    MPI_Type_free(&resized);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("signature");
    TCase *tcase = tcase_create("signature");
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_test(tcase, a_signature_has_the_count_and_the_basic_type);
    tcase_add_test(tcase, empty_messages_of_all_types_have_the_same_signature);
    tcase_add_test(tcase, two_names_of_one_type_have_the_same_signature);
    tcase_add_test(tcase, columns_of_the_kit_have_the_signature_of_their_numbers);
    suite_add_tcase(all, tcase);
    return all;
}
