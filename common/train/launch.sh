#!/usr/bin/env bash
# launch.sh NTASKS STACK STAGE PROGRAM OPTIONS...: starts the training program on NTASKS ranks.
# Ctrl-C asks the ranks to end after the step they are in; a second one ends them at once.
set -euo pipefail
ranks=$1 stack=$2 stage=$3 program=$4
shift 4

give_up() {
    printf 'error: %s\n  HINT: %s\n' "$1" "$2" >&2
    exit 2
}

[[ $ranks =~ ^[1-9][0-9]{0,3}$ ]] || give_up "NTASKS cannot be '$ranks'" "it is the number of ranks: make train NTASKS=2 TP=2"
command -v mpirun > /dev/null || give_up "MPI is not installed: there is no mpirun" "make setup installs Open MPI"
if [ "$stage" -lt 5 ] && [ "$ranks" -gt 1 ]; then
    give_up "at stage $stage (STACK=$stack) the feed-forward layers are whole on every rank: NTASKS=$ranks would not split the model" \
        "NTASKS=1 TP=1, or go on to balise 5"
fi
tp=1
for ((i = 1; i <= $#; i++)); do
    [ "${!i}" != --tp ] || { next=$((i + 1)) tp=${!next:-1}; }
done
if [ "$stage" -lt 9 ] && [ "$stage" -ge 5 ] && [ "$tp" != "$ranks" ]; then
    give_up "NTASKS=$ranks and TP=$tp: before balise 9 all ranks split one model" "choose TP equal to NTASKS"
fi
[ "$stack" != mine ] || printf 'stage     after lab %s\n' "$stage"

cores=$(env -u OMP_NUM_THREADS nproc) # those that this process may use
bind=(--bind-to none)
[ "$ranks" -le "$cores" ] || bind+=(--mca mpi_yield_when_idle 1)
threads=${OMP_NUM_THREADS:-$((cores / ranks > 0 ? cores / ranks : 1))}
unset OPENBLAS_CORETYPE # a preset one forces kernels that are not this machine's
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMP_WAIT_POLICY=passive
[ ! -t 1 ] || export BALISE_PROGRESS=1

# Sums that are started: Open MPI's own choice takes two to four times as long as one that waits, this one as long.
bind+=(--mca coll_libnbc_iallreduce_algorithm 3) # Rabenseifner

# In a process group of its own, so that Ctrl-C reaches this script alone.
set -m
mpirun -q -n "$ranks" --oversubscribe "${bind[@]}" --mca pml ob1 --mca btl self,vader \
    --mca btl_vader_single_copy_mechanism none --mca odls_base_sigkill_timeout 0 "$program" --threads "$threads" "$@" < /dev/null &
job=$!
trap 'kill -USR1 "$job" 2> /dev/null; trap "kill -TERM $job 2> /dev/null" INT TERM' INT TERM
status=0
while kill -0 "$job" 2> /dev/null; do
    wait "$job" && status=0 || status=$?
done
exit "$status"
