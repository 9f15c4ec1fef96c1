#include "train/waiting.h"

#include <string.h>

#include "comm/comm.h"

enum { MOST = 1 << 14 }; /* exchanges of a step that are looked at */

/* Those over the ranks that split a model, and those over the replicas. */
enum { OVER_TP, OVER_DP, GROUPS };
static const char *const NAMES[] = {LAP_ROWS, LAP_NOT_HIDDEN, "all_reduce", "duplication", "all_gather"};
enum { KINDS_OVER_DP = 2, KINDS = sizeof NAMES / sizeof *NAMES };

typedef struct Exchanges {
    int count, kind[MOST];
    bool backward[MOST];
    double seconds[MOST];
} Exchanges;

static struct {
    Exchanges step[GROUPS];
    double waited[KINDS][2];
} heard;

static void hear(const char *what, bool backward, double seconds)
{
    for (int kind = 0; kind < KINDS; kind++) {
        Exchanges *those = &heard.step[kind < KINDS_OVER_DP ? OVER_DP : OVER_TP];
        if (strcmp(NAMES[kind], what) != 0 || those->count == MOST)
            continue;
        those->kind[those->count] = kind;
        those->backward[those->count] = backward;
        those->seconds[those->count++] = seconds;
    }
}

void waiting_begin(void)
{
    memset(&heard, 0, sizeof heard);
    laps_tell(hear);
}

/* A student's ranks may have made different numbers of them: then nothing is known. */
static bool all_made_as_many(MPI_Comm comm, int count)
{
    int ends[2] = {count, -count};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MAX, comm);
    return ends[0] == -ends[1];
}

static void compare(Group *group, const Exchanges *those)
{
    static double least[MOST];
    if (!group || !all_made_as_many(group_comm(group), those->count))
        return;
    MPI_Allreduce(those->seconds, least, those->count, MPI_DOUBLE, MPI_MIN, group_comm(group));
    for (int i = 0; i < those->count; i++)
        heard.waited[those->kind[i]][those->backward[i]] += those->seconds[i] - least[i];
}

void waiting_step(const Mesh *mesh)
{
    compare(mesh->tp ? mesh->tp : mesh->world, &heard.step[OVER_TP]);
    compare(mesh->dp, &heard.step[OVER_DP]);
    heard.step[OVER_TP].count = heard.step[OVER_DP].count = 0;
}

int waiting_apart(Lap laps[MAX_LAPS], int count)
{
    Lap all = {.what = LAP_WAITING};
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int pass = 0; pass < 2 && strcmp(laps[i].what, NAMES[kind]) == 0; pass++) {
                laps[i].seconds[pass] -= heard.waited[kind][pass];
                all.seconds[pass] += heard.waited[kind][pass];
            }
    if (count == MAX_LAPS || all.seconds[0] + all.seconds[1] == 0)
        return count;
    laps[count] = all;
    return count + 1;
}
