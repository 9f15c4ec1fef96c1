/* Compares a rank's numbers with the expected ones. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"

/* The limit on searches for the cause of a check's failure in one case: they take time, and the
 * report shows only the first explanation. */
enum { EXPLANATIONS = 6 };

static const double orders = 8;
static const double unit = 0x1p-24; /* half a unit in the last place of 1 in single precision */

/* 8 times the sum of two errors: the largest error of the emulated runs in single precision, with
 * reordered sums, and two roundings of the largest number (an operand's and the result's). The
 * roundings allow for ranks that all hold the same number: their mean is right, but not to the last
 * bit. Solutions stay below a third of the tolerance (grader/tests/margins.sh); wrong answers
 * exceed ten times the tolerance. */
double tolerance_of(const Expected *expected, const Entry *exact)
{
    double largest = 0, spread = expected_spread(expected, exact);
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < exact->count; i++) {
        double size = fabs(numbers_of(exact)[i]);
        largest = size > largest && size < INFINITY ? size : largest;
    }
    if (exact->check == METRICS) /* kept in double precision */
        return orders * (spread + 2 * 0x1p-53 * largest);
    return fmax(FLT_MIN, orders * (spread + 2 * unit * largest)); /* smaller ones lose digits */
}

int digits_shown(const Entry *exact)
{
    enum { OF_FLOAT = 7, OF_DOUBLE = 15 };
    return exact->check == METRICS ? OF_DOUBLE : OF_FLOAT;
}

int64_t global_index(const Entry *got, int64_t local)
{
    if (got->placement_kind != SHARD)
        return local;
    int64_t inner = 1, held = got->end - got->begin;
    for (int i = got->placement_dim + 1; i < got->shape.rank; i++)
        inner *= got->shape.size[i];
    int64_t outer = local / inner / held;
    return (outer * got->shape.size[got->placement_dim] + got->begin + local / inner % held) *
               inner +
           local % inner;
}

const char *address_text(const Entry *got, int64_t local, char text[96])
{
    int64_t at = global_index(got, local), index[4] = {0};
    for (int i = got->shape.rank - 1; i >= 0; i--) {
        index[i] = at % got->shape.size[i];
        at /= got->shape.size[i];
    }
    int length = snprintf(text, 96, "[%lld", (long long)index[0]);
    for (int i = 1; i < got->shape.rank; i++)
        length += snprintf(text + length, 96 - (size_t)length, ", %lld", (long long)index[i]);
    snprintf(text + length, 96 - (size_t)length, "]");
    return text;
}

int64_t count_held(const Entry *e)
{
    if (e->placement_kind != SHARD)
        return shape_count(e->shape);
    if (e->placement_dim < 0 || e->placement_dim >= e->shape.rank || e->begin < 0 ||
        e->end < e->begin || e->end > e->shape.size[e->placement_dim])
        return -1;
    return shape_count(e->shape) / e->shape.size[e->placement_dim] * (e->end - e->begin);
}

/* The number with two digits; 120 instead of 1.2e+02. */
static const char *two_digits(double number, char text[24])
{
    snprintf(text, 24, "%.2g", number);
    if (number >= 99.5 && number < 1e6)
        snprintf(text, 24, "%.0f", strtod(text, NULL));
    return text;
}

/* "{0 2}" */
static void write_ranks(const Entry *entry, char *text, size_t size)
{
    strcpy(text, "{");
    for (int64_t i = 0; i < entry->count; i++)
        append(text, size, "%s%.0f", i ? " " : "", numbers_of(entry)[i]);
    append(text, size, "}");
}

/* Writes "mesh->tp of rank 3 is the group {1 3}, but should be {2 3} (4 ranks, tp=2)". */
static void tell_group(const Trial *t, const Entry *got, const Entry *want, char *text, size_t size)
{
    char is[64], right[64];
    const char *group = group_names[want->label.index];
    if (want->label.what == MEMBERS_OF) {
        write_ranks(got, is, sizeof is);
        write_ranks(want, right, sizeof right);
        snprintf(text, size, _("mesh->%s of rank %d is the group %s, but should be %s (%s)"), group,
                 t->rank, is, right, t->sizes);
        return;
    }
    snprintf(text, size, _("mesh->%s_%s of rank %d is %.0f, but should be %.0f (%s)"), group,
             want->label.what == RANK_IN ? "rank" : "degree", t->rank, numbers_of(got)[0],
             numbers_of(want)[0], t->sizes);
}

