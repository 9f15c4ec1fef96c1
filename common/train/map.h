/** @file
 * Who sits where: ranks, nodes and the grid.
 */
#pragma once

#include "comm/comm.h"

/** Rank 0 warns when the ranks that split one model sit on several nodes, since they talk in every block; with `show` it
 *  prints a line a rank as well. Collective over the world. */
void map_report(const Mesh *mesh, bool show);
