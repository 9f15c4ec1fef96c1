#!/usr/bin/env bash
# launch.sh NTASKS STACK STAGE PROGRAM OPTIONS...: starts PROGRAM (build/train or build/story) on
# NTASKS ranks. Ctrl-C asks the ranks to end after the current step; a second one ends them at once.
set -euo pipefail
# If make is killed, this script gets SIGTERM and stops the ranks as on Ctrl-C.
dies_with_parent=()
! command -v setpriv > /dev/null || dies_with_parent=(setpriv --pdeathsig TERM)
if [ -z "${LAUNCHED:-}" ] && [ "${#dies_with_parent[@]}" -gt 0 ]; then
    LAUNCHED=$PPID exec "${dies_with_parent[@]}" "$BASH" "$0" "$@"
fi
unset LAUNCHED
ranks=$1 stack=$2 stage=$3 program=$4
shift 4

source "${BASH_SOURCE[0]%/*}/ranks.sh"
source "${BASH_SOURCE[0]%/*}/../comm/open_mpi.sh"
check_ranks "$ranks" "$stack" "$stage"
command -v mpirun > /dev/null || give_up "$(say 'MPI is not installed: there is no mpirun')" "$(say 'make setup installs Open MPI')"
cores=$(env -u OMP_NUM_THREADS nproc) # available to this process
export BALISE_CORES=$cores            # for the trace

# Below these limits, OpenBLAS retries the allocation of its buffers (128 MB per core) forever, and
# mpirun may hang.
least() { # least FLAG NUMBER SENTENCE
    local limit
    limit=$(ulimit "-$1")
    [ "$limit" = unlimited ] || [ "$limit" -ge "$2" ] || give_up "$(said "$3" "$1" "$limit" "$2")" "$(said 'raise the limit: ulimit -%s %s' "$1" "$2")"
}
least v $((262144 + 131072 * cores)) "$(say 'ulimit -%s is %s: a rank needs %s kB of address space to start')"
least n $((32 + 8 * ranks)) "$(say 'ulimit -%s is %s: mpirun needs %s open files for its ranks')"
[[ -z ${OMP_NUM_THREADS:-} || $OMP_NUM_THREADS =~ ^[1-9][0-9]*$ ]] ||
    give_up "$(said "OMP_NUM_THREADS cannot be '%s'" "$OMP_NUM_THREADS")" "$(say 'it sets the number of threads per rank; unset it to use the default')"
"$program" "$@" --dry 1 --ranks "$ranks" --labs "$stage" || exit # one process checks the options first

threads=$(threads_of_a_rank "$ranks")
unset OPENBLAS_CORETYPE # a preset value may select the kernels of another processor
export OMP_WAIT_POLICY=passive
[ ! -t 1 ] || export BALISE_PROGRESS=1

