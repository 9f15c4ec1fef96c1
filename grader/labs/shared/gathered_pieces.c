/* Labs 1 and 9: whose pieces has a gather joined? */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/f_and_g.h"
#include "grader/labs/groups.h"

/* Is block `k` of a gathered tensor, along this dimension, equal to the piece? */
static bool is_block(const Evidence *e, int k, int dimension, const Tensor *piece)
{
    int64_t columns = 1, count = tensor_count(piece);
    for (int i = dimension; i < piece->shape.rank; i++)
        columns *= piece->shape.size[i];
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = (i / columns * e->c->tp + k) * columns + i % columns;
        if (!(fabs(e->is[at] - reals(piece)[i]) <= e->tolerance))
            return false;
    }
    return true;
}

/* The rank in the world that has block `k` as its piece, or -1. */
static int source_of_block(const Evidence *e, Scenario *run, int k)
{
    const Label *l = &e->want->label;
    const Shape shape = operation_shape(e->c, l->step);
    char key[KEY_SIZE];
    operation_key(key, "x", l->index, l->step);
    for (int rank = 0; rank < e->c->world; rank++)
        if (is_block(e, k, operation_dimension(l->index, l->step, shape),
                     random_input(run, key, rank, shape, false)))
            return rank;
    return -1;
}

static bool gathered_in_other_group(const Evidence *e)
{
    if (e->want->label.what != OUTPUT_OF ||
        !(is_operation(e->want, GATHER_LAST) || is_operation(e->want, GATHER_FIRST)))
        return false;
    const Members group = tp_group(e->c, e->trial->rank);
    Scenario run = scenario_alone(e->c, (Stream){0});
    int other = -1;
    for (int k = 0; k < e->c->tp && other < 0; k++) {
        const int rank = source_of_block(e, &run, k);
        if (rank >= 0 && tp_group(e->c, rank).first != group.first)
            other = rank;
    }
    scenario_close(&run);
    return other >= 0 &&
           says(e,
                _("it contains the piece of rank %d, which is in another group: gather over "
                  "mesh->tp"),
                other);
}

Finder *const operations_more_reasons[] = {gathered_in_other_group, NULL};
