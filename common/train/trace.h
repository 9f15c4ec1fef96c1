/** @file
 * TRACE=run.json: what each rank did when, and what it held meanwhile, in the format of Chrome's tracing that Perfetto opens.
 *
 * The spans (base/spans.h) are the spans: one follows the other, nothing lies between two. They are kept in memory that is there
 * before the first step, for a few steps after those that fill the pool and the caches, and sent to rank 0 when the run has ended.
 * The clocks of the ranks are set by a barrier. What a rank waited within an exchange is told as in profile.h: whoever of the group
 * spent least on it waited for nobody.
 */
#pragma once

#include "base/problem.h"
#include "mesh/mesh.h"
#include "tensor/pool.h"

/** Sets the clocks, and listens to the spans from now on. Collective. `steps` are those that this run will make;
 *  of very few all are kept. */
void trace_open(const Mesh *mesh, const Pool *pool, int64_t steps);

/** Step `done` of this run (from 0) begins; spans count as its spans until trace_step_ends(). */
void trace_step(int64_t done);
/** The step that has begun ends: it is kept, if it was one to be kept and there was room for all of it. */
void trace_step_ends(void);

/** Puts together what all ranks kept, in the file `path` of rank 0: beside it first, then renamed. Collective. `first`
 *  steps were done before this run.
 *  @return false with `problem`, the same on every rank, where it cannot be written */
bool trace_write(const Mesh *mesh, const char *path, int64_t first, Problem *problem);

/** Gives back the memory; also where there was no trace. */
void trace_close(void);

/** Could a trace be written there? Nothing is left behind. Otherwise false with `problem`. */
bool trace_can_be_written(const char *path, Problem *problem);
