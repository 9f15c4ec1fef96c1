/* Shapes, placements, and their text forms. */
#include "tensor/tensor.h"

#include <stdio.h>

#include "base/language.h"
#include "base/run.h"

int64_t shape_count(Shape shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        count *= shape.size[i];
    return count;
}

bool shape_equal(Shape a, Shape b)
{
    bool equal = a.rank == b.rank;
    for (int i = 0; equal && i < a.rank; i++)
        equal = a.size[i] == b.size[i];
    return equal;
}

int64_t shape_last(Shape shape)
{
    return shape.rank ? shape.size[shape.rank - 1] : 1;
}

Shape shape_with(Shape shape, int dim, int64_t size)
{
    shape.size[dim] = size;
    return shape;
}

int shape_dim(const char *function, Shape shape, int dim)
{
    int from_front = dim < 0 ? dim + shape.rank : dim;
    if (from_front < 0 || from_front >= shape.rank)
        misuse("dimensions are numbered from 0; LAST is the last one",
               "%s: there is no dimension %d in a tensor %s", function, dim, SHAPE_TEXT(shape));
    return from_front;
}

const char *shape_text(Shape shape, char text[64])
{
    int length = snprintf(text, 64, "[");
    const int most = (int)(sizeof shape.size / sizeof *shape.size);
    for (int i = 0; i < shape.rank && i < most && length < 48; i++)
        length += snprintf(text + length, 64 - (size_t)length, "%s%lld", i ? "," : "",
                           (long long)shape.size[i]);
    snprintf(text + length, 64 - (size_t)length, shape.rank > most ? ",...]" : "]");
    return text;
}

const char *placement_text(Placement placement, char text[32])
{
    static const char *const names[] = {N_("whole"),       N_("copied"),  "shard",
                                        N_("partial sum"), N_("unknown"), N_("undecided")};
    if (placement.kind == SHARD)
        snprintf(text, 32, "shard(%d)", placement.dim);
    else
        snprintf(text, 32, "%s", names[placement.kind]);
    return text;
}

/* Is this a valid record? A lab that writes to the Tensor instead of its numbers overwrites it. */
static bool is_intact(const Tensor *x)
{
    const int kind = (int)x->placement.kind;
    return x->shape.rank >= 0 &&
           x->shape.rank <= (int)(sizeof x->shape.size / sizeof *x->shape.size) && kind >= WHOLE &&
           kind <= UNDECIDED;
}

const char *tensor_text(const Tensor *x, char text[96])
{
    char placement[32], over[32];
    if (!is_intact(x)) {
        snprintf(text, 96, "%s",
                 _("a tensor that was overwritten: its numbers are at tensor_data(x), not at x"));
        return text;
    }
    const char *placed =
        x->placement.kind == UNKNOWN ? "" : _(placement_text(x->placement, placement));
    if (x->partial && *x->partial) {
        snprintf(over, sizeof over, _("partial sum over %s"), axis_name(*x->partial));
        placed = over;
    }
    snprintf(text, 96, "%s%s%s", SHAPE_TEXT(x->shape), *placed ? " " : "", placed);
    return text;
}

const char *axis_name(unsigned axes)
{
    return axes & OVER_DP ? "dp" : axes & OVER_TP ? "tp" : "pp";
}

bool placement_equal(Placement a, Placement b)
{
    return a.kind == b.kind && (a.kind != SHARD || a.dim == b.dim);
}

Placement whole(void)
{
    return (Placement){WHOLE, 0};
}

Placement shard(int dim)
{
    return (Placement){SHARD, dim};
}

Range chunk(int64_t size, int part, int parts)
{
    int64_t each = (size + parts - 1) / parts, begin = part * each, end = begin + each;
    return (Range){begin < size ? begin : size, end < size ? end : size};
}

int64_t tensor_count(const Tensor *x)
{
    must_exist("tensor_count", x);
    return shape_count(x->shape);
}

int64_t tensor_size(const Tensor *x, int i)
{
    must_exist("tensor_size", x);
    return x->shape.size[shape_dim("tensor_size", x->shape, i)];
}
