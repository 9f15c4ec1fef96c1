/* Messages between two ranks, such as group_send(), and the slices that they carry. They are not on
 * the tape. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"
#include "comm/comm.h"

static const Placement unknown = {UNKNOWN, 0};

/* x and its slices always share memory: `reached` prevents any of them from moving to its own
 * buffer. */
Tensor *slice(Tensor *x, int64_t begin, int64_t end)
{
    must_not_be_ids("slice", x);
    Tape *tape = tape_of("slice", x, NULL);
    if (begin < 0 || begin > end || end > tensor_count(x))
        misuse("begin is the first number of the slice, and end is one past its last number; if "
               "they are those of a part, is its number from 0 to n - 1, and do the arguments come "
               "in the right order?",
               "slice: begin %lld and end %lld, but 0 <= begin <= end <= %lld must hold",
               (long long)begin, (long long)end, (long long)tensor_count(x));
    begin_change(x);
    x->may_be_shared = false;
    Tensor *y = tape_view(tape, x, unknown);
    y->data = begin < end ? reals(x) + begin : x->data; /* valid even for an empty slice */
    y->shape = SHAPE(end - begin);
    y->partial = x->partial;
    x->reached = y->reached = true;
    return y;
}

void accumulate(Tensor *sum, Tensor *x)
{
    must_not_be_ids("accumulate", sum);
    must_not_be_ids("accumulate", x);
    if (tensor_count(sum) != tensor_count(x))
        misuse("chunks of a tensor may have different sizes: add each chunk to the one with the "
               "same number",
               "accumulate: the sum is %s, but what is added is %s", SHAPE_TEXT(sum->shape),
               SHAPE_TEXT(x->shape));
    begin_change(sum);
    partial_sums_change(sum);
    ready(x);
    if (tensor_count(x) > 0)
        kernel_vector_accumulate(tensor_count(x), reals(x), reals(sum));
}

/* Checks the arguments of a message. Returns x's numbers, which are sent to rank `other` or
 * received from it. */
static real *exchanged(const char *function, const Group *group, Tensor *x, int other)
{
    group_must_exist(group, function);
    must_not_be_ids(function, x);
    if (other < 0 || other >= group_size(group))
        misuse(
            "ranks are numbered from 0 within a group (group_rank), not in the world; in a ring, rank 0 "
            "follows the last one",
            "%s: there is no rank %d in a group of %d", function, other, group_size(group));
    if (other == group_rank(group))
        misuse("count the ranks within the group (group_rank), not in the world; a ring of n ranks "
               "takes n - 1 rounds, so one rank sends nothing",
               "%s: rank %d cannot exchange with itself", function, other);
    tape_of(function, x, NULL)->exchanges++;
    return reals(ready(x));
}

void group_send(Group *group, Tensor *x, int to)
{
    comm_send(group, exchanged("group_send", group, x, to), tensor_count(x), to);
}

/* The handle is a view of x, so the lab may still read x, and send it to another rank too. */
Pending *group_send_start(Group *group, Tensor *x, int to)
{
    const real *numbers = exchanged("group_send_start", group, x, to);
    Tensor *sent = tape_view(tape_of("group_send_start", x, NULL), x, unknown);
    sent->sum = comm_send_start(group, numbers, tensor_count(x), to);
    void *here = callsite();
    sent->summing = here ? here : sent; /* sent means that no line is known */
    return (Pending *)sent;
}

void group_receive(Group *group, Tensor *x, int from)
{
    exchanged("group_receive", group, x, from);
    begin_change(x);
    partial_sums_change(x);
    comm_receive(group, reals(x), tensor_count(x), from);
}
