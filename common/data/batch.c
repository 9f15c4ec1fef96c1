/* Batches of rows. */
#include "data/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/ids.h"
#include "base/run.h"

Batch *batch_new(int64_t capacity, int64_t seq)
{
    assert(capacity >= 1 && seq >= SEQ_MIN);
    Batch *batch = allocate(sizeof *batch);
    size_t rows = (size_t)capacity, cells = rows * (size_t)seq;
    *batch = (Batch){
        .capacity = capacity,
        .seq = seq,
        .ids = allocate(cells * sizeof *batch->ids),
        .mask = allocate(cells * sizeof *batch->mask),
        .targets = allocate(cells * sizeof *batch->targets),
        .labels = allocate(rows * sizeof *batch->labels),
        .samples = allocate(rows * sizeof *batch->samples),
    };
    return batch;
}

void batch_free(Batch *batch)
{
    if (!batch)
        return;
    free(batch->ids);
    free(batch->mask);
    free(batch->targets);
    free(batch->labels);
    free(batch->samples);
    free(batch);
}

/* A review or a document, padded or cut. */
static void fill_row(const TokenSet *set, int64_t row, int64_t b, Batch *batch)
{
    const int64_t seq = batch->seq, first = b * seq, size = set->begin[row + 1] - set->begin[row],
                  length = size < seq ? size : seq;
    const int32_t *tokens = set->ids + set->begin[row];
    for (int64_t s = 0; s < seq; s++) {
        batch->ids[first + s] = s < length ? tokens[s] : set->pad;
        batch->mask[first + s] = s < length;
        batch->targets[first + s] = s + 1 < length ? tokens[s + 1] : NO_ID;
    }
    if (size > seq && set->special[MASK_TOKEN] >= 0)
        batch->ids[first + seq - 1] = set->special[END_TOKEN];
    if (set->labels)
        batch->labels[b] = set->labels[row];
}

static void fill_window(const TokenSet *set, int64_t row, int64_t b, Batch *batch)
{
    const int32_t *window = set->ids + row * set->seq;
    const size_t size = (size_t)batch->seq * sizeof *window;
    memcpy(batch->ids + b * batch->seq, window, size);
    memcpy(batch->targets + b * batch->seq, window + 1, size);
    for (int64_t s = 0; s < batch->seq; s++)
        batch->mask[b * batch->seq + s] = 1;
}

void batch_fill(const TokenSet *set, const int64_t *rows, int64_t count, Batch *batch)
{
    assert(count >= 0 && count <= batch->capacity && set->seq == batch->seq);
    batch->count = count;
    for (int64_t b = 0; b < count; b++) {
        int64_t row = rows[b];
        if (row < 0 || row >= set->rows)
            misuse("sampler_set_epoch (lab 11) must return the number of rows in `mine`, all of "
                   "them rows of the data",
                   "a batch uses row %lld, but the data has rows 0 to %lld", (long long)row,
                   (long long)set->rows - 1);
        (set->begin ? fill_row : fill_window)(set, row, b, batch);
        batch->samples[b] = row;
    }
}
