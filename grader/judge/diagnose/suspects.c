/* The mistakes that the judge can reproduce, with their sentences, by subject. */
#include "grader/judge/diagnose/evidence.h"

Suspect suspect(int mistake)
{
    static const Suspect *const subjects[] = {suspects_of_layers, suspects_of_vocabulary};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (subjects[i][mistake].sentence)
            return subjects[i][mistake];
    return (Suspect){0};
}
