#include "grader/plays/play.h"

static void *make(Builder *b, const Case *c, int which)
{
    return embedding_new(for_embedding(b), table_rows_of(c, which), width_of(c, which));
}

static Tensor *forward(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return embedding_forward(layer, x, mesh);
}

static Sizes sizes(const Play *play, int which)
{
    const Case *c = &play->c;
    const Parameter *table = model_parameter(play->model, "first.weight");
    return (Sizes){.B = c->B,
                   .S = c->S,
                   .H = width_of(c, which),
                   .vocabulary = table && table->placement.kind == SHARD && table->placement.dim == 0};
}

void PLAY(Play *play)
{
    play_layers(play, &(LayerPlay){make, forward, .takes_ids = true, .sizes = sizes});
}
