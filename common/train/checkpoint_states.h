/** @file
 * The numbers of a parameter in a checkpoint. State 0 is its weights, 1 and 2 are AdamW's m and v.
 * With ZERO=1, each replica has m and v of its part only, but a checkpoint has them whole. Private
 * to this folder.
 */
#pragma once

#include "train/trainer.h"

/** Are all of this rank's numbers of a parameter's state finite? */
bool state_is_finite(const Trainer *t, const Parameter *p, int state);

/** Writes this rank's shard of a parameter's state, unless `writer` is NULL. With ZERO=1, gathers
 *  the replicas' parts first, so it is collective over the replicas. */
void state_put(const Trainer *t, SafetensorsWriter *writer, const Parameter *p, int state);

/** Reads this rank's shard of `found`; with ZERO=1, keeps only its replica's part of m and v.
 *  @return false with `problem` if saved_model_read() fails */
bool state_read(Trainer *t, const SavedModel *saved, const Parameter *p, int state,
                const SavedParameter *found, Problem *problem);
