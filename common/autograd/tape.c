/* The tape: its tensors and operations, and their lifetime. */
#include "autograd/tape.h"

#include <stdlib.h>
#include <string.h>

#include "base/spans.h"
#include "base/run.h"

enum { CHUNK = 256 }; /* an arena grows by this many records */

Tape *tape_new(Pool *pool, const Mesh *mesh)
{
    Tape *tape = calloc(1, sizeof *tape);
    tape->pool = pool;
    tape->mesh = mesh;
    tape->recording = true;
    return tape;
}

Observer *tape_observer(void)
{
    static Observer observer;
    return &observer;
}

static Tensor *tensor_at(const Tape *tape, int64_t i)
{
    return (Tensor *)tape->tensors.chunks[i / CHUNK] + i % CHUNK;
}

/* If a sum or a send of x is in progress, x's memory does not return to the pool: the transport
 * still uses it. */
void tape_release_value(Tensor *x)
{
    if (!x->summing)
        buffer_release(x->buffer);
    x->buffer = NULL;
    x->data = NULL;
}

static void must_be_summed(const Tensor *x)
{
    if (x->summing)
        misuse_since(
            x->summing, "each start needs its own pending_wait(), in the same step",
            "the exchange that was started here was never waited for, and its tensor is now "
            "released");
}

void tape_must_be_summed(const Tape *tape)
{
    for (int64_t i = 0; i < tape->tensors.count; i++)
        must_be_summed(tensor_at(tape, i));
}

void tape_release_all(Tape *tape, const Tensor *a, const Tensor *b)
{
    for (int64_t i = 0; i < tape->tensors.count; i++) {
        Tensor *x = tensor_at(tape, i);
        if (x != a && x != b && !x->reached)
            tape_release_value(x);
    }
}

void tape_drop_since(Tape *tape, TapeMark mark, const Tensor *result)
{
    for (int64_t i = mark.tensors; i < tape->tensors.count; i++) {
        Tensor *x = tensor_at(tape, i);
        must_be_summed(x);
        if (x != result && !x->reached)
            tape_release_value(x);
    }
}

void tape_reset(Tape *tape, TapeBatch batch)
{
    for (int64_t i = 0; i < tape->tensors.count; i++) {
        tape_release_value(tensor_at(tape, i));
        tensor_at(tape, i)->is_over = true;
    }
    backend_wait_always(false); /* pointers into the tensors are invalid from here on */
    tape->tensors.count = tape->nodes.count = 0;
    tape->last = tape->floor = NULL;
    tape->call = NULL;
    tape->recording = true;
    tape->batch = batch;
}

static void arena_free(Arena *arena)
{
    for (int64_t i = 0; i < arena->room / CHUNK; i++)
        free(arena->chunks[i]);
    free(arena->chunks);
}

void tape_free(Tape *tape)
{
    tape_reset(tape, (TapeBatch){0});
    arena_free(&tape->tensors);
    arena_free(&tape->nodes);
    free(tape);
}

bool tape_record(Tape *tape, bool record)
{
    bool before = tape->recording;
    tape->recording = record;
    return before;
}

static void *next_record(Arena *arena, size_t size)
{
    if (arena->count == arena->room) {
        size_t chunks = (size_t)(arena->room / CHUNK);
        arena->chunks = realloc(arena->chunks, (chunks + 1) * sizeof *arena->chunks);
        arena->chunks[chunks] = malloc(CHUNK * size);
        arena->room += CHUNK;
    }
    int64_t i = arena->count++;
    return arena->chunks[i / CHUNK] + (size_t)(i % CHUNK) * size;
}

static Tensor *new_tensor(Tape *tape)
{
    Tensor *x = next_record(&tape->tensors, sizeof *x);
    *x = (Tensor){.tape = tape};
    return x;
}

static Node *new_node(Tape *tape)
{
    Node *node = next_record(&tape->nodes, sizeof *node);
    *node = (Node){.previous = tape->last};
    tape->last = node;
    return node;
}

static int64_t bytes_of(DType dtype, Shape shape)
{
    static const int64_t size[] = {
        [REAL] = sizeof(real), [INT32] = sizeof(int32_t), [HALF] = sizeof(uint16_t)};
    return shape_count(shape) * size[dtype];
}

Tensor *tape_later(Tape *tape, Shape shape, Placement placement)
{
    Tensor *x = new_tensor(tape);
    x->shape = shape;
    x->placement = placement;
    return x;
}

