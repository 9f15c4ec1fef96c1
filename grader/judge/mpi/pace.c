/* What messages and collectives cost on a cluster. */
#include "grader/judge/mpi/schedule.h"

static int link_of(const Pace *pace, uint64_t members)
{
    const int node = pace->node > 0 && pace->node < MAX_RANKS ? pace->node : MAX_RANKS,
              first = members ? __builtin_ctzll(members) : 0;
    return members >> ((first / node + 1) * node) ? FAR : NEAR;
}

double message_takes(const Pace *pace, const Call *send, int from, int to)
{
    if (from == to)
        return 0;
    const int link = link_of(pace, (uint64_t)1 << from | (uint64_t)1 << to);
    return pace->latency[link] + pace->byte[link] * signature_bytes(&send->sent[0]);
}

bool are_replicas(uint64_t members, int tp)
{
    int ranks = 0;
    for (int rank = 0, first = 0; tp > 0 && rank < MAX_RANKS; rank++) {
        if (!(members >> rank & 1))
            continue;
        first = ranks++ == 0 ? rank : first;
        if ((rank - first) % tp != 0)
            return false;
    }
    return ranks > 1;
}

double collective_takes(const Pace *pace, const Call *call)
{
    const int n = __builtin_popcountll(call->members), link = link_of(pace, call->members);
    double bytes = 0, trips = 0;
    if (n < 2)
        return 0;
    for (int rank = 0; rank < MAX_RANKS; rank++)
        bytes += signature_bytes(&call->sent[rank]);
    if (call->rule != REDUCTION)
        return (n - 1) * pace->latency[link] + pace->byte[link] * bytes;
    if (are_replicas(call->members, pace->tp))
        bytes *= pace->over_replicas;
    for (int reached = 1; reached < n; reached *= 2)
        trips += 2;
    const double ring = 2 * (n - 1) * (pace->latency[link] + pace->byte[link] * bytes / n),
                 tree = trips * (pace->latency[link] + pace->byte[link] * bytes);
    return ring < tree ? ring : tree;
}
