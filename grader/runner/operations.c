/* Records the operations of a tape, for make tape and make report, and to compare them with the
 * plain layer's. */
#include "grader/labs/operations.h"

#include "grader/runner/recorder.h"

void operation_note(void *context, const char *function, void *address, const Tensor *output,
                    int inputs, Tensor *const *input, bool back)
{
    Rings *rings = context;
    const int64_t index = atomic_load(&rings->operations);
    if (!address || index >= RING_OPERATIONS)
        return;
    TapeOperation *o = &rings->operation[index];
    *o = operation_record(function, address, output, inputs, input, back);
    o->where = recorder_place();
    atomic_store(&rings->operations, index + 1);
}
