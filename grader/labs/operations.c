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

/* The first index of what this rank holds of the dimension along which x is split. */
static int64_t begin_of(const Tensor *x, const Mesh *mesh)
{
    if (x->placement.kind != SHARD)
        return 0;
    return x->undivided ? chunk(x->undivided, mesh->tp_rank, mesh->tp_degree).begin
                        : mesh->tp_rank * x->shape.size[x->placement.dim];
}

/* Sums up these numbers of x: its own, or its gradient's. */
static void sum_up(TapeTensor *t, const Tensor *x, const Tensor *numbers, const Mesh *mesh)
{
    const int64_t count = tensor_count(x), begin = begin_of(x, mesh);
    t->size = -1;
    if (!numbers || !numbers->buffer || numbers->dtype != REAL)
        return;
    backend_wait();
    t->size = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t place[4] = {0}, at = i;
        double weight[2];
        for (int d = x->shape.rank - 1; d >= 0; at /= x->shape.size[d--])
            place[d] = at % x->shape.size[d];
        if (x->placement.kind == SHARD)
            place[x->placement.dim] += begin;
        weigh(place, weight);
        for (int k = 0; k < 2; k++)
            t->sum[k] += weight[k] * (double)reals(numbers)[i];
        t->size += weight[0] * fabs((double)reals(numbers)[i]);
    }
}

/* The same for integers, which index a dimension whose part on this rank begins here. */
static void sum_up_integers(TapeTensor *t, const Tensor *x, int64_t begin)
{
    t->size = 0;
    for (int64_t i = 0; x->buffer && i < tensor_count(x); i++) {
        double weight[2];
        const int32_t id = ints(x)[i];
        weigh((int64_t[4]){i}, weight);
        t->sum[0] += weight[0] * id;
        t->sum[1] += id == NO_ID ? 0 : weight[0] * (double)(id + begin + 1);
        t->size += id != NO_ID;
    }
}

static TapeTensor described(const Tensor *x, const Tensor *numbers, const Mesh *mesh)
{
    TapeTensor t = {.tensor = x,
                    .shape = x->shape,
                    .kind = (int32_t)x->placement.kind,
                    .dim = x->placement.dim,
                    .integers = x->dtype != REAL,
                    .needs_gradient = x->needs_gradient};
    if (x->parameter)
        snprintf(t.parameter, sizeof t.parameter, "%s", x->parameter->name);
    sum_up(&t, x, numbers, mesh);
    return t;
}

TapeOperation operation_record(const char *function, void *address, const Tensor *output,
                               int inputs, Tensor *const *input, bool back)
{
    const Attribute *with = output->tape->next.of;
    const Mesh *mesh = output->tape->mesh;
    TapeOperation o = {.address = address,
                       .tape = output->tape,
                       .back = back,
                       .output = described(output, back ? output->gradient : output, mesh)};
    int64_t begin = 0;
    snprintf(o.name, sizeof o.name, "%s", function);
    for (int i = 0; i < inputs && output->placement.kind == PARTIAL; i++)
        begin += input[i] ? begin_of(input[i], mesh) : 0;
    for (int i = 0; i < inputs && i < MOST_INPUTS; i++) {
        if (!input[i])
            continue;
        TapeTensor *t = &o.input[o.inputs++];
        *t = described(input[i], back ? NULL : input[i], mesh);
        if (t->integers)
            sum_up_integers(t, input[i], begin);
    }
    for (int i = 0; i < MOST_ATTRIBUTES && with[i].name; i++) {
        o.attribute[i].number = with[i].number;
        snprintf(o.attribute[i].name, sizeof o.attribute[i].name, "%s", with[i].name);
        snprintf(o.attribute[i].text, sizeof o.attribute[i].text, "%s",
                 with[i].text ? with[i].text : "");
    }
    return o;
}
