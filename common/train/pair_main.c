/* A program of one's own: trains a column-parallel and a row-parallel linear layer (Megatron-LM,
 * arXiv:1909.08053, figure 3a) to tell which of a row's first four numbers is the largest.
 *
 *     make run PROGRAM=common/train/pair_main.c NTASKS=4 TP=2 */
#include <stdio.h>
#include <stdlib.h>

#include "balise_program.h"

enum { ROWS = 32, IN = 16, INNER = 64, CLASSES = 4, STEPS = 40 };

int main(int argc, char **argv)
{
    Program *program = program_open(argc, argv); /* makes the tp and dp groups */
    const Mesh *mesh = &program->mesh;
    Builder *b = program->builder;
    ColumnParallelLinear up = column_parallel_linear_new(within(b, "up"), IN, INNER, false);
    RowParallelLinear down = row_parallel_linear_new(within(b, "down"), INNER, CLASSES, true);
    for (int step = 1; step <= STEPS; step++) {
        float x[ROWS][IN];
        int32_t labels[ROWS];
        for (int row = 0; row < ROWS; row++) {
            labels[row] = 0;
            for (int i = 0; i < IN; i++)
                x[row][i] = (float)(rand() % 1000) / 500 - 1; /* the same on every rank */
            for (int k = 1; k < CLASSES; k++)
                labels[row] = x[row][k] > x[row][labels[row]] ? k : labels[row];
        }
        const Range mine = program_begin_step(program, ROWS); /* each replica takes other rows */
        const int64_t rows = mine.end - mine.begin;
        Tensor *input = program_reals(program, SHAPE(rows, IN), x[mine.begin]);
        Tensor *h = gelu(column_parallel_linear_forward(&up, input, mesh)); /* [rows,INNER/tp] */
        Tensor *logits = row_parallel_linear_forward(&down, h, mesh);       /* [rows,CLASSES] */
        Tensor *wanted = program_ints(program, SHAPE(rows), labels + mine.begin);
        Tensor *loss = cross_entropy(logits, wanted);
        double mean = tensor_data(loss)[0] / mesh->dp_degree;
        if (mesh->dp)
            group_sum(mesh->dp, &mean, 1);
        program_backward(program, loss, NULL);
        program_update(program, 0.01);
        if (group_rank(mesh->world) == 0)
            printf("step %d: loss %.6f\n", step, mean);
    }
    return program_close(program);
}
