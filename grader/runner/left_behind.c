/* What a lab creates itself and does not free: MPI objects and memory. The kit's functions free
 * theirs, except groups. An object made together with a layer or a group belongs to it, and labs do
 * not free layers and groups. An object that is made once and kept in a static variable is not a
 * leak, nor is one per shape, nor a buffer that grows or is made anew in each call, nor are some
 * buffers that a lab uses in turn. So blocks of memory are followed through all cases of a launch: a
 * line leaks if repeated calls make more blocks than are freed, in several cases. (A case that runs
 * alone, because it has failed, cannot tell buffers in turn from a leak.) */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/runner/recorder.h"

enum { FEW = 256, MANY = 3, SEVERAL_CASES = 4, OF_ALL_LINES = 8, LINES = 64, LARGE = 1 << 20 };

/* `count` objects with one handle from one line: MPI may return a group that it has returned
 * before. */
typedef struct Object {
    const void *handle; /* NULL: the slot is free */
    void *maker;
    ObjectKind kind;
    int64_t count; /* 0: all are freed */
    size_t copy;   /* of an earlier case's block: where `contents` has it, plus 1 */
} Object;

/* A hash table of at least twice as many slots as are in use. */
static struct {
    Object *slots;
    size_t size, used; /* the size is a power of 2 */
    struct Line {
        void *maker;
        int64_t
            more;    /* blocks of memory that repeated calls of this case have made and not freed */
        int cases;   /* in which there were more, so far */
        int64_t all; /* blocks of all cases that are not freed */
    } lines[LINES];
} objects;

/* What the blocks of earlier cases held when this case began, one after another. Beyond LARGE bytes, a
 * block is not copied, and counts as changed. */
static struct {
    unsigned char bytes[LARGE];
    size_t used;
    int64_t changed; /* bytes that this case has written to such blocks and freed */
} contents;

static void copy_contents(Object *block)
{
    const size_t bytes = malloc_usable_size((void *)block->handle);
    block->copy = contents.used + bytes <= sizeof contents.bytes ? contents.used + 1 : SIZE_MAX;
    if (block->copy == SIZE_MAX)
        return;
    memcpy(contents.bytes + contents.used, block->handle, bytes);
    contents.used += bytes;
}

static int64_t changed_bytes(const Object *block)
{
    const unsigned char *is = block->handle, *was;
    const size_t bytes = block->copy ? malloc_usable_size((void *)is) : 0;
    int64_t changed = 0;
    if (bytes == 0 || block->copy == SIZE_MAX)
        return (int64_t)bytes;
    was = contents.bytes + block->copy - 1;
    if (memcmp(is, was, bytes) == 0)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        changed += is[i] != was[i];
    return changed;
}

void objects_begin(void)
{
    contents.used = 0;
    contents.changed = 0;
    for (size_t i = 0; i < objects.size; i++)
        if (objects.slots[i].kind != BLOCK_OF_MEMORY)
            objects.slots[i].count = 0;
        else if (objects.slots[i].count > 0)
            copy_contents(&objects.slots[i]);
    for (int i = 0; i < LINES; i++)
        objects.lines[i].more = 0;
}

int64_t objects_changed(void)
{
    int64_t all = contents.changed;
    for (size_t i = 0; i < objects.size; i++)
        if (objects.slots[i].count > 0 && objects.slots[i].kind == BLOCK_OF_MEMORY)
            all += changed_bytes(&objects.slots[i]);
    return all;
}

/* The slot of `handle` that comes next, at `i` or later, or else a free one. */
static size_t slot_from(size_t i, const void *handle)
{
    while (objects.slots[i].handle && objects.slots[i].handle != handle)
        i = (i + 1) & (objects.size - 1);
    return i;
}

static size_t first_slot(const void *handle)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15;
    return slot_from(mixed >> 32 & (objects.size - 1), handle);
}

static size_t next_slot(size_t i, const void *handle)
{
    return slot_from((i + 1) & (objects.size - 1), handle);
}

static void note(Object new)
{
    size_t i = first_slot(new.handle);
    for (; objects.slots[i].handle; i = next_slot(i, new.handle)) {
        const Object *old = &objects.slots[i];
        if (old->count == 0)
            break;
        if (old->maker == new.maker && old->kind == new.kind) {
            new.count += old->count;
            break;
        }
    }
    objects.used += !objects.slots[i].handle;
    objects.slots[i] = new;
}

/* Makes room for one more, and drops what is freed. */
static void make_room(void)
{
    Object *old = objects.slots;
    const size_t size = objects.size;
    if (2 * (objects.used + 1) <= size)
        return;
    objects.used = 0;
    objects.size = size ? 2 * size : FEW;
    objects.slots = calloc(objects.size, sizeof *objects.slots);
    if (!objects.slots)
        abort(); /* the lab has taken all memory */
    for (size_t i = 0; i < size; i++)
        if (old[i].count > 0)
            note(old[i]);
    free(old);
}

