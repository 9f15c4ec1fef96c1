/* The attention of lab 4, which the block of lab 7 calls, as a segment. It is in a file of its own
 * for the linker: programs without --wrap=attention_forward lack __real_attention_forward(). */
#include "model/transformer.h"

Tensor *__real_attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask,
                                 const Mesh *mesh);
Tensor *__wrap_attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask,
                                 const Mesh *mesh);

static Tensor *attend(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return __real_attention_forward(layer, x, mask, mesh);
}

Tensor *__wrap_attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask,
                                 const Mesh *mesh)
{
    return attention_segment(attend, layer, x, mask, mesh);
}
