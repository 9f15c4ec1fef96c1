#include "grader/runner/values.h"

#include <math.h>
#include <stdio.h>

/* A weight for each place, so that an exchange of two numbers shows. */
static double weight(int64_t i)
{
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15;
    return 0.5 + (double)(x >> 40) * 0x1p-24;
}

/* The gradient of a partial sum is the same everywhere, that of a copy is not. */
static bool is_called_whole(const Tensor *x, const Tensor *gradient)
{
    PlacementKind kind = (PlacementKind)x->placement.kind;
    return kind == WHOLE || kind == (gradient ? PARTIAL : COPIED);
}

static void see(void *context, const Tensor *x, const Tensor *gradient, const char *word,
                void *address)
{
    Rings *rings = context;
    const Tensor *numbers = gradient ? gradient : x;
    int64_t index = atomic_load(&rings->values);
    if (index >= RING_VALUES || !address || !is_called_whole(x, gradient) ||
        numbers->dtype != REAL || !numbers->buffer)
        return;
    Value *value = &rings->value[index];
    *value = (Value){.address = address, .count = tensor_count(x), .gradient = gradient != NULL};
    snprintf(value->word, sizeof value->word, "%s", word);
    backend_wait();
    for (int64_t i = 0; i < value->count; i++) {
        double part = weight(i) * (double)reals(numbers)[i];
        value->sum += part;
        value->size += fabs(part);
    }
    atomic_store(&rings->values, index + 1);
}

void values_watch(Tape *tape, Rings *rings)
{
    tape_observe(tape, (Observer){see, rings});
}
