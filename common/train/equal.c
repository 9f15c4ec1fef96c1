#include "train/equal.h"

#include <xxhash.h>

#include "backend/host_view.h"
#include "comm/comm.h"

enum { PIECES = 3, BITS = 21 }; /* a checksum as doubles whose sums over the ranks are exact */

/* If x is not the same on all ranks, the sum is not size times x on one of them at least. */
static bool same_over(Group *group, uint64_t checksum)
{
    double sum[PIECES], mine[PIECES];
    bool same = true;
    for (int i = 0; i < PIECES; i++)
        sum[i] = mine[i] = (double)(checksum >> (i * BITS) & ((1u << BITS) - 1));
    group_sum(group, sum, PIECES);
    for (int i = 0; i < PIECES; i++)
        same = same && sum[i] == mine[i] * group_size(group);
    return same;
}

/* Continues a checksum over the parameter's numbers. */
static uint64_t add_to(uint64_t checksum, const Parameter *p)
{
    HostView view = host_view_read(reals(p->value), tensor_count(p->value));
    checksum = XXH3_64bits_withSeed(view.numbers, (size_t)view.count * sizeof(real), checksum);
    host_view_end(&view);
    return checksum;
}

/* Is the parameter (all of them where it is NULL) the same wherever it should be? */
static bool is_equal(Model *model, const Parameter *only)
{
    const Mesh *mesh = model_mesh(model);
    uint64_t all = 0, whole_ones = 0;
    for (const Parameter *p = model_parameters(model); p; p = p->next) {
        if (only && p != only)
            continue;
        all = add_to(all, p);
        if (p->placement.kind != SHARD)
            whole_ones = add_to(whole_ones, p);
    }
    double differs = !same_over(mesh->tp ? mesh->tp : mesh->world, whole_ones);
    if (mesh->dp)
        differs += !same_over(mesh->dp, all);
    group_sum(mesh->world, &differs, 1);
    return differs == 0;
}

bool weights_are_equal(Model *model, int64_t step, Problem *problem)
{
    if (is_equal(model, NULL))
        return true;
    const Parameter *p = model_parameters(model);
    while (p->next && is_equal(model, p))
        p = p->next;
    return problem_set(
        problem, NULL,
        "was its gradient summed over the ranks that hold it, in full, and before the step? make grade tells",
        "after step %lld parameter %s is not the same on ranks that should hold the same",
        (long long)step, p->name);
}
