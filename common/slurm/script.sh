# shellcheck shell=bash
# Writes batch scripts. Part of submit.sh; uses its settings (JOB_*, SITE_*).

option() {
    [ -z "$2" ] || printf '#SBATCH --%s=%s\n' "$1" "$(words "$2" | cut -c 2-)"
}

# write_head AUTHOR OPTIONS...: writes the start of a script, for both kinds of job. AUTHOR is the
# command that writes the script; each option gets a #SBATCH line.
write_head() {
    local line word
    printf '#!/bin/bash\n# Written by %s; sbatch %s submits it as it is.\n' "$1" "${SCRIPT#"$ROOT"/}"
    option job-name "$JOB_NAME"
    shift
    for line; do printf '#SBATCH %s\n' "$line"; done
    option gres "${JOB_GPUS:+gpu:$JOB_GPUS}"
    for line in partition account qos constraint time; do
        word=JOB_${line^^}
        option "$line" "${!word}"
    done
    option chdir "$ROOT"
    option output "$FOLDER/$JOB_NAME-%j.out"
    for line in $SITE_SBATCH; do printf '#SBATCH %s\n' "$line"; done
}

write_site() {
    [ -n "$SITE_MODULES$SITE_SETUP" ] || return 0
    printf '\n# What this cluster needs (site.mk).\n'
    [ -z "$SITE_MODULES" ] || printf 'module purge\nmodule load %s\n' "$SITE_MODULES"
    [ -z "$SITE_SETUP" ] || printf '%s\n' "$SITE_SETUP"
}

# Prints each word, with a blank before it and quoted for a shell if necessary.
words() {
    local word
    for word; do
        if [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]]; then printf ' %s' "$word"; else printf " '%s'" "${word//\'/\'\\\'\'}"; fi
    done
}

write_environment() {
    cat << 'END'

unset OPENBLAS_CORETYPE # a preset value may select the kernels of another processor
export OMP_WAIT_POLICY=passive
# With Slurm's tree, a rank may leave MPI_Init before another has entered its barrier. The first
# message then kills the other with signal 11 (Slurm 22.05: 8 of 500 starts; with the ring, none).
export SLURM_PMIX_FENCE=${SLURM_PMIX_FENCE:-ring}
# Open MPI names shared memory after the job, and a requeued job keeps its number. So each start has
# its own folder: otherwise, processes of the previous start that are still ending would remove the
# new one's files.
shared=/dev/shm/train-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}
END
    # shellcheck disable=SC2016 # the job expands it
    open_mpi_settings root quiet sums shared='$shared' | sed 's/^\([^=]*\)=\(.*\)/export \1="\2"/'
}

write_signals() {
    cat << 'END'

# A minute before the time limit, Slurm sends USR1; TERM is a request to end the job. On either
# signal, the ranks finish their step and save.
ranks='' reason=''
ask_to_end() {
    reason=$1
    [ -z "$ranks" ] || kill -USR1 "$ranks" 2> /dev/null
}
trap 'ask_to_end time' USR1
trap 'ask_to_end cancelled' TERM
END
}

write_look() {
    cat << END

on_each_node() {
    srun --quiet --nodes="\$SLURM_JOB_NUM_NODES" --ntasks="\$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpus-per-task=1 --mpi=none "\$@" 2> /dev/null
}
# Does every node see the program?
blind=\$(on_each_node sh -c 'mkdir -p "\$1"; test -x "\$0" || hostname'$(words "$PROGRAM") "\$shared")
if [ -n "\$blind" ]; then
    printf $(words "$(say 'error: ')$(say '%s does not exist on node %s')\n$(say '  HINT: ')%s\n" "$PROGRAM" | cut -c 2-) "\$blind" \\
       $(words "$(say 'keep the kit in a folder that all nodes share')")
    exit 2
fi
END
}

