/* A runner that writes nonsense where ranks write their records: the judge must fail it and end
 * normally. mpirun starts it like any runner, but it does not use MPI. argv[1] is the file shared
 * with the judge; the last digit of argv[0] selects the nonsense. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "grader/labs/scenario.h"

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 17;
}

static void fill(char *stream, Rings *rings, RankHeader *header, uint64_t *state, int kind,
                 int number)
{
    int64_t used = 0;
    for (int i = 0; i < 200; i++) {
        Entry *entry = (Entry *)(stream + used);
        for (size_t k = 0; k < sizeof *entry; k++)
            ((unsigned char *)entry)[k] = (unsigned char)next(state);
        entry->kind = (int32_t)(next(state) % (DEALT + 1));
        entry->count = kind == 1 ? (int64_t)next(state) : (int64_t)(next(state) % 200);
        if (kind == 2) {
            entry->label = i % 3 == 0   ? label_of(OUTPUT_OF, A_LAYER, 0, 0)
                           : i % 3 == 1 ? label_of(FORWARD_OF, A_LAYER, 0, 0)
                                        : label_named("first.up.weight");
            entry->shape.rank = (int)(next(state) % 6) - 1;
            for (int d = 0; d < 4; d++)
                entry->shape.size[d] =
                    (int64_t)(next(state) % 50) * (next(state) % 7 ? 1 : 1000000007);
            entry->placement_kind = (int32_t)(next(state) % 6);
            entry->placement_dim = (int32_t)(next(state) % 9) - 4;
            entry->begin = (int64_t)(next(state) % 60) - 10;
            entry->end = entry->begin + (int64_t)(next(state) % 60);
        }
        used += (int64_t)sizeof *entry + (int64_t)(next(state) % 200) * 8;
    }
    atomic_store(&header->used, kind == 0 ? (int64_t)1 << 62 : used);
    memset(&header->where, 'x', sizeof header->where);
    for (size_t k = 0; k < sizeof *rings; k++)
        ((unsigned char *)rings)[k] = (unsigned char)next(state);
    atomic_store(&rings->number, number);
    atomic_store(&rings->calls, kind == 1 ? (int64_t)next(state) : 5);
}

int main(int argc, char **argv)
{
    int rank = atoi(getenv("OMPI_COMM_WORLD_RANK")), kind = argv[0][strlen(argv[0]) - 1] - '0',
        file = open(argv[1], O_RDWR);
    char *base = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    Launch *launch = (Launch *)base;
    RankHeader *header = &launch->rank[rank];
    uint64_t state = (uint64_t)rank + 17;
    atomic_store(&header->state, IDLE);
    for (int done = 0;; done++) {
        while (atomic_load(&launch->control.posted) == done)
            usleep(50);
        if (atomic_load(&launch->control.posted) < 0)
            return 0;
        fill(base + LAUNCH_BYTES + (size_t)rank * STREAM_BYTES, rings_of(launch, rank), header,
             &state, kind, done + 1);
        if (kind == 3 && rank == 1)
            _exit(0);
        atomic_fetch_add(&header->done_cases, 1);
    }
}
