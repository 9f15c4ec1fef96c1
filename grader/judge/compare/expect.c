/* Computes expected entries: the judge runs the scenario with the plain layers, or calls the case's
 * expectation. */
#include "grader/judge/compare/expected.h"

#include <stdlib.h>

#include "base/run.h"
#include "grader/labs/operations.h"
#include "grader/labs/work.h"

/* The plain layers make no mistakes, so if a function ends the judge's own run, the kit has a
 * defect. */
_Noreturn void run_ends(Problem *problem, void *address)
{
    problem_print(stderr, problem);
    fprintf(stderr, "%s", _("  this is a bug in the grader, not in your lab\n"));
    exit(2);
}

_Noreturn void run_todo(int balise, const char *function, void *address)
{
    Problem problem;
    problem_set(&problem, NULL, "report it", "the judge reached lab %d in %s", balise, function);
    run_ends(&problem, address);
}

/* The operations of the pass that the scenario runs, if they are recorded. */
static struct {
    bool wanted, pauses;
    Label pass;
    int count;
    TapeOperation operation[RING_OPERATIONS];
} program;

static void note_operation(void *context, const char *function, void *address, const Tensor *output,
                           int inputs, Tensor *const *input, bool back)
{
    if (program.count < RING_OPERATIONS && !program.pauses)
        program.operation[program.count++] =
            operation_record(function, address, output, inputs, input, back);
}

/* Ends the pass that is recorded. */
static void write_program(Scenario *run)
{
    double *numbers;
    const size_t bytes = (size_t)program.count * sizeof *program.operation;
    if (!tape_observer()->operation)
        return;
    *tape_observer() = (Observer){0};
    stream_entry(&run->stream, PROGRAM, FORWARD, program.pass, (int64_t)(bytes / sizeof *numbers),
                 &numbers);
    memcpy(numbers, program.operation, bytes);
    program.count = 0;
}

void at(Scenario *run, Label label)
{
    write_program(run);
    program.pass = label;
    if (program.wanted && (label.what == FORWARD_PASS_OF || label.what == BACKWARD_PASS_OF))
        tape_observer()->operation = note_operation;
}

void not_of_lab(bool begins)
{
    program.pauses = begins;
}

/* The gradient of x gets nothing from the layer. */
static bool layer_is_left_out;

Tensor *into_layer(Scenario *run, Tensor *x)
{
    return layer_is_left_out ? tape_reals(x->tape, x->shape, whole(), reals(ready(x)), true) : x;
}

void traffic_begin(Scenario *run)
{
}

int64_t calls_so_far(void)
{
    return 0;
}

/* The entry's numbers are the budget for a table split by columns, the calls, and the budget for a
 * table split by rows. */
void traffic_end(Scenario *run, Label label, Budget budget, const Sizes *sizes)
{
    const Lab *lab = lab_of(run->c.lab);
    AllowanceFunction *sent = budget == FORWARD_BUDGET ? lab->forward : lab->backward;
    Sizes by_rows = *sizes;
    double *numbers;
    write_program(run);
    by_rows.vocabulary = 1;
    stream_entry(&run->stream, TRAFFIC, COMMUNICATION, label, 3, &numbers);
    int n = exchanging_ranks(&run->c), groups = run->c.world / n; /* the budget covers all groups */
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

static void run_serially(const Case *c, Stream stream)
{
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1, .pp_degree = 1};
    Scenario run = {.c = *c, .mesh = &mesh, .stream = stream};
    run.pool = pool_new(0, true);
    run.tape = tape_new(run.pool, &mesh);
    for (int i = 0; i < 64; i++)
        run.samples[i] = random_below(&run, "sample", i, 1 << 20);
    kind_of_case(c)->scenario(&run);
    tape_free(run.tape);
    model_free(run.model);
    pool_free(run.pool);
}

void write_expected(const Case *c, int rank, Expectation what, Stream stream)
{
    program.wanted = what == THE_PROGRAM;
    layer_is_left_out = what == PAST_THE_LAYER;
    if (alike_on_ranks(c))
        run_serially(c, stream);
    else
        kind_of_case(c)->expect(c, rank, stream);
    program.wanted = false;
    program.count = 0; /* of a pass whose end the scenario does not tell */
    *tape_observer() = (Observer){0};
}
