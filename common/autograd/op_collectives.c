/* Collectives on tensors, such as group_all_reduce(). They are not on the tape. */
#include <stdlib.h>

#include "autograd/parts.h"
#include "autograd/placement.h"
#include "base/run.h"
#include "comm/comm.h"

static const Placement unknown = {UNKNOWN, 0};

/* For a group of one rank, returns the numbers of x in a new tensor, which shares x's buffer until
 * either is written. Returns NULL if the caller must make the result itself: in a larger group, if
 * x is in the memory of weights or gradients, from which it must not move, or if x's memory was
 * reached through tensor_data() or slice(). */
static Tensor *as_it_is(const Group *group, Tape *tape, Tensor *x)
{
    if (group_size(group) > 1 || available(x)->reached || x->buffer->category != ACTIVATIONS)
        return NULL;
    Tensor *y = tape_view(tape, x, unknown);
    x->may_be_shared = y->may_be_shared = true;
    return y;
}

/* Checks the arguments of a collective. Returns its tape. */
static Tape *tape_for(const char *function, const Group *group, const Tensor *x)
{
    group_must_exist(group, function);
    must_not_be_ids(function, x);
    Tape *tape = tape_of(function, x, NULL);
    tape->exchanges++;
    return tape;
}

/* Do the numbers of x travel in 16 bits? Each rank's part, or each row of it, has `each`. */
static bool travels_in_16_bits(const Group *group, Tensor *x, int64_t each)
{
    return group_size(group) > 1 && available(x)->dtype == HALF && each % HALVES == 0;
}

/* A tensor of 16 bits for a result, or for the ranks' terms. */
static Tensor *narrow_tensor(Tape *tape, Shape shape)
{
    return tape_tensor(tape, HALF, shape, unknown);
}

static Tensor *all_reduced(const char *function, Group *group, Tensor *x,
                           void (*reduce)(Group *, const real *, real *, int64_t))
{
    Tape *tape = tape_for(function, group, x);
    Tensor *y = as_it_is(group, tape, x);
    if (y)
        return y;
    const int64_t count = tensor_count(x), n = group_size(group);
    if (reduce == comm_all_reduce && count % n == 0 && travels_in_16_bits(group, x, count / n)) {
        Tensor *room = narrow_tensor(tape, x->shape);
        y = narrow_tensor(tape, x->shape);
        comm_all_reduce_halves(group, halves(x), halves(y), count, halves(room));
        tape_release_value(room);
        return y;
    }
    y = tape_tensor(tape, REAL, x->shape, unknown);
    reduce(group, reals(ready(x)), reals(y), count);
    return y;
}

Tensor *group_all_reduce(Group *group, Tensor *x)
{
    return all_reduced("group_all_reduce", group, x, comm_all_reduce);
}

Tensor *group_all_max(Group *group, Tensor *x)
{
    return all_reduced("group_all_max", group, x, comm_all_max);
}

Tensor *group_all_gather(Group *group, Tensor *x, int dim)
{
    Tape *tape = tape_for("group_all_gather", group, x);
    dim = shape_dim("group_all_gather", x->shape, dim);
    int64_t rows = rows_before(x->shape, dim), size = x->shape.size[dim];
    Tensor *all = as_it_is(group, tape, x);
    if (all)
        return all;
    const int64_t columns = rows ? tensor_count(x) / rows : 0;
    const Shape shape = shape_with(x->shape, dim, size * group_size(group));
    if (travels_in_16_bits(group, x, columns)) {
        all = narrow_tensor(tape, shape);
        comm_all_gather(group, (const real *)halves(x), (real *)halves(all), rows,
                        columns / HALVES);
        return all;
    }
    all = tape_tensor(tape, REAL, shape, unknown);
    comm_all_gather(group, reals(ready(x)), reals(all), rows, columns);
    return all;
}

Tensor *group_reduce_scatter(Group *group, Tensor *x, int dim)
{
    Tape *tape = tape_for("group_reduce_scatter", group, x);
    dim = shape_dim("group_reduce_scatter", x->shape, dim);
    must_divide("group_reduce_scatter", x, dim, group_size(group));
    int64_t rows = rows_before(x->shape, dim), size = x->shape.size[dim] / group_size(group);
    Tensor *mine = as_it_is(group, tape, x);
    if (mine)
        return mine;
    const Shape shape = shape_with(x->shape, dim, size);
    const int64_t columns = rows ? tensor_count(x) / rows / group_size(group) : 0;
    if (travels_in_16_bits(group, x, columns)) {
        Tensor *room = narrow_tensor(tape, x->shape);
        mine = narrow_tensor(tape, shape);
        comm_reduce_scatter_halves(group, halves(x), halves(mine), rows, columns, halves(room));
        tape_release_value(room);
        return mine;
    }
    mine = tape_tensor(tape, REAL, shape, unknown);
    comm_reduce_scatter(group, reals(ready(x)), reals(mine), rows, columns);
    return mine;
}

/* Where each part begins and, last, where the last one ends. Ends the run unless the parts follow
 * each other and cover all `count` numbers. Asks for each part once, because a lab's function may
 * return another part the next time. The caller frees the list. */
