/** @file
 * The learning rate of a step.
 */
#pragma once

#include <stdint.h>

/** The rate over the steps of a run: a linear warm-up, then a linear decay. */
typedef struct Schedule {
    double rate;    /**< after the warm-up */
    int64_t warmup; /**< steps over which it rises linearly from rate/warmup; 0 for none */
    int64_t decay;  /**< the step at whose end it has fallen linearly to 0; 0: it stays */
} Schedule;

/** The learning rate of `step`, from 0. */
double schedule_rate(const Schedule *schedule, int64_t step);