/* The last line of a report: the wrong group, shape or worst number. */
static void tell_difference(const Trial *t, const Entry *got, const Entry *want, double tolerance,
                            int64_t worst, char text[480])
{
    char a[64], b[64], at[96], error[24];
    const int digits = digits_shown(want);
    if (want->check == GROUPS && got->count > 0)
        tell_group(t, got, want, text, 480);
    else if (!has_numbers(got, want))
        snprintf(text, 480, _("%s on rank %d (%s): the shape is %s, expected %s"), entry_text(want),
                 t->rank, t->sizes,
                 got->count ? shape_text(got->shape, a) : _("missing (there is no such tensor)"),
                 shape_text(want->shape, b));
    else
        snprintf(
            text, 480,
            _("%s on rank %d (%s): element %s is %.*g, expected %.*g (error %s, allowed %.2g)"),
            entry_text(want), t->rank, t->sizes, address_text(got, worst, at), digits,
            numbers_of(got)[worst], digits, numbers_of(want)[global_index(got, worst)],
            two_digits(fabs(numbers_of(got)[worst] - numbers_of(want)[global_index(got, worst)]),
                       error),
            tolerance);
}

/* Weights that were wrong a step earlier are wrong again, so only the first ones show why. */
static bool was_wrong_a_step_ago(const Trial *t, const Entry *want)
{
    Label before = want->label;
    before.step--;
    const Entry *then = before.of == THE_WEIGHTS || before.of == OF_SHARDS
                            ? find_entry(t->expected.all, VALUES, before)
                            : NULL;
    return then && !is_right_on_rank(t, then);
}

/* Looks for the cause, unless this check already has one. */
static void fail_values(Trial *t, const Entry *got, const Entry *want, double tolerance,
                        int64_t worst)
{
    CheckResult *r = &t->result->check[want->check];
    char why[2048], where[480];
    snprintf(why, sizeof why, _("the values do not match"));
    if (r->searched_case != t->index)
        r->explanations = 0;
    r->searched_case = t->index;
    bool sure = !(r->failed && (t->with_nan || (r->explained && !r->with_nan))) &&
                !was_wrong_a_step_ago(t, want) &&
                explain(t, r->explanations++ < EXPLANATIONS, why, sizeof why, got, want, tolerance);
    tell_difference(t, got, want, tolerance, worst, where);
    fail(t, (Check)want->check, sure ? t->explained_as : UNEXPLAINED, "%s\n%s", why, where);
}

/* Records the largest error relative to the tolerance. Solutions stay well below 1; wrong answers
 * are well above 1. */
static void note_margin(Trial *t, const Entry *want, double error, double tolerance)
{
    double *margin = &t->result->check[want->check].margin;
    double ratio = error == 0 ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
    if (!(ratio <= *margin))
        *margin = ratio;
}

bool has_numbers(const Entry *got, const Entry *want)
{
    return shape_equal(got->shape, want->shape) && got->count == count_held(got);
}

/* The largest error, at element *worst. -1 if there are no numbers. */
double largest_error(const Entry *got, const Entry *want, int64_t *worst)
{
    double largest = -1;
    *worst = 0;
    for (int64_t i = 0; i < got->count; i++) {
        const double error =
            error_in(want, numbers_of(got)[i], numbers_of(want)[global_index(got, i)]);
        if (error > largest) {
            largest = error;
            *worst = i;
        }
    }
    return largest;
}

bool is_right_on_rank(const Trial *t, const Entry *want)
{
    int64_t worst;
    const Entry *got = entry_of_rank(t, t->rank, VALUES, want->label);
    return got && has_numbers(got, want) &&
           largest_error(got, want, &worst) <= tolerance_of(&t->expected, want);
}

void compare_values(Trial *t, const Entry *got, const Entry *want)
{
    int64_t worst = 0;
    double tolerance = 0, largest = INFINITY;
    if (has_numbers(got, want)) {
        tolerance = tolerance_of(&t->expected, want);
        largest = largest_error(got, want, &worst);
        note_margin(t, want, fmax(largest, 0), tolerance);
    }
    if (!(largest <= tolerance))
        fail_values(t, got, want, want->check == GROUPS ? 0 : tolerance, worst);
}
