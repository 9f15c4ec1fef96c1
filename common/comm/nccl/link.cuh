/** @file
 * What NCCL is asked to do, and how long it may take: by itself it waits for ever. For this room alone.
 */
#pragma once

#include <functional>

#include <nccl.h>

#include "comm/comm_parts.h"

/** A group's communicator, and what was called last on it, for whoever waits in vain. */
typedef struct Link {
    ncclComm_t comm;   /**< NCCL's communicator of the group */
    Group *group;      /**< whose link it is */
    const char *last;  /**< what was called last, a text that stays: "all_reduce" */
    int64_t calls;     /**< how many there have been */
    struct Link *next; /**< all links of this process are a list */
} Link;

/** From now on the link is looked at while the host waits: an error of one ends the run. */
void link_add(Link *link);
/** It is looked at no more; the caller then frees it. */
void link_remove(Link *link);

/** Notes what is called next on the group's link, and returns that. */
Link *link_called(Group *group, const char *what);

/** Does what `call` asks of NCCL. Ends the run where that fails, or does not return within BALISE_NCCL_TIMEOUT seconds: joining, splitting and
 *  the first exchanges of a group wait for the other ranks before they return. */
void link_ask(const Link *link, const std::function<ncclResult_t()> &call);
