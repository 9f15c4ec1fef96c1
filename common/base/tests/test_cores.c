/* The number of cores counts those to which the process is bound. */
#include <check.h>
#include <sched.h>
#include <stdbool.h>

#include "base/cores.h"

Suite *suite(void);

/* Binds this process to a core. Returns false if it may not use this core. */
static bool bind_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

START_TEST(unbound_it_is_the_number_of_the_affinity_mask)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    Cores cores = cores_usable();
    ck_assert_int_eq(cores_count(&cores), CPU_COUNT(&set));
}
END_TEST

START_TEST(bound_to_a_core_it_is_one)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    Cores all = {0};
    int bound = 0;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &set) || !bind_to(core))
            continue;
        Cores one = cores_usable();
        ck_assert_int_eq(cores_count(&one), 1);
        for (int i = 0; i < CORE_WORDS; i++)
            all.words[i] |= one.words[i];
        bound++;
    }
    ck_assert_int_gt(bound, 0);
    ck_assert_int_eq(cores_count(&all), bound);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("cores");
    TCase *cases = tcase_create("count");
    tcase_add_test(cases, unbound_it_is_the_number_of_the_affinity_mask);
    tcase_add_test(cases, bound_to_a_core_it_is_one);
    suite_add_tcase(suite, cases);
    return suite;
}