void tape_allocate(Tensor *x)
{
    x->buffer = pool_get_shaped(x->tape->pool, bytes_of(x->dtype, x->shape), x->shape);
    x->data = x->buffer->data;
}

Tensor *tape_tensor(Tape *tape, DType dtype, Shape shape, Placement placement)
{
    Tensor *x = tape_later(tape, shape, placement);
    x->dtype = dtype;
    tape_allocate(x);
    return x;
}

Tensor *tape_host_tensor(Tape *tape, DType dtype, Shape shape, Placement placement)
{
    Tensor *x = tape_later(tape, shape, placement);
    x->dtype = dtype;
    x->buffer = pool_get_for_host(tape->pool, bytes_of(dtype, shape), shape);
    x->data = x->buffer->data;
    backend_wait(); /* kernels may still be reading the buffer's previous contents */
    return x;
}

Tensor *tape_view(Tape *tape, const Tensor *x, Placement placement)
{
    Tensor *view = tape_later(tape, x->shape, placement);
    view->dtype = x->dtype;
    view->buffer = buffer_hold(x->buffer);
    view->data = x->data;
    return view;
}

/* As a return address, which lies behind its line's first byte. */
static void *line_of_function(char *function)
{
    return function ? function + 1 : NULL;
}

static void *shown(const char *name, const Tensor *output, int inputs, Tensor *const *input)
{
    const Observer *observer = tape_observer();
    if (!observer->operation)
        return NULL;
    void *called_at = callsite(),
         *address = called_at ? called_at : line_of_function(output->tape->next_calls);
    observer->operation(observer->context, name, address, output, inputs, input, false);
    return address;
}

void tape_show_call(const char *name, void *called, const Tensor *output, int inputs,
                    Tensor *const *input)
{
    const Observer *observer = tape_observer();
    if (observer->operation)
        observer->operation(observer->context, name, called ? line_of_function(called) : callsite(),
                            output, inputs, input, false);
}

Node *tape_operation(Tape *tape, const char *name, void (*backward)(Node *, Tensor *),
                     Tensor *output, int inputs, Tensor *const *input)
{
    bool wanted = false;
    span_end(name, tape->call && tape->recording); /* in recompute_backward()? */
    if (tape_observer()->between)
        tape_observer()->between(tape->mesh);
    for (int i = 0; i < inputs; i++)
        wanted = wanted || (input[i] && input[i]->needs_gradient);
    output->needs_gradient = output->needs_gradient || (wanted && tape->recording);
    void *address = tape->recording ? shown(name, output, inputs, input) : NULL;
    tape->next = (Attributes){0};
    tape->next_calls = NULL;
    if (!tape->recording)
        return NULL;
    if (!wanted)
        return NULL;
    Node *node = new_node(tape);
    node->name = name;
    node->backward = backward;
    node->output = output;
    node->address = address;
    memcpy(node->input, input, (size_t)inputs * sizeof *input);
    output->producer = node;
    return node;
}

void node_run_last(Node *node)
{
    Tape *tape = node->output->tape;
    Node *next = node;
    while (next->previous != node->input[0]->producer && next->previous != tape->floor)
        next = next->previous;
    if (next == node)
        return;
    tape->last = node->previous;
    node->previous = next->previous;
    next->previous = node;
}

Tensor *node_keep(Node *node, int slot, Tensor *x)
{
    Tape *tape = node->output->tape;
    node->saved[slot] = tape_view(tape, available(x), x->placement);
    node->saved[slot]->kept = true;
    return node->saved[slot];
}

bool can_be_computed(const Tensor *x)
{
    return x->producer && x->producer->compute;
}

void node_keep_or_compute(Node *node, int slot, Tensor *x)
{
    if (can_be_computed(x))
        node->saved[slot] = x;
    else
        node_keep(node, slot, x);
}

void must_not_be_ids(const char *function, const Tensor *x)
{
    must_exist(function, x);
    if (x->dtype == INT32)
        misuse("lookup turns ids into vectors, and attention takes the mask as it is",
               "%s: %s holds integers (ids or a mask)", function, SHAPE_TEXT(x->shape));
}

static void must_live(bool lives)
{
    if (!lives)
        misuse(
            "a tensor lives for one step: do not keep it in a static variable, and do not use one "
            "from an earlier block",
            "the numbers of a tensor were released before this use");
}

