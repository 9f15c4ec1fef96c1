# shellcheck shell=bash
# What can be known to be wrong before a job is in the queue. Part of submit.sh, whose settings (JOB_*) and give_up it uses.

check_slurm() {
    command -v sbatch > /dev/null || give_up "there is no Slurm here: no sbatch on PATH" \
        "on a cluster, run this on its login node; on this machine, make train and make grade without ON"
    local said
    said=$(sinfo --version 2>&1 && timeout 20 scontrol ping 2>&1) ||
        give_up "Slurm does not answer: $(tail -n 1 <<< "$said")" "is its controller up? sinfo shows it"
}

# A name becomes a file's and a job's.
check_name() {
    local other
    # shellcheck disable=SC2153 # JOB_NAME is submit.sh's
    [[ $JOB_NAME =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$ ]] ||
        give_up "NAME cannot be '$JOB_NAME'" "it names a file: letters, digits, '.', '_' and '-'"
    other=$(squeue --noheader --user "$(id -u)" --name "$JOB_NAME" --format '%i %Z' | awk -v here="$ROOT" '$2 == here { print $1; exit }')
    [ -z "$other" ] || give_up "job $other, which is called $JOB_NAME too, is in the queue" \
        "take another NAME; make sbatch JOB=$other waits for that one, scancel $other ends it"
}

check_number() {
    [[ -z $2 || $2 =~ ^[1-9][0-9]{0,3}$ ]] || give_up "$1 cannot be '$2'" "it is $3"
}

check_numbers() {
    check_number NODES "$JOB_NODES" "the number of nodes: NODES=2"
    check_number GPUS "$JOB_GPUS" "the number of GPUs of a node that the job takes: GPUS=4"
    check_number CPUS "$JOB_CPUS" "the number of cores of a rank: CPUS=4"
}

# Slurm's six ways to write a time.
check_time() {
    local n='[0-9]+' two='[0-9]{1,2}'
    [[ -z $JOB_TIME || (! $JOB_TIME =~ ^[0:-]+$ &&
        $JOB_TIME =~ ^($n|$n:$two|$n:$two:$two|$n-$two|$n-$two:$two|$n-$two:$two:$two)$) ]] ||
        give_up "TIME cannot be '$JOB_TIME'" "minutes, hours:minutes:seconds or days-hours: TIME=30, TIME=2:00:00, TIME=1-12"
}

check_partition() {
    local known
    known=$(sinfo --noheader --format %R | sort -u | paste -sd ' ')
    [[ -z $JOB_PARTITION || " $known " == *" $JOB_PARTITION "* ]] ||
        give_up "there is no partition '$JOB_PARTITION'" "those that you may use: $known"
}

# nodes_of_partition: the cores of each node, one a line.
nodes_of_partition() {
    local partition=${JOB_PARTITION:-$(sinfo --noheader --format %P | sed -n 's/\*$//p')}
    sinfo --noheader --Node ${partition:+--partition "$partition"} --format '%N %c' | sort -u | awk '{ print $2 }'
}

# check_room TASKS CORES NODES TASKS-A-NODE: the last two may be empty.
check_room() {
    local room nodes where=${JOB_PARTITION:+partition $JOB_PARTITION}
    where=${where:-the partition}
    nodes=$(nodes_of_partition | wc -l)
    room=$(nodes_of_partition | awk -v cores="$2" -v most="$4" '
        { here = int($1 / cores); room += most && here > most ? most : here } END { print room + 0 }')
    ((${3:-1} <= nodes)) || give_up "$where has $nodes nodes, and NODES=$3" "take fewer NODES, or another PARTITION (sinfo)"
    (($1 <= room)) || give_up \
        "$where has room for $room ranks of $2 cores${4:+, at most $4 on each of its nodes}, and NTASKS=$1" \
        "take fewer NTASKS or CPUS, or another PARTITION (sinfo)"
}
