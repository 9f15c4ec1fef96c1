/* part() and take(): one of several equal parts of a tensor, on the tape. */
#include "autograd/parts.h"
#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"

int64_t rows_before(Shape shape, int dim)
{
    int64_t rows = 1;
    for (int i = 0; i < dim; i++)
        rows *= shape.size[i];
    return rows;
}

/* Is n the number of all ranks, although only tp_degree of them split a model? */
static bool is_world(const Tensor *x, int64_t n)
{
    const Mesh *mesh = x->tape ? x->tape->mesh : NULL;
    return mesh && n != mesh->tp_degree &&
           n == (int64_t)mesh->tp_degree * mesh->dp_degree * mesh->pp_degree;
}

void must_divide(const char *function, const Tensor *x, int dim, int64_t n)
{
    if (n < 1 || x->shape.size[dim] % n)
        misuse(is_world(x, n)
                   ? N_("the world has that many ranks; mesh->tp_degree of them split this x")
                   : N_("the parts are equal: split a dimension whose size is a multiple of the "
                        "number of ranks (LAST is that of the features); if it may have any size, "
                        "do without equal parts"),
               "%s: dimension %d of %s cannot be split into %lld equal parts", function, dim,
               TENSOR_TEXT(x), (long long)n);
}

/* The gradient is zero outside the part. If x has a gradient already, adds to a copy of its part,
 * since no kernel adds to separate runs of numbers. */
static void part_gradient(Node *node, Tensor *dy)
{
    const PartOf *part = &node->with.part;
    bool accumulate;
    Tensor *dx = gradient_room(node->input[0], &accumulate), *sum = dy;
    if (!dx)
        return;
    real *room = reals(dx) + part->begin;
    if (accumulate) {
        sum = tape_tensor(dy->tape, REAL, dy->shape, dy->placement);
        kernel_copy_rows(part->rows, part->width, room, part->stride, reals(sum), part->width);
        kernel_vector_accumulate(tensor_count(dy), reals(dy), reals(sum));
    } else {
        kernel_vector_fill(tensor_count(dx), 0, reals(dx));
    }
    kernel_copy_rows(part->rows, part->width, reals(sum), part->width, room, part->stride);
}

/* Part k of n along `dim`, in a tensor of this shape. */
static Tensor *taken(const char *function, Tensor *x, int dim, int64_t k, int64_t n, Shape shape,
                     Placement placement)
{
    const int64_t rows = rows_before(x->shape, dim), stride = rows ? tensor_count(x) / rows : 0;
    const PartOf part = {rows, stride, stride / n * k, stride / n};
    Tensor *y = tape_tensor(x->tape, REAL, shape, placement);
    kernel_copy_rows(rows, part.width, reals(ready(x)) + part.begin, stride, reals(y), part.width);
    x->tape->next = (Attributes){{{N_("dimension"), .number = dim},
                                  {N_("index"), .number = (double)k},
                                  {N_("of"), .number = (double)n}}};
    Node *node = tape_operation(x->tape, function, part_gradient, y, 1, &x);
    if (node)
        node->with.part = part;
    return y;
}

Tensor *part(Tensor *x, int dim, int k, int n)
{
    must_not_be_ids("part", x);
    const Tape *tape = tape_of("part", x, NULL);
    dim = shape_dim("part", x->shape, dim);
    must_divide("part", x, dim, n);
    if (k < 0 || k >= n)
        misuse(k >= n ? N_("parts are numbered from 0: mesh->tp_rank is the number of this rank's "
                           "part; its rank in the world may be larger")
                      : N_("parts are numbered from 0"),
               "part: there is no part %d of %d", k, n);
    const Placement placement = tape->recording || !is_split(tape)
                                    ? place_result(tape, PLACE_PART, "part", x, NULL, dim)
                                    : (Placement){UNKNOWN, 0};
    return taken("part", x, dim, k, n, shape_with(x->shape, dim, x->shape.size[dim] / n),
                 placement);
}

Tensor *take(Tensor *x, int dim, int i)
{
    must_not_be_ids("take", x);
    const Tape *tape = tape_of("take", x, NULL);
    dim = shape_dim("take", x->shape, dim);
    if (i < 0 || i >= x->shape.size[dim])
        misuse("elements are numbered from 0", "take: dimension %d of %s has no element %d", dim,
               TENSOR_TEXT(x), i);
    const Placement placement = place_result(tape, PLACE_TAKE, "take", x, NULL, dim);
    Shape shape = x->shape;
    shape.rank--;
    for (int d = dim; d < shape.rank; d++)
        shape.size[d] = shape.size[d + 1];
    return taken("take", x, dim, i, x->shape.size[dim], shape, placement);
}
