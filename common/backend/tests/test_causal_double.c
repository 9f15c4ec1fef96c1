/* Causal attention of the reference backend: the future does not leak. */
#include "backend/tests/causal.h"

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("reference backend: causal attention");
    suite_add_tcase(s, causal_tests("reference", NULL, NULL));
    return s;
}
