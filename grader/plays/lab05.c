#include "grader/plays/play.h"

static int inner_of(const Case *c, int which)
{
    return which ? 2 * c->F : c->F;
}

static int out_of(const Case *c, int which)
{
    return which ? c->out + c->tp : c->out;
}

static void *make(Builder *b, const Case *c, int which)
{
    return feed_forward_new(b, width_of(c, which), inner_of(c, which), out_of(c, which), (float)c->p);
}

static Tensor *forward(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return feed_forward_forward(layer, x, mesh);
}

static Sizes sizes(const Play *play, int which)
{
    const Case *c = &play->c;
    return (Sizes){
        .B = c->B, .S = c->S, .H = width_of(c, which), .F = inner_of(c, which), .OUT = out_of(c, which)};
}

void PLAY(Play *play)
{
    play_layers(play, &(LayerPlay){make, forward, .sizes = sizes});
}
