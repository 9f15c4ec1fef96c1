/* Records the operations of a tape, for make tape and make report. */
#include <string.h>

#include "autograd/tape.h"
#include "grader/runner/recorder.h"
#include "model/model.h"

static TapeTensor argument_of(const Tensor *x)
{
    TapeTensor a = {.tensor = x,
                    .shape = x->shape,
                    .kind = (int32_t)x->placement.kind,
                    .dim = x->placement.dim,
                    .integers = x->dtype != REAL,
                    .needs_gradient = x->needs_gradient};
    if (x->parameter)
        snprintf(a.parameter, sizeof a.parameter, "%s", x->parameter->name);
    return a;
}

void operation_note(void *context, const char *function, void *address, const Tensor *output,
                    int inputs, Tensor *const *input, bool back)
{
    Rings *rings = context;
    const int64_t index = atomic_load(&rings->operations);
    if (!address || index >= RING_OPERATIONS)
        return;
    TapeOperation *o = &rings->operation[index];
    *o = (TapeOperation){.where = recorder_place(),
                         .address = address,
                         .tape = output->tape,
                         .back = back,
                         .output = argument_of(output)};
    snprintf(o->name, sizeof o->name, "%s", function);
    for (int i = 0; i < inputs && i < MOST_INPUTS; i++)
        if (input[i])
            o->input[o->inputs++] = argument_of(input[i]);
    atomic_store(&rings->operations, index + 1);
}
