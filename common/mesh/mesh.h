/** @file
 * The grid of ranks: tp ranks split one model, dp replicas of it share the data. Balises 8 and 10 make the
 * groups.
 */
#pragma once

#include "comm/comm.h"

/** Fills `mesh` for `world`, whose groups the slots tp_group and dp_group make; they belong to `world`. Collective. `tp` must
 *  divide the size of the world; before balise 8 it is that size. */
void mesh_open(Mesh *mesh, Group *world, int tp);

/** The ranks that split one model: before balise 8 all do. */
static inline Group *mesh_tp_group(const Mesh *mesh)
{
    return mesh->tp ? mesh->tp : mesh->world;
}

/** Can `ranks` ranks be cut into groups of `tp`? Otherwise false with `problem`. */
bool mesh_check(int ranks, int tp, Problem *problem);
