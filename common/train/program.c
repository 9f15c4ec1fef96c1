/* Code shared by the programs under mpirun: starts MPI, ends a run in which a lab fails, and sets
 * the exit status. */
#include "train/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/language.h"
#include "base/run.h"
#include "train/trainer.h"

volatile sig_atomic_t program_stop;

/* mpirun may lose what a rank prints just before it fails. */
static void let_mpirun_read(void)
{
    fflush(stdout);
    usleep(100000);
}

static void ask_to_stop(int signal_number)
{
    program_stop = 1;
}

/* Rank 0 reports a problem that every rank has. The other ranks wait for rank 0 to end the run, and
 * report the problem only if it does not. */
_Noreturn void run_ends(Problem *problem, void *address)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    callsite_describe(address, problem->where, sizeof problem->where);
    if (rank != 0) {
        signal(SIGTERM, SIG_DFL); /* MPI sends it to end this rank after rank 0 has reported */
        sleep(2 * (unsigned)rank);
        fprintf(stderr, _("rank %d: "), rank);
    }
    problem_print(stderr, problem);
    let_mpirun_read();
    MPI_Abort(MPI_COMM_WORLD, PROGRAM_BAD_INPUT);
    _exit(PROGRAM_BAD_INPUT);
}

_Noreturn void run_todo(int balise, const char *function, void *address)
{
    Problem problem;
    problem_set(
        &problem, NULL,
        "solve it first (make grade LAB=n shows how far it is), or train with STACK=solutions",
        "lab %d is still to do: %s", balise, function);
    run_ends(&problem, address);
}

/* Reports an error in MPI, usually messages that do not match. MPI's own report would be in a
 * banner, which mpirun -q suppresses. */
static void mpi_failed(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(*code, text, &length);
    int class;
    MPI_Error_class(*code, &class);
    misuse(
        class == MPI_ERR_TRUNCATE || class == MPI_ERR_COUNT ? HINT_SAME_COLLECTIVES
        : class == MPI_ERR_RANK || class == MPI_ERR_ROOT
            ? N_("ranks are numbered from 0 within a group; in make check, MPI has one rank only, "
                 "and make train runs what a lab does with MPI itself")
            : N_("is the memory that the ranks share full? df -h /dev/shm shows it"),
        "an exchange failed in MPI: %s", text);
}

int program_dry(bool good, const Problem *problem)
{
    if (!good)
        problem_print(stderr, problem);
    return good ? 0 : PROGRAM_BAD_INPUT;
}

Group *program_begin(int argc, char **argv)
{
    const struct sigaction stop = {.sa_handler = ask_to_stop, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGUSR1, &stop, NULL);
    backend_start(argv);
    MPI_Init(&argc, &argv);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(mpi_failed, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler); /* and of all groups made from it */
    signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit must only fail the write */
    comm_share_memory(true);
    return group_of(MPI_COMM_WORLD, "world");
}

bool program_devices(Group *world, Problem *problem)
{
    return agree(world, backend_ready(problem), problem) && agree_on_device(world, problem);
}

void program_warn(Group *world)
{
    Problem slow;
    if (group_rank(world) == 0 && !backend_check(&slow))
        fprintf(stderr, "%s%s\n%s%s\n", _("warning: "), slow.what, _("  HINT: "), slow.hint);
}

int program_end(Group *world, bool good, const Problem *problem)
{
    fflush(stdout);
    if (!good && group_rank(world) == 0)
        problem_print(stderr, problem);
    if (!good)
        let_mpirun_read();
    group_free(world);
    MPI_Finalize();
    return good ? 0 : PROGRAM_BAD_INPUT;
}
