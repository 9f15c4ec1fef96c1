/* The record of an operation on a tape. */
#include "grader/labs/operations.h"

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

TapeOperation operation_record(const char *function, void *address, const Tensor *output,
                               int inputs, Tensor *const *input, bool back)
{
    const Attribute *with = output->tape->next.of;
    TapeOperation o = {
        .address = address, .tape = output->tape, .back = back, .output = argument_of(output)};
    snprintf(o.name, sizeof o.name, "%s", function);
    for (int i = 0; i < inputs && i < MOST_INPUTS; i++)
        if (input[i])
            o.input[o.inputs++] = argument_of(input[i]);
    for (int i = 0; i < MOST_ATTRIBUTES && with[i].name; i++) {
        o.attribute[i].number = with[i].number;
        snprintf(o.attribute[i].name, sizeof o.attribute[i].name, "%s", with[i].name);
        snprintf(o.attribute[i].text, sizeof o.attribute[i].text, "%s",
                 with[i].text ? with[i].text : "");
    }
    return o;
}
