/* Were the ranks' contributions combined by an operation other than the sum of floats? */
#include <math.h>

#include "grader/judge/diagnose/contributions.h"

static double product(double a, double b)
{
    return a * b;
}

static bool folded_by(const Evidence *e, const Brought *b, double (*operation)(double, double),
                      double factor)
{
    for (int64_t i = 0; i < e->count; i++) {
        double y = 0;
        bool begun = false;
        for (int r = 0; r < b->ranks; r++)
            if (b->member[r]) {
                y = begun ? operation(y, b->numbers[r][i]) : b->numbers[r][i];
                begun = true;
            }
        if (!(fabs(e->is[i] - factor * y) <= e->tolerance))
            return false;
    }
    return true;
}

static bool another_operation(const Evidence *e, const Brought *b)
{
    static const struct {
        double (*operation)(double, double);
        const char *name;
    } operations[] = {
        {fmax, N_("the largest")}, {fmin, N_("the smallest")}, {product, N_("the product")}};
    const int own = e->trial->rank;
    const double share = b->weight[own];
    if (b->numbers[own] && (close_to(e->is, b->numbers[own], 1, e->count, e->tolerance) ||
                            close_to(e->is, b->numbers[own], share, e->count, e->tolerance)))
        return false; /* a few of them may be the largest by chance */
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (folded_by(e, b, operations[i].operation, 1) ||
            folded_by(e, b, operations[i].operation, share))
            return says(e, _("it is %s of the ranks' numbers instead of %s"), _(operations[i].name),
                        share == 1 ? _("their sum") : _("their mean"));
    return false;
}

/* Were doubles added as if they were floats, half by half? An exchange of `count` floats covers
 * only the first half of the doubles. */
static bool doubles_added_as_halves(const Evidence *e, const Brought *b)
{
    int64_t explained = 0;
    for (int64_t i = 0; i < e->count / 2; i++) {
        float sum[2] = {0}, halves[2];
        bool begun = false;
        double all;
        for (int r = 0; r < b->ranks; r++)
            if (b->member[r]) {
                memcpy(halves, &b->numbers[r][i], sizeof halves);
                sum[0] = begun ? sum[0] + halves[0] : halves[0];
                sum[1] = begun ? sum[1] + halves[1] : halves[1];
                begun = true;
            }
        memcpy(&all, sum, sizeof all);
        if (!(fabs(all - e->is[i]) <= 1e-5 * fabs(all)))
            return false;
        explained += !is_right(e, i);
    }
    return explained >= 2 && says(e, _("doubles were added as if each were two floats: pass "
                                       "MPI_DOUBLE for them, or add floats"));
}

bool combined_otherwise(const Evidence *e, const Brought *b)
{
    return another_operation(e, b) || doubles_added_as_halves(e, b);
}