static int64_t *begins_of_parts(const char *function, int64_t count, int n, Partition *cut)
{
    if (!cut)
        misuse("pass chunk, or a function of your own",
               "%s: the function that says where the parts are is NULL", function);
    int64_t *begins = calloc((size_t)n + 1, sizeof *begins);
    for (int k = 0; k < n; k++) {
        const int64_t end = begins[k];
        const Range r = cut(count, k, n);
        if (r.begin != end || r.end < r.begin || r.end > count || (k == n - 1 && r.end != count)) {
            free(begins);
            misuse("parts follow each other; the first begins at 0, and the last ends at count",
                   "%s: part %lld (of %d) of %lld numbers runs from %lld to %lld, but the parts "
                   "before it end at %lld",
                   function, (long long)k, n, (long long)count, (long long)r.begin,
                   (long long)r.end, (long long)end);
        }
        begins[k + 1] = r.end;
    }
    return begins;
}

/* A lab adds x's numbers over the ranks of this group: see Tensor.partial. If parts of x may have been
 * added one by one, a second sum may be right. */
static void partial_sums_added(const char *function, const Tensor *x, const Group *group)
{
    const Mesh *mesh = x->tape->mesh;
    const unsigned axis = group == mesh->tp ? OVER_TP : group == mesh->dp ? OVER_DP : 0;
    if (!x->partial)
        return;
    if (axis && !(*x->partial & axis) && !x->reached && group_size(group) > 1)
        misplaced_with(
            HARMS_GRADIENTS,
            N_("is it the right group, and does nothing else add the same numbers?"),
            "%s: these numbers are no partial sum over mesh->%s, so the sum would count them once "
            "per rank",
            function, axis_name(axis));
    *x->partial &= axis || group == mesh->pp ? ~axis : 0; /* another group is the lab's own */
}

static void exchange_parts(const char *function, Group *group, Tensor *x, Partition *cut,
                           void (*exchange)(Group *, real *, const int64_t *))
{
    tape_for(function, group, x);
    begin_change(x);
    if (exchange == comm_reduce_scatter_parts)
        partial_sums_added(function, x, group);
    else
        partial_sums_change(x);
    int64_t *begins = begins_of_parts(function, tensor_count(x), group_size(group), cut);
    exchange(group, reals(x), begins);
    free(begins);
}

void group_reduce_scatter_parts(Group *group, Tensor *x, Partition *cut)
{
    exchange_parts("group_reduce_scatter_parts", group, x, cut, comm_reduce_scatter_parts);
}

void group_all_gather_parts(Group *group, Tensor *x, Partition *cut)
{
    exchange_parts("group_all_gather_parts", group, x, cut, comm_all_gather_parts);
}

Tensor *group_broadcast(Group *group, Tensor *x, int root)
{
    Tape *tape = tape_for("group_broadcast", group, x);
    if (root < 0 || root >= group_size(group))
        misuse("ranks are numbered from 0 within a group",
               "group_broadcast: there is no rank %d in a group of %d", root, group_size(group));
    Tensor *y = tape_tensor(tape, REAL, x->shape, unknown);
    partial_sums_change(x); /* if one rank has all terms, its numbers are the sum */
    kernel_vector_copy(tensor_count(x), reals(ready(x)), reals(y));
    comm_broadcast(group, reals(y), tensor_count(x), root);
    return y;
}

/* The function of a lab that sums by messages: see group_sum_by(). */
static struct {
    Group *group;
    void (*sum)(Group *group, Tensor *x);
} by_lab;

void group_sum_by(Group *group, void (*sum)(Group *group, Tensor *x))
{
    by_lab.group = group;
    by_lab.sum = sum;
}

static void sum_by_lab(Group *group, Tensor *x)
{
    const TapeMark mark = tape_mark(tape_of("group_all_reduce_start", x, NULL));
    by_lab.sum(group, x);
    tape_release_since(x->tape, mark, NULL);
}

/* The handle is the tensor itself, since a tensor has at most one sum in progress. */
Pending *group_all_reduce_start(Group *group, Tensor *x)
{
    tape_for("group_all_reduce_start", group, x);
    begin_change(x);
    partial_sums_added("group_all_reduce_start", x, group);
    const bool is_by_lab = by_lab.sum && group == by_lab.group;
    if (is_by_lab)
        sum_by_lab(group, x);
    x->sum = is_by_lab ? NULL : comm_all_reduce_start(group, reals(x), tensor_count(x));
    void *here = callsite();
    x->summing = here ? here : x; /* x means that no line is known */
    return (Pending *)x;
}

void pending_wait(Pending *pending)
{
    Tensor *x = (Tensor *)pending;
    if (!x)
        misuse(
            "bucket_ready must store what group_all_reduce_start returned, and nothing may clear "
            "it before this wait; from lab 14 on, bucket_filled calls bucket_ready in the last "
            "backward pass of a step",
            "pending_wait: there is nothing to wait for");
    if (!x->summing)
        misuse("each start needs exactly one wait, for what that start returned",
               "pending_wait: this exchange has already been waited for");
    if (x->sum) /* NULL for a lab's own sum, which is complete once started */
        comm_wait(x->sum);
    x->summing = NULL;
}
