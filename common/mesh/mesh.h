/** @file
 * The grid of ranks: tp ranks split a layer, dp replicas of the model split the data, pp stages
 * split the blocks of a replica.
 */
#pragma once

#include "comm/comm.h"

/** Fills `mesh` for `world` with lab 14. In a program without lab 14, splits the world into `pp`
 *  stages and calls labs 8 and 10, which make the tp and dp groups of each stage. group_free() of
 *  `world` frees all groups. Collective. `tp` times `pp` must divide the size of the world; before
 *  lab 8, `tp` is the size of a stage. */
void mesh_open(Mesh *mesh, Group *world, int tp, int pp);

/** The ranks that split one model. Before lab 8, all ranks do. */
static inline Group *mesh_tp_group(const Mesh *mesh)
{
    return mesh->tp ? mesh->tp : mesh->world;
}
