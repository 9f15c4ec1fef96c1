/* The memory of the device, which the host can access only while work runs; and pinned memory. */
#include "emulated_parts.h"

#include <map>

#include <sys/mman.h>

static const size_t GAP = 256;
static const size_t DEVICE_BYTES = static_cast<size_t>(emulated_setting("EMULATED_MEMORY", 1024))
                                   << 20; /* MiB */

size_t emulated_device_bytes()
{
    return DEVICE_BYTES;
}

static char *device_begin;
static std::map<char *, size_t> on_device, on_host;
static std::map<char *, size_t> device_holes;

void emulated_protect(bool reached)
{
    if (device_begin && !on_device.empty())
        mprotect(device_begin, DEVICE_BYTES, reached ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static size_t with_gap(size_t bytes)
{
    return (bytes + GAP - 1) / GAP * GAP + GAP;
}

static void open_device()
{
    void *memory =
        mmap(nullptr, DEVICE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        emulated_fail("no address space for the device's memory");
    device_begin = static_cast<char *>(memory);
    device_holes[device_begin] = DEVICE_BYTES;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (!device_begin)
        open_device();
    const size_t needed = with_gap(bytes);
    for (auto hole = device_holes.begin(); hole != device_holes.end(); ++hole) {
        if (hole->second < needed)
            continue;
        char *begin = hole->first;
        const size_t rest = hole->second - needed;
        device_holes.erase(hole);
        if (rest)
            device_holes[begin + needed] = rest;
        on_device[begin] = bytes;
        emulated_protect(true);
        std::memset(begin, 0xff, bytes);
        emulated_protect(emulated_depth > 0);
        *memory = begin;
        return cudaSuccess;
    }
    return emulated_error(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *memory)
{
    emulated_run_all();
    if (!memory)
        return cudaSuccess;
    auto found = on_device.find(static_cast<char *>(memory));
    if (found == on_device.end())
        emulated_fail("cudaFree of memory that is not on the device");
    auto hole = device_holes.emplace(found->first, with_gap(found->second)).first;
    on_device.erase(found);
    for (auto next = std::next(hole);
         next != device_holes.end() && hole->first + hole->second == next->first;
         next = device_holes.erase(next))
        hole->second += next->second;
    while (hole != device_holes.begin() &&
           std::prev(hole)->first + std::prev(hole)->second == hole->first) {
        auto before = std::prev(hole);
        before->second += hole->second;
        device_holes.erase(hole);
        hole = before;
    }
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    static int pinned;
    if (++pinned > emulated_setting("EMULATED_PINNED", 1 << 30) ||
        posix_memalign(memory, 256, bytes ? bytes : 1) != 0)
        return emulated_error(cudaErrorMemoryAllocation);
    std::memset(*memory, 0xff, bytes);
    on_host[static_cast<char *>(*memory)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    emulated_run_all();
    if (memory && !on_host.erase(static_cast<char *>(memory)))
        emulated_fail("cudaFreeHost of what is no pinned memory");
    free(memory);
    return cudaSuccess;
}

static bool lies_in(const std::map<char *, size_t> &memory, const void *at)
{
    char *address = static_cast<char *>(const_cast<void *>(at));
    auto after = memory.upper_bound(address);
    return after != memory.begin() && address <= std::prev(after)->first + std::prev(after)->second;
}

void emulated_check_pointer(const void *memory)
{
    if (memory && !emulated_is_known(memory))
        emulated_fail("a kernel is given memory of the host that it cannot reach");
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory)
{
    attributes->type = lies_in(on_device, memory) ? cudaMemoryTypeDevice
                       : lies_in(on_host, memory) ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeUnregistered;
    attributes->hostPointer =
        attributes->type == cudaMemoryTypeDevice ? nullptr : const_cast<void *>(memory);
    return cudaSuccess;
}

bool emulated_is_known(const void *memory)
{
    return lies_in(on_device, memory) || lies_in(on_host, memory);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    size_t held = 0;
    for (auto &block : on_device)
        held += with_gap(block.second);
    *total = DEVICE_BYTES;
    *available = DEVICE_BYTES - held;
    return cudaSuccess;
}
