/* Labs 12 and 13: the usual case, and what a pipeline may send. */
#include "grader/labs/stages.h"

/* In each replica, N numbers go from each stage to the next, on each of the tp pipelines. For each
 * micro-batch, the ranks of a stage exchange what labs 3 to 7 exchange: `sums` all-reduces per
 * block, and the exchanges of the embedding and of the classifier. */
static Allowance sent(int64_t n, const Sizes *z, int64_t times, int64_t sums, int64_t of_classifier)
{
    const int64_t tp = z->tp, N = z->B * z->S * z->H, replicas = n / z->stages;
    const int64_t of_embedding =
        z->vocabulary ? sent_by_all_reduce(tp, N) : sent_by_all_gather(tp, N);
    const int64_t within = sums * z->N * sent_by_all_reduce(tp, N) + of_embedding +
                           sent_by_all_reduce(tp, z->B * of_classifier);
    return (Allowance){replicas * (times * (z->stages - 1) * N + within / tp),
                       tp > 1 ? z->micros * (sums * z->N + 3) : 0};
}

Allowance stages_sent_forward(int64_t n, const Sizes *z)
{
    return sent(n, z, 1, 2, z->C);
}

Allowance stages_sent_in_step(int64_t n, const Sizes *z)
{
    return sent(n, z, 2, 4, z->C + z->H);
}

/* Sets world / tp stages. A case that then lowers their number has replicas, which run the same
 * rows. */
Case stages_usual(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = usual_case(lab, d, tp);
    c.world = world;
    c.tp = tp;
    c.pp = world / tp;
    c.more_B = c.idle = 0;
    c.integers = c.exponent = c.dy_exponent = 0;
    c.blocks = 5;
    c.H = 16;
    c.A = 4;
    c.V = draw(d, 12, 29);
    return c;
}

const char *stages_misfit(const Case *c)
{
    return c->H % c->A || c->A % c->tp ? _("tp must divide A, and A must divide H")
           : c->H % c->tp              ? _("tp must divide H")
           : c->blocks < c->pp         ? _("each stage needs a block")
           : c->B % micros_of(c)       ? _("the number of micro-batches must divide B")
                                       : NULL;
}
