/* Names of calls and of what MPI makes, in the reader's language. */
#include "grader/judge/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/language.h"

enum { MOST_PARTS = 3 };

/* What names are made of; each %s is a part that has words of its own, or none. The first that fits is taken. */
static const char *const patterns[] = {
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