Tape *tape_of(const char *function, const Tensor *x, const Tensor *y)
{
    must_live(!(x && x->is_over) && !(y && y->is_over));
    Tape *tape = x && x->tape ? x->tape : y ? y->tape : NULL;
    if (!tape)
        misuse("call it in a ..._forward function",
               "%s was called outside a forward or backward pass", function);
    return tape;
}

Tensor *available(Tensor *x)
{
    void *used_at = x->summing ? callsite() : NULL;
    if (x->summing)
        misuse_since(used_at ? used_at : x->summing,
                     "use it before the start, or after pending_wait()",
                     "a tensor was used while its sum was still in progress");
    if (x->buffer)
        return x;
    Node *producer = x->producer;
    if (x->parameter)
        misuse("initial values are set after the whole model is created: look at them in the "
               "forward pass",
               "a parameter has no values yet while layers are being created");
    must_live(can_be_computed(x));
    producer->compute(producer);
    span_end(producer->name, false);
    return x;
}

/* Can x's operation compute it in either type? */
static bool has_a_choice(const Tensor *x)
{
    return can_be_computed(x) && x->producer->writes_16_bits;
}

static void choose_16_bits(Tensor *x)
{
    if (!x->buffer && has_a_choice(x) && precision_is_16_bits(backend_products()))
        x->dtype = HALF;
}

Tensor *available_narrow(Tensor *x)
{
    choose_16_bits(x);
    return available(x);
}

Tensor *ready(Tensor *x)
{
    if (x->dtype == HALF && has_a_choice(x)) {
        Buffer *rounded = x->buffer;
        x->dtype = REAL;
        x->producer->compute(x->producer);
        span_end(x->producer->name, false);
        buffer_release(rounded);
    }
    if (available(x)->dtype != HALF)
        return x;
    Buffer *in_16_bits = x->buffer;
    const uint16_t *numbers = halves(x);
    x->dtype = REAL;
    x->may_be_shared = false;
    tape_allocate(x);
    kernel_widen(tensor_count(x), numbers, reals(x));
    buffer_release(in_16_bits);
    return x;
}

/* A parameter's copy belongs to the model. If the model has none, the parameter does not refer to
 * the new copy, because it outlives the tape that owns the copy. */
Tensor *rounded_copy(Tape *tape, Tensor *x)
{
    choose_16_bits(x);
    if (x->dtype != REAL)
        return available(x);
    Tensor *copy = x->rounded;
    Parameter *p = x->parameter;
    if (copy && copy->buffer && !(p && p->rounded_is_old) && !x->reached)
        return copy;
    ready(x);
    if (!copy || !copy->buffer)
        copy = tape_tensor(tape, HALF, x->shape, x->placement);
    if (p)
        p->rounded_is_old = false;
    else
        x->rounded = copy;
    kernel_round(tensor_count(x), reals(x), halves(copy));
    return copy;
}

Tensor *as_reals(Tensor *x)
{
    if (available_narrow(x)->dtype != HALF)
        return x;
    Tensor *copy = tape_tensor(x->tape, REAL, x->shape, x->placement);
    kernel_widen(tensor_count(x), halves(x), reals(copy));
    return copy;
}

Tensor *in_type_of(const Tensor *other, Tensor *x)
{
    return other->dtype == HALF ? rounded_copy(x->tape, x) : ready(x);
}

void unshare(Tensor *x) /* of reals */
{
    if (x->buffer->references == 1)
        return;
    Buffer *own = pool_get(x->buffer->pool, x->buffer->bytes, x->buffer->category);
    kernel_vector_copy(tensor_count(x), x->data, own->data);
    buffer_release(x->buffer);
    x->buffer = own;
    x->data = own->data;
}

void begin_change(Tensor *x)
{
    ready(x);
    if (x->may_be_shared)
        unshare(x);
    if (can_be_computed(x))
        x->kept = true;
    if (!x->parameter)
        x->rounded = NULL;
}

TapeMark tape_mark(const Tape *tape)
{
    return (TapeMark){tape->tensors.count};
}

void tape_release_since(Tape *tape, TapeMark mark, const Tensor *result)
{
    for (int64_t i = mark.tensors; i < tape->tensors.count; i++) {
        Tensor *x = tensor_at(tape, i);
        if (x != result && !x->kept) {
            must_be_summed(x);
            tape_release_value(x);
        }
    }
}
