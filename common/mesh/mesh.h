/** @file
 * The grid of ranks: tp ranks split one model, dp replicas of it share the data. Balises 8 and 10 make the
 * groups.
 */
#pragma once

#include "comm/comm.h"

/** Fills `mesh` for `world`, whose groups the slots tp_group and dp_group make; they belong to `world`. Collective. `tp` must
 *  divide the size of the world; before balise 8 it is that size. */
void mesh_open(Mesh *mesh, Group *world, int tp);

/** Can `ranks` ranks be cut into groups of `tp`? Otherwise false with `problem`. */
bool mesh_check(int ranks, int tp, Problem *problem);