/* Of a lab that makes blocks in more lines, the last one counts for the rest. */
static struct Line *line_of_maker(void *maker)
{
    int i = 0;
    while (i < LINES - 1 && objects.lines[i].maker && objects.lines[i].maker != maker)
        i++;
    objects.lines[i].maker = maker;
    return &objects.lines[i];
}

static void count_blocks(ObjectKind kind, void *maker, int more)
{
    if (kind == BLOCK_OF_MEMORY && recorder_repeats())
        line_of_maker(maker)->more += more;
}

void object_made(ObjectKind kind, const void *handle, const void *maker)
{
    const bool with_layer = recorder_active() && recorder_place().what == MAKING_OF;
    if (!recorder_active() || (with_layer && kind != BLOCK_OF_MEMORY))
        return;
    void *line = callsite();
    if (!line ||
        !(is_called_by_lab(maker) || kind == COMMUNICATOR)) /* group_split() frees nothing */
        return;
    make_room();
    if (!with_layer)
        count_blocks(kind, line, 1);
    note((Object){handle, line, kind, 1, 0});
}

void object_freed(ObjectKind kind, const void *handle)
{
    if (!objects.size)
        return;
    for (size_t i = first_slot(handle); objects.slots[i].handle; i = next_slot(i, handle))
        if (objects.slots[i].count > 0 && objects.slots[i].kind == kind) {
            contents.changed += changed_bytes(&objects.slots[i]);
            objects.slots[i].copy = 0;
            objects.slots[i].count--;
            count_blocks(kind, objects.slots[i].maker, -1);
            return;
        }
}

/* Returns how many blocks of repeated calls this case has left, or 0 if the line does not leak; adds
 * them to `others` if they are too few to tell. Call it once in a case. */
static int64_t leaked_blocks(struct Line *line, bool alone, int64_t *others)
{
    const int64_t left = line->all < line->more ? line->all : line->more;
    line->cases += left > 0;
    line->all = line->more = 0;
    if (left > 0 && (alone || line->cases >= SEVERAL_CASES))
        return left;
    *others += left > 0 && line->cases > 1 ? left : 0;
    return 0;
}

void recorder_left_behind(bool alone, void (*tell)(const char *what, int64_t count, void *address))
{
    static const char *const kinds[OBJECT_KINDS] = {N_("communicator"), N_("group"),
                                                    "block of memory"};
    int64_t others[OBJECT_KINDS] = {0}; /* from lines that each make too few */
    for (size_t i = 0; i < objects.size; i++) {
        const Object first = objects.slots[i];
        int64_t count = 0;
        if (first.count > 0 && first.kind == BLOCK_OF_MEMORY)
            line_of_maker(first.maker)->all += first.count;
        if (first.count == 0 || first.kind == BLOCK_OF_MEMORY)
            continue;
        for (size_t k = i; k < objects.size; k++)
            if (objects.slots[k].maker == first.maker && objects.slots[k].kind == first.kind) {
                count += objects.slots[k].count;
                objects.slots[k].count = 0;
            }
        if (count >= MANY)
            tell(kinds[first.kind], count, first.maker);
        else
            others[first.kind] += count;
    }
    for (int i = 0; i < LINES; i++) {
        const int64_t left = leaked_blocks(&objects.lines[i], alone, &others[BLOCK_OF_MEMORY]);
        if (left > 0)
            tell(kinds[BLOCK_OF_MEMORY], left, objects.lines[i].maker);
    }
    for (int kind = 0; kind < OBJECT_KINDS; kind++)
        if (others[kind] >= OF_ALL_LINES)
            tell(kinds[kind], others[kind], NULL);
}

#define MADE(group, call)                                                                          \
    int result = call;                                                                             \
    object_made(GROUP, *(group), __builtin_return_address(0));                                     \
    return result

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    MADE(group, PMPI_Comm_group(substituted(comm), group));
}

int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *out)
{
    MADE(out, PMPI_Group_incl(group, count, ranks, out));
}

int MPI_Group_range_incl(MPI_Group group, int count, int ranges[][3], MPI_Group *out)
{
    MADE(out, PMPI_Group_range_incl(group, count, ranges, out));
}

int MPI_Group_excl(MPI_Group group, int count, const int ranks[], MPI_Group *out)
{
    MADE(out, PMPI_Group_excl(group, count, ranks, out));
}

int MPI_Group_free(MPI_Group *group)
{
    object_freed(GROUP, *group);
    return PMPI_Group_free(group);
}
