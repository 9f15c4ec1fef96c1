#include "grader/judge/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/language.h"

enum { MOST_PARTS = 3 };

/* What names are made of; each %s is a part that has words of its own, or none. The first that fits is taken. */
static const char *const patterns[] = {
    /* of layers */
    N_("gradient of %s, step %s"),
    N_("gradient of %s"),
    N_("forward pass of %s"),
    N_("backward pass of %s"),
    N_("forward of %s"),
    N_("backward of %s"),
    N_("making of the groups"),
    N_("making of %s"),
    N_("input gradient of %s"),
    N_("input of %s"),
    N_("mask of %s"),
    N_("output of %s"),
    N_("another reader of x of %s"),
    N_("the first layer, step %s"),
    N_("the second layer, step %s"),
    N_("the first layer, evaluation %s"),
    N_("the second layer, evaluation %s"),
    N_("the first layer"),
    N_("the second layer"),
    /* of the operators */
    N_("once more, in the first replica only"),
    N_("%s, forward, call %s"),
    N_("%s, backward, call %s"),
    N_("all_gather along %s, call %s"),
    N_("all_reduce beside another reader, call %s"),
    N_("all_reduce beside a linear, call %s"),
    N_("%s, call %s"),
    /* of groups */
    N_("exchange in the %s group"),
    N_("members of the %s group"),
    N_("rank of the %s group"),
    N_("degree of the %s group"),
    /* of replicas */
    N_("order, %s"),
    N_("sampler, %s"),
    N_("%s rows, %s, epoch %s, another seed"),
    N_("%s rows, %s, epoch %s, once more"),
    N_("%s rows, %s, epoch %s"),
    N_("bucket_ready, bucket %s, round %s"),
    N_("buckets_finish, round %s"),
    N_("gradients in bucket %s, round %s"),
    N_("gradients, round %s"),
    N_("loss sum, correct, count of evaluation %s"),
    N_("metrics_synchronise, evaluation %s"),
    N_("metrics, evaluation %s"),
    N_("loss of step %s of the whole model"),
    N_("step %s of the whole model"),
    /* of parameters */
    N_("value of %s, step %s"),
    /* of calls */
    N_("start of %s"),
    N_("%s of parts"),
    N_("send and receive"),
    N_("exclusive scan"),
    N_("create_group with tag %s"),
    /* of what a lab makes of MPI */
    N_("communicator"),
    N_("group"),
};

/* Each part is what stands between two of the pattern's texts. */
static bool fits(const char *pattern, const char *name, char part[MOST_PARTS][WORDS_SIZE])
{
    int count = 0;
    for (;;) {
        size_t same = strcspn(pattern, "%");
        if (strncmp(pattern, name, same) != 0)
            return false;
        pattern += same;
        name += same;
        if (!*pattern || count == MOST_PARTS)
            return !*pattern && !*name;
        pattern += strlen("%s");
        char next[WORDS_SIZE];
        snprintf(next, sizeof next, "%.*s", (int)strcspn(pattern, "%"), pattern);
        const char *end = *next ? strstr(name, next) : name + strlen(name);
        if (!end || end == name)
            return false;
        snprintf(part[count++], WORDS_SIZE, "%.*s", (int)(end - name), name);
        name = end;
    }
}

const char *words_of(const char *name, char text[WORDS_SIZE])
{
    char part[MOST_PARTS][WORDS_SIZE] = {"", "", ""}, words[MOST_PARTS][WORDS_SIZE];
    snprintf(text, WORDS_SIZE, "%s", name);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (!fits(patterns[i], name, part))
            continue;
        for (int k = 0; k < MOST_PARTS; k++)
            words_of(part[k], words[k]);
        snprintf(text, WORDS_SIZE, _(patterns[i]), words[0], words[1], words[2]);
        break;
    }
    return text;
}
