/** @file
 * Memory that a lab fills. Marks on both sides detect writes before or after it, which do no harm.
 * Beyond the marks, memory is inaccessible: a write there ends the case at its line.
 */
#pragma once

#include <stdint.h>

/** Memory for `count` numbers. */
typedef struct Room {
    const char *name; /**< its name in the lab: "mine" */
    int64_t count;    /**< its length in numbers */
    int64_t mark;     /**< the value where nothing was written */
    int64_t *numbers; /**< the first number */
} Room;

/** Allocates a room, filled with marks. */
void room_take(Room *room, const char *name, int64_t count, int64_t mark);
/** Frees the room's memory. */
void room_free(Room *room);

/** The index of the write farthest before the room, or 0. */
int64_t room_written_before(const Room *room);
/** The largest index written, in the room or after it; -1 if nothing was written. */
int64_t room_last_written(const Room *room);

/** The room whose inaccessible surroundings contain this address, or NULL. */
const Room *room_missed(const void *address);
