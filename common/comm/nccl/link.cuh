/** @file
 * Calls NCCL with a time limit; by itself, NCCL waits forever. Private to this folder.
 */
#pragma once

#include <functional>

#include <nccl.h>

#include "comm/comm_parts.h"

/** A group's communicator, and the last operation on it, for error messages. */
typedef struct Link {
    ncclComm_t comm;            /**< NCCL's communicator of the group */
    Group *group;               /**< the group of this link */
    const char *last;           /**< the last operation, a string that stays valid: "all_reduce" */
    int64_t calls;              /**< number of operations */
    struct NcclRequest *queued; /**< a started send that NCCL does not have yet, or NULL */
    struct Link *next;          /**< the list of all links in this process */
} Link;

/** Starts watching the link: while the host waits, an error on any watched link ends the run. */
void link_add(Link *link);
/** Stops watching the link; the caller then frees it. */
void link_remove(Link *link);

/** Records the next operation, `what`, on the group's link; returns the link. */
Link *link_called(Group *group, const char *what);

/** Runs `call`, a call to NCCL. Ends the run if it fails or does not return within
 *  BALISE_NCCL_TIMEOUT seconds: joining, splitting and a group's first operations wait for the
 *  other ranks before they return. */
void link_ask(const Link *link, const std::function<ncclResult_t()> &call);
