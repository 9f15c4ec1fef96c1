/** @file
 * The grid of ranks: tp ranks split one model; dp replicas share the data. Balises 8 and 10 make
 * the groups.
 */
#pragma once

#include "comm/comm.h"

/** Fills `mesh` for `world`. The lab slots tp_group and dp_group make the groups, which belong to
 *  `world`. Collective. `tp` must divide the size of the world; before balise 8 it equals that
 *  size. */
void mesh_open(Mesh *mesh, Group *world, int tp);

/** The ranks that split one model: the world before balise 8. */
static inline Group *mesh_tp_group(const Mesh *mesh)
{
    return mesh->tp ? mesh->tp : mesh->world;
}

/** Can `ranks` ranks be split into groups of `tp`? Otherwise returns false with `problem`. */
bool mesh_check(int ranks, int tp, Problem *problem);
