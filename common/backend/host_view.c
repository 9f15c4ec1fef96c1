#include "backend/host_view.h"

#include "base/run.h"

static int64_t bytes_of(const HostView *view)
{
    return view->count * (int64_t)sizeof(real);
}

HostView host_view_write(real *memory, int64_t count)
{
    HostView view = {backend_on_host(memory), count, memory};
    backend_wait();
    if (!view.numbers)
        view.numbers = backend_memory(bytes_of(&view), HOST_MEMORY);
    if (!view.numbers)
        misuse("free some of the machine's memory, or split the model over more ranks (TP)",
               "no memory for a copy of %lld numbers", (long long)count);
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
    if (view->numbers != view->memory)
        backend_memory_free(view->numbers, HOST_MEMORY);
}

void host_view_store(const HostView *view)
{
    if (view->numbers != view->memory)
        backend_write(view->memory, view->numbers, bytes_of(view));
    host_view_end(view);
}
