/* The loss, and tensors made from the caller's numbers. */
#include <string.h>

#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"

static void cross_entropy_gradient(Node *node, Tensor *dy)
{
    Tensor *dlogits = tape_tensor(dy->tape, REAL, node->input[0]->shape, whole());
    int64_t count = tensor_count(dlogits);
    kernel_vector_copy(count, reals(node->saved[0]), reals(dlogits));
    real factor;
    backend_read(&factor, reals(dy), sizeof factor);
    kernel_vector_scale(count, (double)factor, reals(dlogits));
    gradient_add(node->input[0], dlogits);
}

static void check_labels(const Tensor *logits, const Tensor *labels)
{
    if (logits->shape.rank != 2 || labels->dtype != INT32 || labels->shape.rank != 1 ||
        labels->shape.size[0] != logits->shape.size[0])
        misuse("logits [B,classes], labels [B]", "cross entropy: %s and labels %s",
               TENSOR_TEXT(logits), TENSOR_TEXT(labels));
    for (int64_t i = 0; i < labels->shape.size[0]; i++)
        if (ints(labels)[i] < 0 || ints(labels)[i] >= logits->shape.size[1])
            misuse("labels are numbered from 0", "cross entropy: label %d with %lld classes",
                   ints(labels)[i], (long long)logits->shape.size[1]);
}

Tensor *cross_entropy_mean(Tensor *logits, Tensor *labels, int64_t rows_per_step, real *losses)
{
    check_labels(logits, labels);
    Tape *tape = tape_of("cross entropy", logits, labels);
    place_result(tape, PLACE_ALL_OF_X, "cross entropy", logits, NULL, LAST);
    int64_t rows = logits->shape.size[0], classes = logits->shape.size[1];
    Tensor *each = tape_host_tensor(tape, REAL, SHAPE(rows), whole());
    Tensor *dlogits = tape_tensor(tape, REAL, logits->shape, whole());
    kernel_cross_entropy(rows, classes, reals(ready(logits)), ints(labels), reals(each),
                         reals(dlogits));
    kernel_vector_scale(tensor_count(dlogits), 1.0 / (double)rows_per_step, reals(dlogits));
    Tensor *mean = tape_host_tensor(tape, REAL, SHAPE(1), whole());
    double sum = 0;
    backend_wait();
    for (int64_t i = 0; i < rows; i++)
        sum += (double)reals(each)[i];
    reals(mean)[0] = (real)(sum / (double)rows_per_step);
    if (losses)
        memcpy(losses, reals(each), (size_t)rows * sizeof *losses);
    Node *node =
        tape_operation(tape, N_("cross entropy"), cross_entropy_gradient, mean, 1, &logits);
    if (node)
        node_keep(node, 0, dlogits);
    return mean;
}

Tensor *tape_reals(Tape *tape, Shape shape, Placement placement, const real *numbers,
                   bool needs_gradient)
{
    Tensor *x = tape_tensor(tape, REAL, shape, placement);
    backend_write(reals(x), numbers, shape_count(shape) * (int64_t)sizeof(real));
    x->needs_gradient = needs_gradient;
    return x;
}

Tensor *tape_ints(Tape *tape, Shape shape, const int32_t *numbers)
{
    Tensor *x = tape_host_tensor(tape, INT32, shape, whole());
    for (int64_t i = 0, count = shape_count(shape); i < count; i++)
        ints(x)[i] = numbers[i];
    return x;
}
