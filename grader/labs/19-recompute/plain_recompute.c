/* Lab 19 as the judge computes it, on one rank, and with the mistake of the current suspect. */
#include "grader/judge/compare/wrong_operations.h"
#include "grader/labs/mistakes.h"

Tensor *duplication(Tensor *x, const Mesh *mesh)
{
    return x;
}

Tensor *all_reduce(Tensor *x, const Mesh *mesh)
{
    return x;
}

/* The segment of the last call, kept for the mistake SEGMENT_OF_LAST_CALL. */
static const Segment *last;

Tensor *recompute_forward(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh)
{
    const Case *c;
    last = segment;
    return mistake_now(&c) == SEGMENT_NOT_RUN ? x : segment_values(segment, x, draw, mesh);
}

/* What the second run reads. */
static Tensor *read_again(const Segment *segment, Tensor *x, Tensor *dy, int64_t draw,
                          const Mesh *mesh)
{
    const Case *c;
    const int mistake = mistake_now(&c);
    return mistake == RUN_ON_GRADIENT ? dy
           : mistake == RUN_ON_RESULT ? segment_values(segment, x, draw, mesh)
                                      : x;
}

Tensor *recompute_backward(const Segment *segment, Tensor *x, Tensor *dy, int64_t draw,
                           const Mesh *mesh)
{
    const Case *c;
    const int mistake = mistake_now(&c);
    Tensor *again = leaf(read_again(segment, x, dy, draw, mesh));
    if (mistake == SEGMENT_OF_LAST_CALL)
        segment = last;
    Tensor *y = segment_run(segment, again, draw, mesh);
    if (mistake == RUN_ON_RUN)
        y = segment_run(segment, y, draw, mesh);
    segment_backward(y, mistake == BACKWARD_FROM_INPUT    ? x
                        : mistake == BACKWARD_FROM_RESULT ? y
                                                          : dy);
    return mistake == GRADIENT_OF_RESULT       ? dy
           : mistake == GRADIENT_IS_INPUT      ? again
           : mistake == GRADIENT_OF_RESULT_TOO ? add(dy, leaf_gradient(again))
                                               : leaf_gradient(again);
}
