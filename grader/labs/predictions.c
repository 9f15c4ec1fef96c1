/* What entries of a layer add to the number that a student predicts. */
#include "grader/labs/lab.h"
#include "grader/labs/work.h"

static bool is_of_first_step(const Entry *entry, EntryKind kind, int64_t count)
{
    return (int)kind == entry->kind && entry->label.of == A_LAYER && entry->label.index == 0 &&
           entry->label.step == 0 && entry->count == count;
}

double bytes_of_layer(int rank, const Entry *entry, const double *numbers)
{
    return is_of_first_step(entry, TRAFFIC, TRAFFIC_NUMBERS) ? 4 * numbers[0] : 0;
}

double multiplications_of_layer(int rank, const Entry *entry, const double *numbers)
{
    return rank == 0 && is_of_first_step(entry, WORK, WORK_NUMBERS)
               ? numbers[LINEAR_WORK] + numbers[ATTENTION_WORK]
               : 0;
}
