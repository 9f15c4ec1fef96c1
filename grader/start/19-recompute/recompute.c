/* Lab 19: a segment keeps its input only; the backward pass runs it again. */
#include "balise.h"

/*  x [B,S,H] -> the segment's result [B,S,H]  */
Tensor *recompute_forward(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh)
{
    TODO(19); /* which run keeps nothing? */
}

/*  dy [B,S,H], the gradient of the result -> the gradient of x [B,S,H]  */
Tensor *recompute_backward(const Segment *segment, Tensor *x, Tensor *dy, int64_t draw, const Mesh *mesh)
{
    TODO(19); /* what does the backward pass of the segment need, and where does it end? */
}
