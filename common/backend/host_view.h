/** @file
 * A tensor's numbers for the host: in place where the host reaches them, otherwise a copy.
 */
#pragma once

#include "backend/backend.h"

/** A tensor's numbers as the host sees them, between opening and closing. */
typedef struct HostView {
    real *numbers; /**< [count] */
    int64_t count; /**< of `numbers` */
    real *memory;  /**< whose they are */
} HostView;

/** Opens a view of `memory` [count], which kernels wrote, once they have ended. Ends the run where a copy finds no memory. */
HostView host_view_read(const real *memory, int64_t count);

/** Opens a view of `memory` [count] whose numbers the host will all set: a copy holds nothing yet. */
HostView host_view_write(real *memory, int64_t count);

/** Closes a view that was read only. */
void host_view_end(const HostView *view);

/** Closes a view; its numbers are those of the memory now. */
void host_view_store(const HostView *view);
