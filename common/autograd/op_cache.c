/* The cache of keys and values of earlier positions, which outlives a pass. */
#include "autograd/operations.h"
#include "base/run.h"

Tensor *append_rows(const Tensor *cache, Tensor *x)
{
    must_not_be_ids("append_rows", x);
    Tape *tape = x->tape;
    const int64_t past = tape->batch.past, rows = x->shape.size[1], width = shape_last(x->shape);
    if (tape->recording)
        misuse("a cache is for inference: switch recording off, tape_record(tape, false)",
               "append_rows: the tape is recording");
    if (x->shape.rank != 3 || x->shape.size[0] != 1 || width != shape_last(cache->shape) ||
        past + rows > cache->shape.size[1])
        misuse("the cache has a row for each position of one text",
               "append_rows: x %s does not fit after %lld rows of %s", TENSOR_TEXT(x),
               (long long)past, SHAPE_TEXT(cache->shape));
    kernel_vector_copy(rows * width, reals(ready(x)), reals(cache) + past * width);
    Tensor *all = tape_view(tape, cache, x->placement);
    all->shape.size[1] = past + rows;
    return all;
}
