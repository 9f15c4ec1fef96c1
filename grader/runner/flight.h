/** @file
 * Inside the recorder: the memory that MPI has while a message or a collective is under way (MPI 4.0, 3.7.2 and 6.12: from its
 * start until it is complete a buffer that is sent is not changed, and one that is received into is neither read nor
 * written).
 */
#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/** See grader/calls.h. */
typedef struct Call Call;

/** The buffers of one message or collective that is under way. */
typedef struct Flight {
    const void *sent;         /**< the lab's, or NULL */
    size_t sent_bytes;        /**< of `sent` */
    uint64_t sum;             /**< of what was sent */
    void *received, *landing; /**< the lab's, and where MPI puts it meanwhile; or NULL */
    size_t bytes, marked;     /**< that there is room for, and those at the front that hold marks */
} Flight;

/** The call that is about to start sends `count` numbers from `in` and receives as many into `out`. Both return the buffer that
 *  MPI is to be given; they do nothing for a call of NULL, an empty buffer, MPI_IN_PLACE and types with gaps. */
const void *departs(const Call *call, const void *in, double count, MPI_Datatype type);
/** Of what is received: see departs(). */
void *lands(const Call *call, void *out, double count, MPI_Datatype type);

/** Of one message: it may be shorter than that. */
void *lands_message(const Call *call, void *out, int count, MPI_Datatype type);

/** What the two were told since the last time. */
Flight flight_begun(void);

/** It is complete: what was received comes into the lab's buffer, and `f` is empty. Ends the case if what was sent has changed.
 *  `status` is that of a message, or NULL. */
void flight_ends(Flight *f, const Call *call, const MPI_Status *status);
