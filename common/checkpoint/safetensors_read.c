/* Reads parts of safetensors, in any of several types. */
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/language.h"
#include "checkpoint/safetensors.h"

/* ---- types --------------------------------------------------------------------------------------------- */

static real real_of(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return (real)number;
}

/* Moves the bits to their positions in a float, then multiplies by 2^112: the exponents' biases
 * differ by 112. */
static real from_f16(const void *bytes)
{
    uint16_t bits;
    memcpy(&bits, bytes, sizeof bits);
    const uint32_t moved = (uint32_t)(bits & 0x7fff) << 13;
    const bool is_finite = moved < UINT32_C(0x1f) << 23;
    const real size = is_finite ? real_of(moved) * (real)0x1p112 : real_of(moved | 0x7f800000);
    return bits >> 15 ? -size : size;
}

static real from_bf16(const void *bytes)
{
    uint16_t upper;
    memcpy(&upper, bytes, sizeof upper);
    return real_of((uint32_t)upper << 16);
}

static real from_f32(const void *bytes)
{
    uint32_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return real_of(bits);
}

static real from_f64(const void *bytes)
{
    double number;
    memcpy(&number, bytes, sizeof number);
    return (real)number;
}

/* A type whose numbers can be read. */
typedef struct Type {
    const char *dtype;
    int64_t size; /* in bytes */
    real (*number)(const void *bytes);
} Type;

static const Type types[] = {{"F32", sizeof(float), from_f32},
                             {"F16", sizeof(uint16_t), from_f16},
                             {"BF16", sizeof(uint16_t), from_bf16},
                             {"F64", sizeof(double), from_f64}};

static const Type *type_of(const SafeTensor *tensor)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(tensor->dtype, types[i].dtype))
            return &types[i];
    return NULL;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

enum { DIMS = sizeof((Box){0}.range) / sizeof(Range) };

Box box_of(Shape shape, int dim, Range held)
{
    Box box;
    for (int i = 0; i < DIMS; i++) {
        int d = i - (DIMS - shape.rank);
        box.range[i] = d < 0 ? (Range){0, 1} : d == dim ? held : (Range){0, shape.size[d]};
    }
    return box;
}

static int64_t extent(const Box *box, int from)
{
    int64_t count = 1;
    for (int i = from; i < DIMS; i++)
        count *= box->range[i].end - box->range[i].begin;
    return count;
}

/* What copy_common() copies: elements of a tensor, to a part. */
typedef struct Copy {
    const Safetensors *file;
    const SafeTensor *tensor;
    const Type *type;
    const Box *from, *to;
    const char *bytes; /* of the whole tensor; NULL: read them from the file */
    real *values;      /* [to] */
    Problem *problem;
} Copy;

/* copy_reals() and copy_numbers() copy `count` numbers that are consecutive in the tensor and in
 * the part. */

/* Copies numbers of type `real`, which need no conversion. */
static bool copy_reals(const Copy *copy, int64_t x, int64_t y, int64_t count)
{
    const int64_t offset = x * (int64_t)sizeof(real), bytes = count * (int64_t)sizeof(real);
    if (!copy->bytes)
        return safetensors_bytes(copy->file, copy->values + y, bytes,
                                 copy->file->data + copy->tensor->begin + offset, copy->problem);
    memcpy(copy->values + y, copy->bytes + offset, (size_t)bytes);
    return true;
}

static bool copy_numbers(const Copy *copy, int64_t x, int64_t y, int64_t count)
{
    enum { ROOM = 1 << 15 };
    const Type *type = copy->type;
    char room[ROOM];
    for (int64_t done = 0, some; done < count; done += some) {
        const int64_t most = ROOM / type->size, offset = (x + done) * type->size;
        const char *from = copy->bytes ? copy->bytes + offset : room;
        real *to = copy->values + y + done;
        some = count - done < most ? count - done : most;
        if (!copy->bytes &&
            !safetensors_bytes(copy->file, room, some * type->size,
                               copy->file->data + copy->tensor->begin + offset, copy->problem))
            return false;
        for (int64_t i = 0; i < some; i++)
            to[i] = type->number(from + i * type->size);
    }
    return true;
}

static bool is_same_from(const Copy *copy, int dim)
{
    for (; dim < DIMS; dim++)
        if (copy->from->range[dim].begin != copy->to->range[dim].begin ||
            copy->from->range[dim].end != copy->to->range[dim].end)
            return false;
    return true;
}

/* Copies the intersection of the boxes, from dimension i on: from offset x of `from` to y of `to`. */
static bool copy_common(const Copy *copy, int64_t x, int64_t y, int i)
{
    const Range a = copy->from->range[i], b = copy->to->range[i];
    const int64_t begin = a.begin > b.begin ? a.begin : b.begin,
                  end = a.end < b.end ? a.end : b.end, inner_x = extent(copy->from, i + 1),
                  inner_y = extent(copy->to, i + 1);
    x += (begin - a.begin) * inner_x;
    y += (begin - b.begin) * inner_y;
    if (begin >= end || inner_x == 0 || inner_y == 0)
        return true;
    if (is_same_from(copy, i + 1)) {
        const bool is_real = copy->type->number == (sizeof(real) == 4 ? from_f32 : from_f64);
        return (is_real ? copy_reals : copy_numbers)(copy, x, y, (end - begin) * inner_x);
    }
    bool good = true;
    for (int64_t at = 0; good && at < end - begin; at++)
        good = copy_common(copy, x + at * inner_x, y + at * inner_y, i + 1);
    return good;
}

/* Reads all bytes of a tensor and checks them; the caller frees them. NULL with `problem` on
 * failure. */
static char *checked_bytes(const Safetensors *file, const SafeTensor *tensor, Problem *problem)
{
    char *bytes = malloc((size_t)tensor->bytes + 1);
    if (safetensors_bytes(file, bytes, tensor->bytes, file->data + tensor->begin, problem) &&
        (!strcmp(checksum_of(bytes, (size_t)tensor->bytes).digits,
                 safetensors_checksum(file, tensor->name)) ||
         safetensors_damaged(file, problem, N_("the checksum does not match the numbers of"),
                             tensor->name)))
        return bytes;
    free(bytes);
    return NULL;
}

static bool have_common(const Box *a, const Box *b)
{
    for (int i = 0; i < DIMS; i++)
        if (a->range[i].end <= b->range[i].begin || b->range[i].end <= a->range[i].begin)
            return false;
    return true;
}

bool safetensors_read_box(const Safetensors *file, const SafeTensor *tensor, const Box *place,
                          const Box *wanted, real *values, Problem *problem)
{
    const Type *type = type_of(tensor);
    if (!type)
        return problem_set(
            problem, file->path, "the kit reads numbers of type F32, F16, BF16 and F64",
            "%s is of type %s", clean_name(tensor->name).text, clean_name(tensor->dtype).text);
    if (!have_common(place, wanted))
        return true;
    char *bytes = file->has_checksums ? checked_bytes(file, tensor, problem) : NULL;
    const Copy copy = {file, tensor, type, place, wanted, bytes, values, problem};
    const bool good = (!file->has_checksums || bytes) && copy_common(&copy, 0, 0, 0);
    free(bytes);
    return good;
}

bool safetensors_read(const Safetensors *file, const SafeTensor *tensor, real *values,
                      Problem *problem)
{
    const Box all = box_of(tensor->shape, -1, (Range){0});
    return safetensors_read_box(file, tensor, &all, &all, values, problem);
}
