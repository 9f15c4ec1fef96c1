/* Host access to tensors' numbers. Reuses the memory of copies. */
#include "backend/host_view.h"

#include "base/language.h"
#include "base/memory.h"

static int64_t bytes_of(const HostView *view)
{
    return view->count * (int64_t)sizeof(real);
}

/* A GPU's driver takes longer to allocate memory that both sides can access than to copy. So the
 * memory of closed views is kept, by powers of two, for the next step's views. The first bytes of
 * a free block point to the next. */
typedef struct Kept {
    struct Kept *next;
} Kept;
static Kept *kept[64];

static int power_of(int64_t bytes)
{
    int power = 6; /* 64 bytes */
    while (INT64_C(1) << power < bytes)
        power++;
    return power;
}

static void give_all_back(void)
{
    for (int power = 0; power < 64; power++)
        while (kept[power]) {
            Kept *memory = kept[power];
            kept[power] = memory->next;
            backend_memory_free(memory, HOST_MEMORY);
        }
}

static real *copy_room(int64_t bytes)
{
    const int power = power_of(bytes);
    Kept *memory = kept[power];
    if (memory) {
        kept[power] = memory->next;
        return (real *)memory;
    }
    real *numbers = backend_memory(INT64_C(1) << power, HOST_MEMORY);
    if (!numbers) {
        give_all_back();
        numbers = backend_memory(INT64_C(1) << power, HOST_MEMORY);
    }
    if (!numbers)
        memory_refuse(backend_memory_place(HOST_MEMORY), bytes, ACTIVATIONS,
                      _("a copy for the host"), "");
    return numbers;
}

HostView host_view_write(real *memory, int64_t count)
{
    HostView view = {backend_on_host(memory), count, memory};
    backend_wait();
    if (!view.numbers)
        view.numbers = copy_room(bytes_of(&view));
    return view;
}

HostView host_view_read(const real *memory, int64_t count)
{
    HostView view = host_view_write((real *)memory, count);
    if (view.numbers != memory)
        backend_read(view.numbers, memory, bytes_of(&view));
    return view;
}

void host_view_end(const HostView *view)
{
    if (view->numbers == view->memory)
        return;
    Kept *memory = (Kept *)view->numbers;
    const int power = power_of(bytes_of(view));
    memory->next = kept[power];
    kept[power] = memory;
}

void host_view_store(const HostView *view)
{
    if (view->numbers != view->memory)
        backend_write(view->memory, view->numbers, bytes_of(view));
    host_view_end(view);
}
