/* Samples the next token. */
#include <math.h>
#include <stdlib.h>

#include "base/philox.h"
#include "story/story.h"

/* The lowest token of those with the largest logit. */
static int32_t most_probable(const real *logits, int vocabulary)
{
    int32_t best = 0;
    for (int32_t i = 1; i < vocabulary; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

typedef struct Candidate {
    int32_t token;
    double probability;
} Candidate;

static int by_probability(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->probability != y->probability)
        return x->probability < y->probability ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

/* softmax(logits / temperature), sorted: the most probable token first. The caller frees it. */
static Candidate *candidates(const real *logits, int vocabulary, double temperature)
{
    Candidate *all = malloc((size_t)vocabulary * sizeof *all);
    const double highest = (double)logits[most_probable(logits, vocabulary)];
    double sum = 0;
    for (int32_t i = 0; i < vocabulary; i++) {
        all[i] = (Candidate){i, exp(((double)logits[i] - highest) / temperature)};
        sum += all[i].probability;
    }
    for (int32_t i = 0; i < vocabulary; i++)
        all[i].probability /= sum;
    qsort(all, (size_t)vocabulary, sizeof *all, by_probability);
    return all;
}

static bool are_finite(const real *logits, int vocabulary)
{
    int32_t i = 0;
    while (i < vocabulary && isfinite(logits[i]))
        i++;
    return i == vocabulary;
}

int32_t story_sample(const StoryConfig *config, const real *logits, int vocabulary,
                     int64_t position)
{
    if (!are_finite(logits, vocabulary))
        return -1;
    if (config->temperature == 0)
        return most_probable(logits, vocabulary);
    Candidate *all = candidates(logits, vocabulary, config->temperature);
    int count = 0;
    double kept = 0;
    while (count < vocabulary && (count == 0 || kept < config->top_p))
        kept += all[count++].probability;
    const PhiloxKey key = philox_key(config->run.seed, "story", 0);
    double left = philox_uniform_at(key, (uint64_t)position) * kept;
    int chosen = 0;
    while (chosen < count - 1 && (left -= all[chosen].probability) >= 0)
        chosen++;
    const int32_t token = all[chosen].token;
    free(all);
    return token;
}
