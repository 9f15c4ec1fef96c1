/** @file
 * The peak of a core in single precision: multiply-adds in registers, in 24 independent chains,
 * because each multiply-add waits for the previous one of its chain.
 */
#pragma once

#include "backend/cpu/kernel.h"

enum {
    CHAINS = 24,    /**< vectors */
    LANES = 16,     /**< numbers of a vector */
    TURNS = 1 << 14 /**< multiply-adds of a chain */
};

/** The floating-point operations of a call of multiply_add(). */
#define PEAK_OPERATIONS (2.0 * CHAINS * LANES * TURNS)

/** Computes on `numbers` [CHAINS, LANES]. */
KERNEL static void multiply_add(float *numbers)
{
    float x[CHAINS][LANES];
    for (int c = 0; c < CHAINS; c++)
        for (int l = 0; l < LANES; l++)
            x[c][l] = numbers[c * LANES + l];
    for (int turn = 0; turn < TURNS; turn++)
#pragma GCC unroll 24
        for (int c = 0; c < CHAINS; c++)
            for (int l = 0; l < LANES; l++)
                x[c][l] = x[c][l] * 0.999f + 0.001f;
    for (int c = 0; c < CHAINS; c++)
        for (int l = 0; l < LANES; l++)
            numbers[c * LANES + l] = x[c][l];
}
