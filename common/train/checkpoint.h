/** @file
 * Checkpoints of a run (SAVE, EVERY, RESUME): a run that resumes goes on as if it had never ended, bit by bit
 * at the same layout and up to rounding at another. What lies on the disk: checkpoint_parts.h.
 *
 * Sampler and dropout are keyed by seed and step, so weights, the optimiser's state and the step are all
 * there is to save. All functions are collective, and succeed or fail on all ranks with the same problem.
 */
#pragma once

#include "train/parts.h"

/** Before anything else is done: can SAVE be written, and is there something to RESUME from? */
bool checkpoint_prepare(Trainer *t, Problem *problem);

/** Reads weights and the optimiser's state, and sets the step, if there is something to resume from. The data
 * must be open and the model built; the metrics file then ends at this step. */
bool checkpoint_resume(Trainer *t, Problem *problem);

/** Prints where the run begins and where it saves. On rank 0. */
void checkpoint_describe(const Trainer *t);

/** Saves the state after the step that was just done, if EVERY or the end of the run (`last`) asks for it. */
bool checkpoint_save(Trainer *t, bool last, Problem *problem);

/** Gives back the lock of the SAVE folder. */
void checkpoint_close(Trainer *t);
