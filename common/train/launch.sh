#!/usr/bin/env bash
# launch.sh NTASKS STACK STAGE PROGRAM OPTIONS...: starts the training program on NTASKS ranks.
# Ctrl-C asks the ranks to end after the current step; a second one ends them at once.
set -euo pipefail
ranks=$1 stack=$2 stage=$3 program=$4
shift 4

source "${BASH_SOURCE[0]%/*}/ranks.sh"
check_ranks "$ranks" "$stack" "$stage" "$@"
command -v mpirun > /dev/null || give_up "$(say 'MPI is not installed: there is no mpirun')" "$(say 'make setup installs Open MPI')"

cores=$(env -u OMP_NUM_THREADS nproc) # those that this process may use
bind=(--bind-to none)
[ "$ranks" -le "$cores" ] || bind+=(--mca mpi_yield_when_idle 1)
threads=${OMP_NUM_THREADS:-$((cores / ranks > 0 ? cores / ranks : 1))}
unset OPENBLAS_CORETYPE # a preset one forces kernels that are not this machine's
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMP_WAIT_POLICY=passive
[ ! -t 1 ] || export BALISE_PROGRESS=1

# For nonblocking sums, Open MPI's own choice takes two to four times as long as a blocking sum; this one takes as long.
bind+=(--mca coll_libnbc_iallreduce_algorithm 3) # Rabenseifner
# In a Slurm allocation, ranks stay on this machine, where they share memory; make sbatch is for nodes.
[ -z "${SLURM_JOB_ID:-}" ] || bind+=(--mca plm ^slurm --mca ras ^slurm)

# mpirun removes the folder of all its runs when it is empty; a run that starts at that moment would lose it.
session=$(mktemp -d)
trap 'rm -rf "$session"' EXIT
bind+=(--mca orte_tmpdir_base "$session")

# In its own process group, so that Ctrl-C reaches only this script.
set -m
mpirun -q -n "$ranks" --oversubscribe "${bind[@]}" --mca pml ob1 --mca btl self,vader \
    --mca btl_vader_single_copy_mechanism none --mca odls_base_sigkill_timeout 0 "$program" --ranks "$ranks" --threads "$threads" "$@" < /dev/null &
job=$!
ends_soon=$(say 'stopping after this step or evaluation (SAVE writes a checkpoint); press Ctrl-C again to stop now')
trap 'printf "\n%s\n" "$ends_soon" >&2
    kill -USR1 "$job" 2> /dev/null; trap "kill -TERM $job 2> /dev/null" INT TERM' INT TERM
# A signal interrupts `wait` before the job has ended; a finished job's status is kept for the last `wait`.
while kill -0 "$job" 2> /dev/null; do
    wait "$job" || true
done
wait "$job"
