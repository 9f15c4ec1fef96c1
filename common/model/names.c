/* A balanced tree of names: a list would take minutes for a model of 10,000 layers. */
#include "model/names.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool names_add(void **names, const char *name)
{
    const char *const *found = tsearch(name, names, by_name);
    if (!found)
        abort();
    return *found == name;
}

static void keep(void *name)
{
}

void names_free(void *names)
{
    tdestroy(names, keep);
}
