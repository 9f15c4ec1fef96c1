/* LLaMA weights in a file of karpathy's llama2.c: seven int32, then the float32 weights, one kind
   after the other, each for all layers. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/language.h"
#include "pretrained/internal.h"

typedef struct Header {
    int32_t hidden, inner, layers, heads, kv_heads;
    int32_t vocabulary; /* negative: the head has a weight of its own */
    int32_t positions;
} Header;

/* One kind of weight: [layers] matrices [rows,columns]. */
typedef struct Kind {
    const char *name; /* of the parameter, after "blocks.N." */
    int64_t layers, rows, columns;
    bool is_rotated;     /* for queries or keys, whose rows the file orders differently */
    const float *values; /* in the file */
} Kind;

enum { KINDS = 13, ROTARY_TABLES = 11, HEAD = 12 };

typedef struct File {
    void *map;
    size_t size;
    Kind kind[KINDS];
} File;

static int64_t numbers_in(const Kind *kind)
{
    return kind->layers * kind->rows * kind->columns;
}

/* Finds where each kind begins. Returns the size of the whole file in bytes. */
static int64_t lay_out(File *file, const Header *h)
{
    const int64_t H = h->hidden, F = h->inner, L = h->layers, D = H / h->heads, K = D * h->kv_heads,
                  V = labs(h->vocabulary);
    const Kind kinds[KINDS] = {{"embedding.weight", 1, V, H, false, NULL},
                               {"norm1.weight", L, 1, H, false, NULL},
                               {"attention.query.weight", L, H, H, true, NULL},
                               {"attention.key.weight", L, K, H, true, NULL},
                               {"attention.value.weight", L, K, H, false, NULL},
                               {"attention.output.weight", L, H, H, false, NULL},
                               {"norm2.weight", L, 1, H, false, NULL},
                               {"feed_forward.gate.weight", L, F, H, false, NULL},
                               {"feed_forward.down.weight", L, H, F, false, NULL},
                               {"feed_forward.up.weight", L, F, H, false, NULL},
                               {"norm.weight", 1, 1, H, false, NULL},
                               {"", 2, h->positions, D / 2, false, NULL},
                               {"head.weight", h->vocabulary < 0, V, H, false, NULL}};
    int64_t bytes = sizeof *h;
    memcpy(file->kind, kinds, sizeof kinds);
    for (int i = 0; i < KINDS; i++) {
        file->kind[i].values = (const float *)((const char *)file->map + bytes);
        bytes += numbers_in(&kinds[i]) * (int64_t)sizeof(float);
    }
    return bytes;
}

static bool check_header(const Header *h, const char *path, Problem *problem)
{
    /* with these limits, the file's size in bytes fits into 64 bits */
    enum { MOST_LAYERS = 1 << 14, MOST = 1 << 22 };
    const int32_t sizes[] = {h->hidden, h->inner, h->heads, h->kv_heads, h->positions};
    bool good = h->layers > 0 && h->layers <= MOST_LAYERS && h->vocabulary != 0 &&
                h->vocabulary >= -MOST && h->vocabulary <= MOST;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        good = good && sizes[i] > 0 && sizes[i] <= MOST;
    good = good && h->hidden % h->heads == 0 && h->hidden / h->heads % 2 == 0 &&
           h->heads % h->kv_heads == 0;
    return good ||
           problem_set(problem, path,
                       N_("use a file in llama2.c's first format, which begins with seven sizes; "
                          "the kit does not read the later ones (\"ak42\"). To use a Hugging "
                          "Face model, name its folder"),
                       "this is not a llama2.c model: the sizes in its header are invalid");
}

static bool read_part(const Pretrained *from, const Parameter *p, real *values, Problem *problem);

static void close_file(Pretrained *from)
{
    File *file = from->open;
    munmap(file->map, file->size);
    free(file);
}

static const PretrainedFormat llama_bin = {.read = read_part, .close = close_file};

static bool map_file(File *file, const char *path, Problem *problem)
{
    const char *reason;
    const int fd = file_open(path, &reason);
    struct stat status;
    if (fd < 0)
        return problem_set(problem, path, N_("name a file of weights, such as stories260K.bin"),
                           "the model cannot be read: %s", reason);
    const bool good = fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(Header);
    file->size = (size_t)status.st_size;
    void *map = good ? mmap(NULL, file->size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    file->map = map != MAP_FAILED ? map : NULL;
    close(fd);
    return file->map ||
           problem_set(problem, path, N_("name a file of weights, such as stories260K.bin"),
                       "this is not a model: it has %lld bytes", (long long)status.st_size);
}

bool llama_bin_open(Pretrained *from, Problem *problem)
{
    File *file = calloc(1, sizeof *file);
    if (!map_file(file, from->path, problem) || !file->map) {
        free(file);
        return false;
    }
    from->open = file;
    from->format = &llama_bin;
    Header h;
    memcpy(&h, file->map, sizeof h);
    if (!check_header(&h, from->path, problem))
        return false;
    const int64_t bytes = lay_out(file, &h);
    from->config = (TransformerConfig){.architecture = &architecture_llama,
                                       .vocabulary = abs(h.vocabulary),
                                       .hidden = h.hidden,
                                       .layers = h.layers,
                                       .heads = h.heads,
                                       .kv_heads = h.kv_heads,
                                       .inner = h.inner,
                                       .positions = h.positions,
                                       .epsilon = 1e-5,
                                       .rotary.theta = 10000,
                                       .own_head = h.vocabulary < 0};
    return bytes == (int64_t)file->size ||
           problem_set(problem, from->path,
                       N_("it is incomplete, or not a llama2.c model: download it again"),
                       "its header describes a file of %lld bytes, but the file has %lld",
                       (long long)bytes, (long long)file->size);
}

/* In the file, neighbouring rows of a head are rotated together; in the kit, row j and row j + D/2,
   as in Hugging Face's LLaMA. */
static int64_t row_in_file(const Pretrained *from, const Kind *kind, int64_t row)
{
    const int64_t D = from->config.hidden / from->config.heads, j = row % D;
    if (!kind->is_rotated)
        return row;
    return row - j + (j < D / 2 ? 2 * j : 2 * j - D + 1);
}

static const Kind *find(const File *file, const char *name, int64_t *layer)
{
    char *end = NULL;
    *layer = 0;
    if (!strncmp(name, "blocks.", 7)) {
        *layer = strtol(name + 7, &end, 10);
        name = end + 1;
    }
    for (const Kind *kind = file->kind; kind < file->kind + KINDS; kind++)
        if (!strcmp(name, kind->name) && *layer < kind->layers)
            return kind;
    return NULL;
}

static bool read_part(const Pretrained *from, const Parameter *p, real *values, Problem *problem)
{
    int64_t layer;
    const Kind *kind = find(from->open, p->name, &layer);
    if (!kind || shape_count(p->shape) != kind->rows * kind->columns)
        return problem_set(problem, from->path, N_("the model was made with different sizes"),
                           "the parameter %s %s is not in the file", p->name, SHAPE_TEXT(p->shape));
    const int64_t columns = shape_last(p->value->shape), count = tensor_count(p->value);
    for (int64_t i = 0; i < count; i += columns) {
        const int64_t at = parameter_global_index(p, i);
        const float *row = kind->values + layer * kind->rows * kind->columns +
                           row_in_file(from, kind, at / kind->columns) * kind->columns +
                           at % kind->columns;
        for (int64_t c = 0; c < columns; c++)
            values[i + c] = (real)row[c];
    }
    return true;
}
