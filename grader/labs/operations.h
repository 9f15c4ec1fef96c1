/** @file
 * The record of an operation on a tape, of a rank's or of the judge's own run.
 */
#pragma once

#include "autograd/tape.h"
#include "grader/calls.h"

/** Records what an Observer is told of an operation, without `where`. */
TapeOperation operation_record(const char *function, void *address, const Tensor *output,
                               int inputs, Tensor *const *input, bool back);
