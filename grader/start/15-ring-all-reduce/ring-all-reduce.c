/* Lab 15: an all-reduce from messages to neighbours, around a ring. */
#include "balise.h"

Range ring_chunk(int64_t count, int k, int n)
{
    TODO(15); /* where chunk k begins and ends, for any count and n */
}

void ring_reduce_scatter(Group *group, Tensor *x)
{
    TODO(15); /* n - 1 rounds: send a chunk to the right, add the one that comes from the left */
}

void ring_all_gather(Group *group, Tensor *x)
{
    TODO(15); /* n - 1 rounds: pass the finished chunks on */
}
