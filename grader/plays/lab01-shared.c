#include "grader/plays/lab01.h"

#include <stdio.h>

Shape lab01_shape(const Case *c, int call)
{
    return call != 1 || c->reverse ? SHAPE(c->B, c->S, c->H) /* calls alike, or of other sizes */
                                   : SHAPE((c->B + 1) * c->S, c->H / 2 + 1);
}

int lab01_dimension(int part, int call, Shape shape)
{
    return part == GATHER_LAST ? shape.rank - 1 : call == 2 ? 1 : 0;
}

int lab01_shared(const Case *c, int rank)
{
    return -1 - rank / c->tp;
}

int lab01_first(const Case *c, int rank)
{
    return rank / c->tp * c->tp;
}

void lab01_name(char name[NAME_SIZE], const char *what, int part, int call)
{
    static const char *const parts[PARTS] = {"duplication",
                                             "all_reduce",
                                             "all_gather along LAST",
                                             "all_gather along 0",
                                             "all_reduce beside another reader",
                                             "all_reduce beside a linear"};
    snprintf(name, NAME_SIZE, "%s of %s, call %d", what, parts[part], call + 1);
}
