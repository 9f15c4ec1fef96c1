/* Attention with products in 16 bits, compared with its definition in double precision. Arguments
 * have few significant bits, so only the exponentials (or probabilities), the gradient of the scores
 * and the results are rounded, each by at most a unit roundoff. So the tolerances are the unit
 * roundoff times the sum of the magnitudes of what is rounded. On a CPU, small products stay in single
 * precision. */
#include "backend/tests/precisions.h"

/* From pattern CAUSAL of the masks on, attention is causal. */
enum { SHAPES = 14, LARGE = 13, MASKS = 5, CAUSAL = 3, Q = 0, K, V, DY, ARGUMENTS };
typedef struct Attention {
    AttentionShape shape;
    int64_t rows, count;   /* of a matrix */
    int32_t *mask, *given; /* NULL: no key is hidden */
    float *x[ARGUMENTS], *y, *dx[3], *highest, *sums, *work;
} Attention;

/* Shape i. The heads of the twelfth are too large for tensor cores' tiles; the last
 * two take several tiles of queries and of keys. Only the last one is LARGE enough for a CPU. */
static AttentionShape shape_of(int i)
{
    static const int64_t batch[] = {1, 2, 1, 2, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1},
                         positions[] = {1, 3, 17, 64, 65, 90, 70, 16, 33, 40, 66, 20, 140, 140};
    static const int64_t heads[] = {1, 2, 3, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1},
                         sizes[] = {1, 5, 16, 64, 24, 64, 7, 32, 33, 128, 80, 130, 8, 128};
    return (AttentionShape){.batch = batch[i],
                            .positions = positions[i],
                            .heads = heads[i],
                            .head_size = sizes[i],
                            .factor = 1 / sqrt((double)sizes[i])};
}

static bool is_shown(const AttentionShape *shape, int pattern, int64_t sample, int64_t key)
{
    return pattern == 0 || pattern == CAUSAL ||
           (pattern == 1   ? 3 * key <= 2 * shape->positions - sample
            : pattern == 2 ? key % 2 == 0
                           : key > 2 + sample); /* some causal queries see no key */
}

/* Multiples of 1/4 from -2 to 2. */
static void fill(float *x, int64_t count, int which)
{
    const PhiloxKey key = philox_key(7, "attention in 16 bits", (uint64_t)which);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(floor(philox_uniform_at(key, (uint64_t)i) * 17) - 8) / 4;
}

static Attention attention_of(int shape, int pattern)
{
    Attention a = {.shape = shape_of(shape)};
    const AttentionShape *s = &a.shape;
    a.shape.causal = pattern >= CAUSAL;
    a.rows = s->batch * s->heads * s->positions;
    a.count = a.rows * s->head_size;
    a.mask = tensor_memory((size_t)(s->batch * s->positions) * sizeof *a.mask);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t key = 0; key < s->positions; key++)
            a.mask[b * s->positions + key] = is_shown(s, pattern, b, key);
    a.given = pattern == CAUSAL ? NULL : a.mask;
    for (int i = 0; i < ARGUMENTS; i++) {
        a.x[i] = tensor_memory((size_t)a.count * sizeof(float));
        fill(a.x[i], a.count, i);
    }
    a.y = tensor_memory((size_t)a.count * sizeof(float));
    for (int i = 0; i < 3; i++)
        a.dx[i] = tensor_memory((size_t)a.count * sizeof(float));
    a.highest = tensor_memory(2 * (size_t)a.rows * sizeof(float));
    a.sums = a.highest + a.rows;
    a.work = tensor_memory((size_t)kernel_attention_work(s) * sizeof(float));
    return a;
}

static void release(Attention *a)
{
    for (int i = 0; i < ARGUMENTS; i++)
        tensor_memory_free(a->x[i]);
    for (int i = 0; i < 3; i++)
        tensor_memory_free(a->dx[i]);
    tensor_memory_free(a->y);
    tensor_memory_free(a->highest);
    tensor_memory_free(a->work);
    tensor_memory_free(a->mask);
}

