/* Lab 19: a segment keeps its input only; the backward pass runs it again. */
#include "balise.h"

/* x [B,S,H] -> [B,S,H] */
Tensor *recompute_forward(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh)
{
    return segment_values(segment, x, draw, mesh);
}

/* The second run keeps what backward reads; its dropouts draw the masks of the first one. */
Tensor *recompute_backward(const Segment *segment, Tensor *x, Tensor *dy, int64_t draw, const Mesh *mesh)
{
    Tensor *again = leaf(x);
    segment_backward(segment_run(segment, again, draw, mesh), dy);
    return leaf_gradient(again);
}