# The option that gives each rank its own cores, if Slurm can bind.
binding() {
    if scontrol show config | grep -q '^TaskPlugin .*\(affinity\|cgroup\)'; then printf ' --cpu-bind=cores'; fi
}

# start_command TASKS: uses srun if Slurm supports PMIx, which Open MPI understands; otherwise Open
# MPI's mpirun, which asks Slurm for the nodes.
start_command() {
    # shellcheck disable=SC2153 # JOB_CPUS is submit.sh's
    if [ "$JOB_START" = srun ]; then
        printf 'srun --quiet --mpi=pmix --ntasks=%s --cpus-per-task=%s --kill-on-bad-exit=1%s' "$1" "$JOB_CPUS" "$(binding)"
    else
        printf 'mpirun -n %s --map-by slot:PE=%s --bind-to core' "$1" "$JOB_CPUS"
    fi
}

write_training() {
    local tasks=$1
    shift
    printf '\n%s \\\n   %s &\n' "$(start_command "$tasks")" "$(words "$PROGRAM" --ranks "$tasks" --threads "$JOB_CPUS" "$@")"
    cat << 'END'
ranks=$!
[ -z "$reason" ] || kill -USR1 "$ranks"
while kill -0 "$ranks" 2> /dev/null; do wait "$ranks"; done
wait "$ranks"
status=$?
on_each_node rm -rf "$shared"
END
}

# Writes the end of the script, which depends on whether the job saves checkpoints to resume from.
write_end() {
    if [ -n "$1" ]; then
        cat << END

if [ "\$reason" = time ] && [ "\$status" = 0 ]; then
    printf $(words "$(say 'the time limit was reached: job %s goes back into the queue, and resumes from the checkpoint in %s')\n" | cut -c 2-) "\$SLURM_JOB_ID"$(words "$1")
    trap '' TERM
    scontrol requeue "\$SLURM_JOB_ID" && exit 0
fi
END
    else
        cat << END

if [ "\$reason" = time ]; then
    printf $(words "$(say 'error: ')$(say 'the time limit was reached')\n$(say '  HINT: ')%s\n" | cut -c 2-) \\
       $(words "$(say 'choose a longer TIME, or add SAVE=DIR RESUME=DIR: the job then goes back into the queue until it is done')")
    exit 1
fi
END
    fi
    # shellcheck disable=SC2016 # the job expands these
    printf '[ "$reason" != cancelled ] || exit 143\nexit "$status"\n'
}

# value_of OPTION OPTIONS...: the value of OPTION in OPTIONS.
value_of() {
    local name=$1
    shift
    while (($# > 1)); do
        [ "$1" != "$name" ] || printf '%s' "$2"
        shift
    done
}

# write_train TASKS OPTIONS...
write_train() {
    local tasks=$1 save again='' head
    save=$(value_of --save "$@")
    [ "$save" != "$(value_of --resume "$@")" ] || again=$save
    head=(--ntasks="$tasks" --cpus-per-task="$JOB_CPUS" --open-mode=append --signal=B:USR1@60)
    [ -z "$JOB_NODES" ] || head+=(--nodes="$JOB_NODES" --ntasks-per-node="$JOB_TASKS_A_NODE")
    if [ -n "$again" ]; then head+=(--requeue); else head+=(--no-requeue); fi
    shift
    write_head "make sbatch NTASKS=$tasks" "${head[@]}"
    write_signals
    write_site
    write_environment
    write_look
    write_training "$tasks" "$@"
    write_end "$again"
}

# write_grade COMMAND...: the job is one process, which starts the ranks on its node itself.
write_grade() {
    write_head "make grade ON=slurm" --nodes=1 --ntasks=1 --cpus-per-task="$JOB_CPUS" --no-requeue
    write_site
    printf '\n'
    [ -z "${JOB_PROBE:-}" ] || printf '%s > /dev/null || exit # is there a GPU?\n' "$JOB_PROBE"
    printf 'exec%s\n' "$(words "$@")"
}