static Numbers narrow(const Attention *a, const float *x)
{
    const Numbers y = {.halves = tensor_memory((size_t)a->count * sizeof *y.halves)};
    kernel_round(a->count, x, y.halves);
    return y;
}

/* Widens x to y, and releases it. */
static void widen(const Attention *a, Numbers x, float *y)
{
    kernel_widen(a->count, x.halves, y);
    backend_wait();
    tensor_memory_free(x.halves);
}

static void run_kernels(Attention *a)
{
    const bool rounds = kernel_attention_is_in_16_bits(&a->shape);
    Numbers x[ARGUMENTS], dx[3], y = rounds ? narrow(a, a->y) : in_full(a->y);
    for (int i = 0; i < ARGUMENTS; i++)
        x[i] = rounds ? narrow(a, a->x[i]) : in_full(a->x[i]);
    for (int i = 0; i < 3; i++)
        dx[i] = rounds ? narrow(a, a->dx[i]) : in_full(a->dx[i]);
    kernel_attention_forward(&a->shape, x[Q], x[K], x[V], a->given, y, a->highest, a->sums,
                             a->work);
    kernel_attention_backward(&a->shape, x[Q], x[K], x[V], a->given, a->highest, a->sums, x[DY],
                              dx[Q], dx[K], dx[V], a->work);
    backend_wait();
    if (!rounds)
        return;
    widen(a, y, a->y);
    for (int i = 0; i < 3; i++)
        widen(a, dx[i], a->dx[i]);
    for (int i = 0; i < ARGUMENTS; i++)
        tensor_memory_free(x[i].halves);
}

/* A sum of products whose left factors are rounded, and the sum of their magnitudes. */
typedef struct Sum {
    double value, size;
} Sum;

static void add_product(Sum *sum, double x, double y)
{
    sum->value += x * y;
    sum->size += fabs(x * y);
}

static void must_be(const char *name, const Attention *a, int64_t at, const float *single, Sum sum)
{
    const AttentionShape *shape = &a->shape;
    const bool rounds = kernel_attention_is_in_16_bits(shape);
    const double roundoff = rounds ? precision == BF16 ? 0x1p-8 : 0x1p-11 : 0,
                 smallest = !kernels_run_on_the_host() && precision == FP16 ? 0x1p-25 : 0;
    const double tolerance = (roundoff + 0x1p-17) * sum.size + roundoff * fabs(sum.value) +
                             (double)a->shape.positions * 4 * smallest +
                             0x1p-22; /* dp - delta may cancel */
    ck_assert_msg(fabs(single[at] - sum.value) <= tolerance,
                  "S=%ld, D=%ld: %s[%ld] is %.9g instead of %.9g (tolerance %.3g)",
                  (long)a->shape.positions, (long)a->shape.head_size, name, (long)at,
                  (double)single[at], sum.value, tolerance);
}

/* One head of one sample. index_of() is the offset of its number d at a position. */
typedef struct Head {
    const Attention *a;
    int64_t sample, head;
} Head;

static int64_t index_of(const Head *h, int64_t position, int64_t d)
{
    const AttentionShape *s = &h->a->shape;
    return ((h->sample * s->positions + position) * s->heads + h->head) * s->head_size + d;
}

static double dot(const Head *h, int x, int64_t i, int y, int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < h->a->shape.head_size; d++)
        sum += (double)h->a->x[x][index_of(h, i, d)] * h->a->x[y][index_of(h, j, d)];
    return sum;
}

/* p = softmax(factor q k^T) [S,S], and ds = p (dp - sum of p dp). Also checks the numbers kept for
 * each row. */
