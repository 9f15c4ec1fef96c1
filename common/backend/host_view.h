/** @file
 * Access to a tensor's numbers from the host: in place if the host can reach them, otherwise
 * through a copy.
 */
#pragma once

#include "backend/backend.h"

/** A tensor's numbers on the host, while the view is open. */
typedef struct HostView {
    real *numbers; /**< [count] */
    int64_t count; /**< of `numbers` */
    real *memory;  /**< the tensor's memory */
} HostView;

/** Waits for kernels and opens a view of `memory` [count] for reading. Ends the run if there is no
 *  memory for a copy. */
HostView host_view_read(const real *memory, int64_t count);

/** Waits for kernels and opens a view of `memory` [count] for writing. A copy starts uninitialised:
 *  the host must set all numbers. Ends the run if there is no memory for a copy. */
HostView host_view_write(real *memory, int64_t count);

/** Closes a view that was only read. */
void host_view_end(const HostView *view);

/** Closes a view and stores its numbers in the memory. */
void host_view_store(const HostView *view);
