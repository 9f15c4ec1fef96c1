/* The record of an operation on a tape. */
#include "grader/labs/operations.h"

#include <math.h>

#include "backend/backend.h"
#include "model/model.h"

/* Two weights of a place in the whole tensor. */
static void weigh(const int64_t place[4], double weight[2])
{
    uint64_t x = 0;
    for (int i = 0; i < 4; i++)
        x = (x + (uint64_t)place[i] + 1) * 0x9e3779b97f4a7c15;
    x ^= x >> 31;
    weight[0] = 0.5 + (double)(x & 0xffffff) * 0x1p-24;
    weight[1] = 0.5 + (double)(x >> 40) * 0x1p-24;
}

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
    for (int64_t i = 0; a.integers && x->buffer && i < tensor_count(x); i++) {
        double weight[2];
        weigh((int64_t[4]){i}, weight);
        a.sum += weight[0] * ints(x)[i];
    }
    return a;
}

/* Sums up these numbers of x: its own, or its gradient's. */
static void sum_up(TapeOperation *o, const Tensor *x, const Tensor *numbers)
{
    o->size = -1;
    if (!numbers || !numbers->buffer || numbers->dtype != REAL)
        return;
    backend_wait();
    o->size = 0;
    for (int64_t i = 0, count = tensor_count(x); i < count; i++) {
        int64_t place[4] = {0}, at = i;
        double weight[2];
        for (int d = x->shape.rank - 1; d >= 0; at /= x->shape.size[d--])
            place[d] = at % x->shape.size[d];
        if (x->placement.kind == SHARD)
            place[x->placement.dim] += x->tape->mesh->tp_rank * x->shape.size[x->placement.dim];
        weigh(place, weight);
        for (int k = 0; k < 2; k++)
            o->sum[k] += weight[k] * (double)reals(numbers)[i];
        o->size += weight[0] * fabs((double)reals(numbers)[i]);
    }
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
    sum_up(&o, output, back ? output->gradient : output);
    return o;
}
