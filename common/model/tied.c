/* Tied parameters, which two stages hold: the embedding of a language model, whose weights the head
   uses too (Megatron-LM, arXiv:2104.04473; there the two stages are the embedding group). */
#include "comm/comm.h"
#include "model/model.h"

/* Adds the gradient of the other stage. Addition is commutative, so both stages get the same
 * bits. */
static void add_gradient_of_twin(Model *model, const Parameter *p)
{
    const Mesh *mesh = model->mesh;
    const int64_t count = tensor_count(p->value);
    real *mine = reals(p->value->gradient);
    Buffer *theirs = pool_get(model->pool, count * (int64_t)sizeof(real), ACTIVATIONS);
    if (mesh->pp_rank < p->twin)
        comm_send(mesh->pp, mine, count, p->twin);
    comm_receive(mesh->pp, theirs->data, count, p->twin);
    if (mesh->pp_rank > p->twin)
        comm_send(mesh->pp, mine, count, p->twin);
    kernel_vector_accumulate(count, theirs->data, mine);
    buffer_release(theirs);
}

void model_sum_tied(Model *model)
{
    for (const Parameter *p = model->parameters; p; p = p->next)
        if (p->partial & OVER_PP)
            add_gradient_of_twin(model, p);
    model_gradients_added(model, (Range){0, model->arena_size}, OVER_PP);
}
