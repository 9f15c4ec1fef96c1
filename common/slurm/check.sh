# shellcheck shell=bash
# Before a job is queued, detects settings that cannot work. Part of submit.sh; uses its settings
# (JOB_*) and give_up.

check_slurm() {
    command -v sbatch > /dev/null || give_up "$(say 'there is no Slurm here: no sbatch on PATH')" \
        "$(say 'on a cluster, run this on its login node; on this machine, use make train, or make grade without ON')"
    local answer
    answer=$(sinfo --version 2>&1 && timeout 20 scontrol ping 2>&1) ||
        give_up "$(said 'Slurm does not answer: %s' "$(tail -n 1 <<< "$answer")")" "$(say 'is its controller up? sinfo shows it')"
}

# Checks NAME, which names a file and a job.
check_name() {
    local other
    # shellcheck disable=SC2153 # JOB_NAME is submit.sh's
    [[ $JOB_NAME =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$ ]] ||
        give_up "$(said "NAME cannot be '%s'" "$JOB_NAME")" "$(say "it names a file: use only letters, digits, '.', '_' and '-'")"
    other=$(squeue --noheader --user "$(id -u)" --name "$JOB_NAME" --format '%i %Z' | awk -v here="$ROOT" '$2 == here { print $1; exit }')
    [ -z "$other" ] || give_up "$(said 'another job in the queue, %s, already has the name %s' "$other" "$JOB_NAME")" \
        "$(said 'choose another NAME; make sbatch JOB=%s waits for that job; scancel %s ends it' "$other" "$other")"
}

check_number() {
    [[ -z $2 || $2 =~ ^[1-9][0-9]{0,3}$ ]] || give_up "$(said "%s cannot be '%s'" "$1" "$2")" "$3"
}

check_numbers() {
    check_number NODES "$JOB_NODES" "$(say 'it is the number of nodes: NODES=2')"
    check_number GPUS "$JOB_GPUS" "$(say 'it is the number of GPUs per node: GPUS=4')"
    check_number CPUS "$JOB_CPUS" "$(say 'it is the number of cores per rank: CPUS=4')"
}

# Checks TIME, which Slurm accepts in six forms.
check_time() {
    local n='[0-9]+' two='[0-9]{1,2}'
    [[ -z $JOB_TIME || (! $JOB_TIME =~ ^[0:-]+$ &&
        $JOB_TIME =~ ^($n|$n:$two|$n:$two:$two|$n-$two|$n-$two:$two|$n-$two:$two:$two)$) ]] ||
        give_up "$(said "TIME cannot be '%s'" "$JOB_TIME")" "$(say 'minutes, hours:minutes:seconds or days-hours: TIME=30, TIME=2:00:00, TIME=1-12')"
}

check_partition() {
    local known
    known=$(sinfo --noheader --format %R | sort -u | paste -sd ' ')
    [[ -z $JOB_PARTITION || " $known " == *" $JOB_PARTITION "* ]] ||
        give_up "$(said "there is no partition '%s'" "$JOB_PARTITION")" "$(said 'those that you may use: %s' "$known")"
}

# nodes_of_partition: the number of cores of each node, one per line.
nodes_of_partition() {
    local partition=${JOB_PARTITION:-$(sinfo --noheader --format %P | sed -n 's/\*$//p')}
    sinfo --noheader --Node ${partition:+--partition "$partition"} --format '%N %c' | sort -u | awk '{ print $2 }'
}

# check_room TASKS CORES NODES TASKS-PER-NODE: can the partition run this many tasks, with CORES
# each? The last two may be empty.
check_room() {
    local room nodes where hint
    if [ -n "$JOB_PARTITION" ]; then where=$(said 'partition %s' "$JOB_PARTITION"); else where=$(say 'the partition'); fi
    nodes=$(nodes_of_partition | wc -l)
    room=$(nodes_of_partition | awk -v cores="$2" -v most="$4" '
        { here = int($1 / cores); room += most && here > most ? most : here } END { print room + 0 }')
    ((${3:-1} <= nodes)) || give_up "$(said '%s has too few nodes (%s) for NODES=%s' "$where" "$nodes" "$3")" "$(say 'choose fewer NODES, or another PARTITION (sinfo)')"
    (($1 > room)) || return 0
    hint=$(say 'choose fewer NTASKS or CPUS, or another PARTITION (sinfo)')
    [ -z "$4" ] || give_up "$(said '%s has room for %s ranks with CPUS=%s, at most %s on each of its nodes, but NTASKS=%s' "$where" "$room" "$2" "$4" "$1")" "$hint"
    give_up "$(said '%s has room for %s ranks with CPUS=%s, but NTASKS=%s' "$where" "$room" "$2" "$1")" "$hint"
}