static void scores_of_head(const Head *h, double *p, double *ds)
{
    const AttentionShape *s = &h->a->shape;
    for (int64_t i = 0; i < s->positions; i++, p += s->positions, ds += s->positions) {
        double most = -INFINITY, sum = 0, mean = 0;
        const int32_t *shown = h->a->mask + h->sample * s->positions;
        const int64_t end = s->causal ? i + 1 : s->positions;
        for (int64_t j = 0; j < s->positions; j++) {
            p[j] = s->factor * dot(h, Q, i, K, j);
            most = j < end && shown[j] ? fmax(most, p[j]) : most;
        }
        for (int64_t j = 0; j < s->positions; j++)
            sum += p[j] = j < end && shown[j] ? exp(p[j] - most) : 0;
        if (sum == 0) {
            most = 0;
            sum = 1;
        }
        for (int64_t j = 0; j < s->positions; j++) {
            p[j] /= sum;
            ds[j] = dot(h, DY, i, V, j);
            mean += p[j] * ds[j];
        }
        for (int64_t j = 0; j < s->positions; j++)
            ds[j] = s->factor * p[j] * (ds[j] - mean);
        const int64_t row = (h->sample * s->heads + h->head) * s->positions + i;
        ck_assert_double_eq_tol((double)h->a->highest[row], most, 1e-5);
        ck_assert_double_eq_tol((double)h->a->sums[row], sum, 1e-5 * sum);
    }
}

static void check_position(const Head *h, const double *p, const double *ds, int64_t i, int64_t d)
{
    const Attention *a = h->a;
    const int64_t positions = a->shape.positions, at = index_of(h, i, d);
    Sum y = {0}, dq = {0}, dk = {0}, dv = {0};
    for (int64_t j = 0; j < positions; j++) {
        const int64_t other = index_of(h, j, d);
        add_product(&y, p[i * positions + j], a->x[V][other]);
        add_product(&dq, ds[i * positions + j], a->x[K][other]);
        add_product(&dk, ds[j * positions + i], a->x[Q][other]);
        add_product(&dv, p[j * positions + i], a->x[DY][other]);
    }
    must_be("y", a, at, a->y, y);
    must_be("dq", a, at, a->dx[Q], dq);
    must_be("dk", a, at, a->dx[K], dk);
    must_be("dv", a, at, a->dx[V], dv);
}

START_TEST(roundings_explain_the_error_of_attention)
{
    if (!choose())
        return;
    Attention a = attention_of(_i / MASKS, _i % MASKS);
    const int64_t positions = a.shape.positions;
    double *p = malloc(2 * (size_t)(positions * positions) * sizeof *p),
           *ds = p + positions * positions;
    run_kernels(&a);
    for (int64_t n = 0; n < a.shape.batch * a.shape.heads; n++) {
        const Head head = {&a, n / a.shape.heads, n % a.shape.heads};
        scores_of_head(&head, p, ds);
        for (int64_t i = 0; i < positions; i++)
            for (int64_t d = 0; d < a.shape.head_size; d++)
                check_position(&head, p, ds, i, d);
    }
    free(p);
    release(&a);
}
END_TEST

/* The kernels skip tiles of queries whose dy is zero; the result must be the same. */
START_TEST(queries_without_a_gradient_count_as_zeros)
{
    if (!choose())
        return;
    Attention a = attention_of(LARGE, _i % MASKS);
    const Head head = {&a, 0, 0};
    const int64_t positions = a.shape.positions;
    double *p = malloc(2 * (size_t)(positions * positions) * sizeof *p),
           *ds = p + positions * positions;
    for (int64_t i = 0; i < positions; i++)
        for (int64_t d = 0; i != 70 && d < a.shape.head_size; d++)
            a.x[DY][index_of(&head, i, d)] = 0;
    run_kernels(&a);
    scores_of_head(&head, p, ds);
    for (int64_t i = 0; i < positions; i++)
        check_position(&head, p, ds, i, i % a.shape.head_size);
    free(p);
    release(&a);
}
END_TEST

static TCase *all_of(const char *name, void (*choose_it)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, choose_it, back_to_fp32);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, roundings_explain_the_error_of_attention, 0, SHAPES * MASKS);
    tcase_add_loop_test(tests, queries_without_a_gradient_count_as_zeros, 0, MASKS);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("attention in 16 bits");
    suite_add_tcase(s, all_of("bf16", bf16));
    if (!kernels_run_on_the_host())
        suite_add_tcase(s, all_of("fp16", fp16));
    return s;
}
