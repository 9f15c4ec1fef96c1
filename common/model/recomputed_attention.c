/* Recomputes the attention of each block in the backward pass. */
#include "autograd/operations.h"
#include "model/transformer.h"

Tensor *attention_segment(Tensor *(*run)(const void *layer, Tensor *x, Tensor *mask,
                                         const Mesh *mesh),
                          const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const Segment attention = {run, layer, mask};
    Tape *tape = x->tape;
    if (!tape || !tape->recomputes_attention)
        return run(layer, x, mask, mesh);
    tape->recomputes_attention = false; /* `run` may call attention_segment() again */
    Tensor *y = recompute(&attention, x, 0, mesh);
    tape->recomputes_attention = true;
    return y;
}
