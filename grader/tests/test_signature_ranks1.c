/* What a count of a type stands for: equal for every description of the same numbers, and of these alone. */
#include "comm/tests/ranks.h"
#include "grader/runner/record.h"

Suite *suite(void);

static bool equal(Signature a, Signature b)
{
    return a.count == b.count && a.hash == b.hash && a.basic == b.basic;
}

static Signature and_free(MPI_Datatype *type)
{
    Signature signature = signature_of(1, *type);
    MPI_Type_free(type);
    return signature;
}

START_TEST(a_count_of_a_basic_type_is_that_many_of_it)
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

START_TEST(nothing_is_nothing_of_any_type)
{
    ck_assert(equal(signature_of(0, MPI_FLOAT), signature_of(0, MPI_INT)));
    ck_assert_int_eq(signature_of(7, MPI_DATATYPE_NULL).count, 0);
    ck_assert_int_eq(signature_of(-3, MPI_FLOAT).count, 0);
}
END_TEST

START_TEST(two_names_of_one_thing_are_the_same)
{
    ck_assert(equal(signature_of(3, MPI_INT), signature_of(3, MPI_INT32_T)));
    ck_assert(equal(signature_of(3, MPI_LONG), signature_of(3, MPI_INT64_T)));
    ck_assert(!equal(signature_of(3, MPI_INT), signature_of(3, MPI_UNSIGNED)));
}
END_TEST

START_TEST(where_the_numbers_lie_does_not_matter)
{
    MPI_Datatype type, resized;
    Signature six = signature_of(6, MPI_FLOAT);
    MPI_Type_contiguous(6, MPI_FLOAT, &type);
    MPI_Type_create_resized(type, 0, 100, &resized);
    ck_assert(equal(and_free(&resized), six));
    ck_assert(equal(and_free(&type), six));
    MPI_Type_vector(2, 3, 10, MPI_FLOAT, &type);
    ck_assert(equal(and_free(&type), six));
    MPI_Type_create_hvector(3, 2, 100, MPI_FLOAT, &type);
    ck_assert(equal(and_free(&type), six));
    MPI_Type_indexed(3, (int[]){1, 3, 2}, (int[]){20, 0, 5}, MPI_FLOAT, &type);
    ck_assert(equal(and_free(&type), six));
    MPI_Type_create_indexed_block(2, 3, (int[]){9, 1}, MPI_FLOAT, &type);
    ck_assert(equal(and_free(&type), six));
    MPI_Type_create_subarray(2, (int[]){5, 7}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_C, MPI_FLOAT, &type);
    ck_assert(equal(and_free(&type), six));
}
END_TEST

START_TEST(types_of_types_are_taken_apart)
{
    MPI_Datatype row, matrix;
    MPI_Type_contiguous(3, MPI_DOUBLE, &row);
    MPI_Type_vector(4, 2, 5, row, &matrix);
    ck_assert(equal(signature_of(2, matrix), signature_of(48, MPI_DOUBLE)));
    MPI_Type_free(&matrix);
    MPI_Type_free(&row);
}
END_TEST

START_TEST(the_order_of_several_types_matters)
{
    MPI_Datatype one, other;
    MPI_Aint places[2] = {0, 8};
    MPI_Type_create_struct(2, (int[]){1, 2}, places, (MPI_Datatype[]){MPI_INT, MPI_FLOAT}, &one);
    MPI_Type_create_struct(2, (int[]){2, 1}, places, (MPI_Datatype[]){MPI_FLOAT, MPI_INT}, &other);
    Signature a = signature_of(1, one), b = signature_of(1, other);
    ck_assert_int_eq(a.count, 3);
    ck_assert_int_eq(a.basic, MIXED);
    ck_assert(!equal(a, b));
    ck_assert(equal(signature_of(3, one), signature_of(3, one)));
    ck_assert(!equal(signature_of(3, one), signature_of(3, other)));
    MPI_Type_free(&one);
    MPI_Type_free(&other);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("signature");
    TCase *tcase = tcase_create("signature");
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_test(tcase, a_count_of_a_basic_type_is_that_many_of_it);
    tcase_add_test(tcase, nothing_is_nothing_of_any_type);
    tcase_add_test(tcase, two_names_of_one_thing_are_the_same);
    tcase_add_test(tcase, where_the_numbers_lie_does_not_matter);
    tcase_add_test(tcase, types_of_types_are_taken_apart);
    tcase_add_test(tcase, the_order_of_several_types_matters);
    suite_add_tcase(all, tcase);
    return all;
}
