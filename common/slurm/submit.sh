#!/usr/bin/env bash
# submit.sh train NTASKS STACK STAGE PROGRAM OPTIONS...   (make sbatch)
# submit.sh grade COMMAND...                              (make grade ON=slurm)
# submit.sh wait JOB                                      (make sbatch JOB=n)
#
# Writes a batch script into $JOB_FOLDER, submits it, and waits for the job (wait.sh). Inside an
# allocation, grading runs as a step of it. Settings are in the environment: JOB_NAME, JOB_PARTITION
# and so on, and those of the site as SITE_* (slurm.mk).
# Exit status: that of the job; 2 if it could not be submitted or cannot start.
set -euo pipefail

here=$(dirname -- "${BASH_SOURCE[0]}")
source "$here/../train/ranks.sh"
source "$here/../comm/open_mpi.sh"
source "$here/check.sh"
source "$here/script.sh"
source "$here/wait.sh"

ROOT=$PWD FOLDER=$(realpath -m -- "$JOB_FOLDER") SCRIPT='' PROGRAM=''
for word in NAME PARTITION ACCOUNT TIME QOS CONSTRAINT GPUS NODES CPUS START TASKS_A_NODE; do
    declare "JOB_$word=$(printenv "JOB_$word" || true)"
done
SITE_MODULES=${SITE_MODULES:-} SITE_SETUP=${SITE_SETUP:-} SITE_SBATCH=${SITE_SBATCH:-}

# Chooses how to start ranks: srun if it supports PMIx, because it then counts and ends the ranks
# itself.
choose_start() {
    case $JOB_START in
    srun | mpirun) ;;
    '') if srun --mpi=list 2>&1 | grep -qw pmix; then JOB_START=srun; else JOB_START=mpirun; fi ;;
    *) give_up "$(said "START cannot be '%s'" "$JOB_START")" "$(say 'srun or mpirun; without START, srun where Slurm knows pmix')" ;;
    esac
}

# Determines NODES and the ranks per node from the given settings. Each rank uses one GPU, so a node
# runs at most GPUS ranks.
choose_layout() {
    local tasks=$1
    if [[ $PROGRAM == *-cuda* ]] && [ -z "$JOB_GPUS" ]; then
        JOB_GPUS=$(((tasks + ${JOB_NODES:-1} - 1) / ${JOB_NODES:-1}))
    fi
    if [ -n "$JOB_GPUS" ] && [ -z "$JOB_NODES" ]; then JOB_NODES=$(((tasks + JOB_GPUS - 1) / JOB_GPUS)); fi
    [ -n "$JOB_NODES" ] || return 0
    ((tasks % JOB_NODES == 0)) || give_up "$(said 'NTASKS=%s cannot be split evenly over NODES=%s' "$tasks" "$JOB_NODES")" \
        "$(say 'choose NODES (or GPUS, the GPUs per node) so that every node has the same number of ranks')"
    JOB_TASKS_A_NODE=$((tasks / JOB_NODES))
    [ -z "$JOB_GPUS" ] || ((JOB_TASKS_A_NODE <= JOB_GPUS)) || give_up \
        "$(said '%s ranks per node, but GPUS=%s: each rank needs a GPU of its own' "$JOB_TASKS_A_NODE" "$JOB_GPUS")" "$(say 'choose more NODES, or more GPUS per node')"
}

hint_on_refusal() {
    case $1 in
    *account*) say "ACCOUNT=name; sacctmgr show associations user=\$USER lists yours" ;;
    *[qQ][oO][sS]*) say 'QOS=name; sacctmgr show qos lists them' ;;
    *time\ limit*) say 'choose a shorter TIME, or another PARTITION: sinfo shows their limits' ;;
    *gres*) say "GPUS=n is the number of GPUs per node; sinfo -o '%P %G' shows which nodes have any" ;;
    *) say "PARTITION, NODES, NTASKS, CPUS, GPUS and CONSTRAINT must fit a node: sinfo -o '%P %D %c %G %f' shows them" ;;
    esac
}

# sbatch settings in the environment would override the script's own lines.
submit() {
    local answer word mine
    for word in PARTITION ACCOUNT TIME QOS CONSTRAINT; do
        mine=JOB_$word
        [ -z "${!mine}" ] || unset "SBATCH_${word/TIME/TIMELIMIT}"
    done
    if ! answer=$(sbatch --parsable "$SCRIPT" 2>&1); then
        answer=$(sed -n 's/^sbatch: error: //; s/^Batch job submission failed: //; /./p' <<< "$answer" | tail -n 1)
        give_up "$(said 'Slurm rejects the job: %s' "$answer")" "$(hint_on_refusal "$answer")"
    fi
    answer=$(tail -n 1 <<< "$answer")
    wait_for_job "${answer%%;*}"
}

begin() {
    check_slurm
    check_numbers
    check_time
    check_partition
    check_name
    mkdir -p "$FOLDER"
    SCRIPT=$FOLDER/$JOB_NAME.sbatch
}

# Writes the script atomically, because the same job may be submitted twice at once.
as_script() {
    cat > "$SCRIPT.$$"
    mv -f -- "$SCRIPT.$$" "$SCRIPT"
}

train() {
    local tasks=$1 program=$4
    check_ranks "$1" "$2" "$3"
    "$program" --dry 1 --ranks "$tasks" --labs "$3" "${@:5}" || exit
    JOB_NAME=${JOB_NAME:-train} JOB_CPUS=${JOB_CPUS:-1}
    begin
    choose_start
    PROGRAM=$program
    choose_layout "$tasks"
    check_room "$tasks" "$JOB_CPUS" "$JOB_NODES" "$JOB_TASKS_A_NODE"
    # The job runs a copy of the program, because the program may be built again while the job
    # waits.
    PROGRAM=$FOLDER/$JOB_NAME.train
    cp -- "$program" "$PROGRAM.$$"
    mv -f -- "$PROGRAM.$$" "$PROGRAM"
    write_train "$tasks" "${@:5}" | as_script
    submit
}

grade() {
    if [ -n "${SLURM_JOB_ID:-}" ]; then
        check_slurm
        exec srun --nodes=1 --ntasks=1 --overlap --mpi=none --quiet "$@"
    fi
    JOB_NAME=${JOB_NAME:-grade}
    begin
    if [ -n "${JOB_PROBE:-}" ]; then JOB_GPUS=${JOB_GPUS:-1}; fi
    JOB_CPUS=${JOB_CPUS:-$(nodes_of_partition | sort -n | tail -n 1 | awk '{ print $1 < 4 ? $1 : 4 }')}
    check_room 1 "$JOB_CPUS" '' ''
    write_grade "$@" | as_script
    submit
}

case ${1:-} in
train | grade) "$@" ;;
wait)
    check_slurm
    [[ $2 =~ ^[1-9][0-9]*$ ]] || give_up "$(said "JOB cannot be '%s'" "$2")" "$(say 'it is the number of a job: squeue --me lists yours')"
    wait_for_job "$2"
    ;;
esac
