/* What must come out: the judge plays the scenario with the plain layers, or computes the expectation. */
#include "grader/judge/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/labs/work.h"
#include "grader/judge/suspects.h"

/* The plain layers make no mistakes: a word that ends the judge's own play is a defect of the kit. */
_Noreturn void run_ends(Problem *problem, void *address)
{
    problem_print(stderr, problem);
    fprintf(stderr, "%s", _("  this is a defect of the grader, not of your lab\n"));
    exit(2);
}

void run_noted(Problem *problem, void *address)
{
    run_ends(problem, address);
}

_Noreturn void run_todo(int balise, const char *function, void *address)
{
    Problem problem;
    problem_set(&problem, NULL, "report it", "the judge reached balise %d in %s", balise, function);
    run_ends(&problem, address);
}

void at(Play *play, Label label)
{
}

void traffic_begin(Play *play)
{
}

/* numbers: what may be sent for a table split by columns, calls, what may be sent for one split by rows. */
void traffic_end(Play *play, Label label, Budget budget, const Sizes *sizes)
{
    const Lab *lab = lab_of(play->c.lab);
    AllowanceFunction *sent = budget == FORWARD_BUDGET ? lab->forward : lab->backward;
    Sizes by_rows = *sizes;
    double *numbers;
    by_rows.vocabulary = 1;
    stream_entry(&play->stream, TRAFFIC, COMMUNICATION, label, 3, &numbers);
    int n = exchanging_ranks(&play->c), groups = play->c.world / n; /* all groups together are charged */
    numbers[0] = (double)(groups * sent(n, sizes).numbers);
    numbers[1] = (double)sent(n, sizes).calls;
    numbers[2] = (double)(groups * sent(n, &by_rows).numbers);
}

void own_work_begin(void)
{
}

OwnWork own_work(void)
{
    return (OwnWork){0};
}

static void play_serially(const Case *c, Stream stream)
{
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1};
    Play play = {.c = *c, .mesh = &mesh, .stream = stream};
    play.pool = pool_new(0, true);
    play.tape = tape_new(play.pool, &mesh);
    for (int i = 0; i < 64; i++)
        play.samples[i] = random_below(&play, "sample", i, 1 << 20);
    kind_of_case(c)->scenario(&play);
    tape_free(play.tape);
    model_free(play.model);
    pool_free(play.pool);
}

void play_expected(const Case *c, int rank, int suspect, Stream stream)
{
    suspect_begin(suspect, c);
    if (alike_on_ranks(c))
        play_serially(c, stream);
    else
        kind_of_case(c)->expect(c, rank, suspect, stream);
    suspect_end();
}
