#include "grader/plays/play.h"

static void *make(Builder *b, const Case *c, int which)
{
    return attention_new(b, width_of(c, which), which ? c->A / 2 > c->tp ? c->A / 2 : c->A : c->A);
}

static Tensor *forward(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return attention_forward(layer, x, mask, mesh);
}

static Sizes sizes(const Play *play, int which)
{
    const Case *c = &play->c;
    return (Sizes){.B = c->B, .S = c->S, .H = width_of(c, which)};
}

void PLAY(Play *play)
{
    play_layers(play, &(LayerPlay){make, forward, .takes_mask = true, .sizes = sizes});
}
