/** @file
 * Memory in flight: what MPI owns from the start of an operation to its completion.
 *
 * What is sent must not change, and what is received is not there yet. With short messages and
 * quiet machines, violations often go unnoticed; here they never do. Received data reach the lab's
 * buffer when the lab learns that the operation is complete; until then the buffer holds NaN marks
 * (UNDER_WAY, by which the judge sees where they were read). Sent data are compared at completion.
 */
#pragma once

#include "grader/runner/recorder.h"

/** The memory of an operation in progress. */
typedef struct Flight {
    MemoryPieces sent, received; /**< without pieces if there is none */
    uint64_t sum;                /**< checksum of what was sent */
    void *out, *landing; /**< the lab's receive buffer, and the one that MPI fills; or NULL */
    size_t most;         /**< of a message, how much of it is marked; otherwise 0 */
} Flight;

/** What departs() and lands() have noted for this rank's current call. The caller takes it over. */
Flight flight_of_call(void);

/** Ends the flight: what has arrived goes to the lab's buffer, and what was sent must be unchanged.
 *  @param flight is empty afterwards
 *  @param call the call that started it, or NULL
 *  @param status says how long a message was; NULL: all of the buffer has arrived */
void flight_ends(Flight *flight, const Call *call, const MPI_Status *status);
