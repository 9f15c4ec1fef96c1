#include "grader/plays/play.h"

enum { BLOCK, CLASSIFIER }; /* the kinds of cases */

static void *make_block(Builder *b, const Case *c, int which)
{
    return block_new(b, width_of(c, which), which ? c->tp : c->A, (float)c->p);
}

static Tensor *forward_block(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return block_forward(layer, x, mask, mesh);
}

static void *make_classifier(Builder *b, const Case *c, int which)
{
    return classifier_new(b, width_of(c, which), which ? 3 : 2, (float)c->p);
}

static Tensor *forward_classifier(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return classifier_forward(layer, x, mesh);
}

static Sizes sizes(const Play *play, int which)
{
    const Case *c = &play->c;
    return (Sizes){.B = c->B, .S = c->S, .H = width_of(c, which), .C = which ? 3 : 2, .part = c->kind};
}

void PLAY(Play *play)
{
    if (play->c.kind == BLOCK)
        play_layers(play, &(LayerPlay){make_block, forward_block, .takes_mask = true, .sizes = sizes});
    else
        play_layers(play, &(LayerPlay){make_classifier, forward_classifier, .sizes = sizes});
}
