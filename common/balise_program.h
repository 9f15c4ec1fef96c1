/** @file
 * What a program of your own needs besides balise.h. It includes this header; one command compiles
 * it, links it with the labs, and runs it on NTASKS ranks:
 *
 *     make run PROGRAM=mine.c NTASKS=4 TP=2
 *
 * common/train/pair_main.c is an example. Every rank calls these functions, in the same order.
 */
#pragma once

#include "balise.h"

/** This rank's part of a program; program_close() frees it. */
typedef struct Program {
    Mesh mesh; /**< the grid of DP replicas, each of PP stages of TP ranks (labs 8, 10 and 14) */
    Builder *builder; /**< makes the layers and parameters of the program's model */
} Program;

/** Starts the ranks: call it first in main(), with main's arguments. Bad settings end the program with an
 *  error. @return the grid, and a model without layers */
Program *program_open(int argc, char **argv);

/** Begins a step over `rows` rows of data, a multiple of the number of replicas. Drops the tensors of the step
 *  before. In the first step, parameters get their initial values, so all layers must have been made.
 *  @return which of the rows 0..rows-1 this replica takes */
Range program_begin_step(Program *program, int64_t rows);

/** A tensor of this step with these numbers, whole on every rank, such as x [B,in]. To get its gradient, use
 *  leaf() of it; see leaf_gradient(). */
Tensor *program_reals(Program *program, Shape shape, const float *numbers);
/** The same for integers: ids, labels, a mask. */
Tensor *program_ints(Program *program, Shape shape, const int32_t *numbers);

/** The mean of -log softmax(logits)[label] over this replica's rows: logits [B,classes], whole; labels [B] -> [1]. */
Tensor *cross_entropy(Tensor *logits, Tensor *labels);

/** Runs backward from y, once a step. On the last stage, y is the loss [1], and dy is NULL; on the others, dy is the
 *  gradient of y. Afterwards, the gradients of all parameters are their means over the replicas. */
void program_backward(Program *program, Tensor *y, Tensor *dy);

/** Takes a step of AdamW with this learning rate, after program_backward(). */
void program_update(Program *program, double rate);

/** Frees the program and ends MPI. @return the exit status of main() */
int program_close(Program *program);
