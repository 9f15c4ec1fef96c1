/* A lab without cases. Linked with the runner, it makes a program that starts like any lab's
 * program: if a lab's program does not start, the judge finds out whether this one does. */
#include "grader/labs/scenario.h"

void lab_scenario(Scenario *run)
{
}
