/** @file
 * Room for numbers that a lab is to fill: what it writes before or behind it is seen, and does no harm. Marks stand on both
 * sides, and beyond them memory that nobody can reach, so that what is far off ends the case at its line.
 */
#pragma once

#include <stdint.h>

/** Room for `count` numbers. */
typedef struct Room {
    const char *name; /**< what the lab calls it: "mine" */
    int64_t count;    /**< how many numbers it is for */
    int64_t mark;     /**< stands wherever nothing was written */
    int64_t *numbers; /**< the first of them */
} Room;

/** Takes it, full of marks. */
void room_take(Room *room, const char *name, int64_t count, int64_t mark);
/** Gives it back. */
void room_free(Room *room);

/** The index of what was written farthest before the room, or 0. */
int64_t room_written_before(const Room *room);
/** The index of what was written last, in the room or behind it; -1 where nothing was. */
int64_t room_last_written(const Room *room);

/** The room that this address is far outside of; NULL where it belongs to none. */
const Room *room_missed(const void *address);
