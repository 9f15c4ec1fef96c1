/* Lab 15: an all-reduce from messages to neighbours, around a ring. */
#include "balise.h"

Range ring_chunk(int64_t count, int k, int n)
{
    return (Range){count * k / n, count * (k + 1) / n};
}

/* Chunk k, counted around the ring. */
static Tensor *chunk(Tensor *x, int k, int n)
{
    Range range = ring_chunk(tensor_count(x), (k + 2 * n) % n, n);
    return slice(x, range.begin, range.end);
}

/* Every rank sends to the right and receives from the left. */
static void shift(Group *group, Tensor *send, Tensor *receive)
{
    int n = group_size(group), k = group_rank(group);
    Pending *sent = group_send_start(group, send, (k + 1) % n);
    group_receive(group, receive, (k + n - 1) % n);
    pending_wait(sent);
}

void ring_reduce_scatter(Group *group, Tensor *x)
{
    int n = group_size(group), k = group_rank(group);
    for (int i = 1; i < n; i++) {
        Tensor *mine = chunk(x, k - i - 1, n), *from_left = tensor_copy(mine);
        shift(group, chunk(x, k - i, n), from_left);
        accumulate(mine, from_left);
    }
}

void ring_all_gather(Group *group, Tensor *x)
{
    int n = group_size(group), k = group_rank(group);
    for (int i = 0; i < n - 1; i++)
        shift(group, chunk(x, k - i, n), chunk(x, k - i - 1, n));
}