# Each run has its own session folder: mpirun removes the shared default when it is empty, and a run
# that is just starting would lose it.
# A run that was killed leaves its files; the next one removes them. Locks show which are in use.
sweep() { # FOLDER
    find "$1" -maxdepth 1 -type d -name 'balise-train.*' -user "$(id -u)" -mmin +1 -exec flock -n {} rm -rf {} \; 2> /dev/null || true
}
temporary=${TMPDIR:-/tmp}
sweep "$temporary"
sweep /dev/shm
session=$(mktemp -d "$temporary/balise-train.XXXXXX")
exec 8< "$session"
flock -n 8 2> /dev/null || true
# The files that the ranks share (8 MB per rank) are in /dev/shm if there is room. The trap removes
# them, however the ranks end.
shared=
trap 'rm -rf "$session" "$shared"' EXIT
free=$(df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 { print int($4 / 1024) }')
if [ "${free:-0}" -ge $((8 * ranks)) ]; then
    shared=$(mktemp -d /dev/shm/balise-train.XXXXXX) || true
    [ -z "$shared" ] || exec 7< "$shared"
    [ -z "$shared" ] || flock -n 7 2> /dev/null || true
else
    room=$(df -Pk "$session" 2> /dev/null | awk 'NR == 2 { print int($4 / 1024) }')
    if [ "${room:-0}" -lt $((8 * ranks)) ]; then
        tell 'error: /dev/shm has %s MB free and %s %s MB, but the ranks share %s MB' "${free:-0}" "$temporary" "${room:-0}" $((8 * ranks)) >&2
        printf '%s%s\n' "$(say '  HINT: ')" "$(said 'free some space; df /dev/shm %s shows how much there is' "$temporary")" >&2
        exit 2
    fi
    tell 'warning: /dev/shm has only %s MB free, but the ranks share %s MB: their files are in %s instead, which is slower' "${free:-0}" $((8 * ranks)) "$session" >&2
fi
open_mpi root here cores="$cores" sums session="$session" shared="${shared:-$session}"
[ "$ranks" -le "$cores" ] || open_mpi yield
# In a Slurm allocation, ranks stay on this machine, where they share memory; make sbatch starts
# ranks on other nodes.
[ -z "${SLURM_JOB_ID:-}" ] || open_mpi alone

# Passes the output on. If it cannot be written, or its reader has gone, the run still goes on to its
# end.
pass_on() {
    cat 2> /dev/null || {
        [ $? = 141 ] || : > "$session/lost" # 141: SIGPIPE, the reader has gone
        cat > /dev/null
    }
}

# Starts the job in its own process group, so Ctrl-C reaches only this script. The two that pass the
# output on ignore it: mpirun may crash when its output breaks.
set -m
exec 3> >(trap '' INT TERM && open_mpi_without_banners "$session/killed" >&2)
filter=$!
exec 4> >(trap '' INT TERM && pass_on)
output=$!
"${dies_with_parent[@]}" mpirun -n "$ranks" "$program" --ranks "$ranks" --threads "$threads" "$@" < /dev/null >&4 2>&3 3>&- 4>&- &
job=$!
exec 3>&- 4>&-
ends_soon=$(say 'stopping after this step or evaluation (SAVE writes a checkpoint); press Ctrl-C again to stop now')
trap 'echo >&2; tell_in_columns "$ends_soon"
    kill -USR1 "$job" 2> /dev/null; trap "kill -TERM $job 2> /dev/null" INT TERM' INT TERM
# A signal interrupts `wait` before the job has ended. Bash keeps a finished job's status for the
# last `wait`.
while kill -0 "$job" 2> /dev/null; do
    wait "$job" || true
done
wait "$job" && status=0 || status=$?
wait "$filter" || true
wait "$output" || true
# Does not report signal 15, which this script has sent. mpirun's banner may be lost, and with it the
# rank.
signal=$((status - 128)) rank=''
[ ! -s "$session/killed" ] || read -r rank signal < "$session/killed"
if [ "$status" -gt 128 ] && [ "$signal" != 15 ]; then
    name=$(kill -l "$signal")
    case $name in
    XFSZ) hint=$(say 'ulimit -f limits the size of a file: raise the limit, or write shorter files (TRACE, METRICS, SAVE)') ;;
    *) hint=$(say 'KILL: did the machine run out of memory? make doctor shows how much there is; fewer ranks or a smaller BATCH_SIZE need less') ;;
    esac
    [[ ! $name =~ ^(KILL|XCPU)$ || $(ulimit -t) = unlimited ]] || hint=$(said 'ulimit -t limits a rank to %s s of CPU time: raise the limit' "$(ulimit -t)")
    what=$(said 'the run was ended by signal %s (%s)' "$signal" "$name")
    [ -z "$rank" ] || what=$(said 'rank %s was killed by signal %s (%s)' "$rank" "$signal" "$name")
    [ -z "${BALISE_PROGRESS:-}" ] || echo >&2 # ends the line of the progress bar
    complain "$what" "$hint"
fi
[ ! -e "$session/lost" ] || output_is_lost
exit "$status"
