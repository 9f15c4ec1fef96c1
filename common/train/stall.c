/* The line about a run in which nothing moves. */
#include "train/trainer.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/language.h"

static volatile sig_atomic_t said;
static double longest, since;
static const char *line; /* in the reader's language */

/* Whatever the rank is in: only what POSIX allows in a handler of signals. */
static void say(int signal)
{
    if (!said && write(STDERR_FILENO, line, strlen(line)) > 0)
        said = 1;
}

void stall_moved(int patience)
{
    double time = clock_now(), took = since > 0 ? time - since : 0;
    line = _(
        "\nno step has ended for a while. Either one takes that long here, or the ranks wait for each "
        "other for "
        "ever: then Ctrl-C, twice, ends this\n  HINT: make grade says which lab does not make the calls "
        "that the "
        "others make, make trace LAB=n shows them\n");
    struct sigaction action = {.sa_handler = say, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    longest = took > longest ? took : longest;
    since = time;
    alarm((unsigned)(10 * longest > patience ? 10 * longest : patience));
}

void stall_end(void)
{
    alarm(0);
    longest = since = 0;
}
