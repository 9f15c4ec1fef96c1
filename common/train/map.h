/** @file
 * Who sits where: ranks, nodes and the grid.
 */
#ifndef BALISE_TRAIN_MAP_H
#define BALISE_TRAIN_MAP_H

#include "comm/comm.h"

/** Rank 0 warns when the ranks that split one model sit on several nodes, since they talk in every block; with `show` it
 *  prints a line a rank as well. Collective over the world. */
void map_report(const Mesh *mesh, bool show);

#endif
