#include "backend/cuda/near.cuh"

/* A copy of x [count], made when device_waits() was `good_at`. */
typedef struct Copy {
    DeviceRoom room;
    const int32_t *x;
    int64_t count;
    uint64_t good_at, used;
} Copy;

enum { COPIES = 4 }; /* ids, those of a rank's part of the table, the mask, and one more */

const int32_t *brought_near(const int32_t *x, int64_t count)
{
    static Copy copies[COPIES];
    static uint64_t uses;
    Copy *copy = &copies[0];
    if (count == 0 || !backend_on_host((void *)x))
        return x;
    for (Copy &each : copies) {
        if (each.x == x && each.count == count && each.good_at == device_waits()) {
            each.used = ++uses;
            return static_cast<const int32_t *>(each.room.memory);
        }
        copy = each.used < copy->used ? &each : copy;
    }
    const int64_t bytes = count * (int64_t)sizeof *x;
    void *room = device_room(&copy->room, bytes);
    device_check(cudaMemcpyAsync(room, x, (size_t)bytes, cudaMemcpyDefault, device_stream()),
                 "copying a batch");
    copy->x = x, copy->count = count, copy->good_at = device_waits(), copy->used = ++uses;
    return static_cast<const int32_t *>(room);
}
