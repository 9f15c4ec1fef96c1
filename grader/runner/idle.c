/* A lab without cases. Linked with the runner, it makes a program that starts as those of all labs
 * do: if one of them does not start, the judge finds out whether this one does. */
#include "grader/labs/scenario.h"

void lab_scenario(Scenario *run)
{
}
