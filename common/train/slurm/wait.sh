# shellcheck shell=bash
# Waits for a job: shows the queue's state, then what the job prints. Ctrl-C asks; a second one within five seconds ends the job.
# Part of submit.sh, whose give_up it uses.

job='' line='' output='' shown=0 status_line='' interrupted='' ending=''

# Over and over in one place on a terminal, else a line where it has changed.
show_status() {
    [ "$1" != "$status_line" ] || return 0
    status_line=$1
    if [ ! -t 1 ]; then
        printf '%s\n' "$1"
    else
        printf '\r%s\033[K' "${1:0:$(($(tput cols 2> /dev/null || echo 80) - 1))}"
    fi
}

leave_status() {
    [ ! -t 1 ] || [ -z "$status_line" ] || printf '\n'
    status_line=''
}

# Asks Slurm about the job. A controller that is busy is asked again; one that does not know the job ends this.
ask_slurm() {
    local said
    if said=$(scontrol show job --oneliner "$job" 2>&1); then
        line=$said
    elif [[ $said == *'Invalid job id'* ]]; then
        leave_status
        give_up "Slurm knows no job $job (any more)" "squeue --me lists yours; what it printed would be in $FOLDER"
    else
        show_status "job $job  Slurm does not answer; it is asked again"
    fi
}

field() {
    local rest
    [[ " $line" == *" $1="* ]] || return 0
    rest=${line#*" $1="}
    printf '%s' "${rest%% *}"
}

# Slurm's one word, with what it means where that is not plain.
reason_in_words() {
    case $1 in
    None | '') echo 'Slurm has not looked at it yet' ;;
    Priority) echo 'Priority: others come first' ;;
    Resources) echo 'Resources: waits for nodes that are busy' ;;
    PartitionConfig) echo 'PartitionConfig: the partition has not that many nodes or cores now' ;;
    BeginTime) echo 'BeginTime: starts again in a moment' ;;
    Partition*Down | Partition*Inactive) echo "$1: the partition is shut" ;;
    *) echo "$1" ;;
    esac
}

show_files() {
    printf 'job %s  script  %s\n' "$job" "$(shown_path "$(field Command)")"
    printf 'job %s  output  %s\n' "$job" "$(shown_path "$(field StdOut)")"
}

# As the user would write it.
shown_path() {
    printf '%s' "${1#"$PWD"/}"
}

# Reasons that no waiting changes.
is_hopeless() {
    case $1 in
    Partition*Limit | *NotAllowed | BadConstraints | Invalid* | *PerJob* | *MaxWallDuration* | DependencyNeverSatisfied | \
        *requeued_held | JobHoldMaxRequeue) return 0 ;;
    *) return 1 ;;
    esac
}

show_pending() {
    local reason start
    reason=$(field Reason) start=$(field StartTime)
    if is_hopeless "$reason"; then
        leave_status
        scancel "$job"
        if [[ $reason == *requeued_held ]]; then never_began; fi
        give_up "job $job could never start: $reason; it is out of the queue again" \
            "sinfo -o '%P %D %c %l' shows nodes, cores and time limits of the partitions"
    fi
    [[ $start == *T* ]] && start=", expected at ${start/T/ }" || start=''
    show_status "job $job  pending, $(reason_in_words "$reason")$start"
}

show_output() {
    local size
    output=$(field StdOut)
    [ -n "$output" ] && size=$(stat -c %s -- "$output" 2> /dev/null) && ((size > shown)) || return 0
    leave_status
    tail -c "+$((shown + 1))" -- "$output" | head -c $((size - shown))
    shown=$size
}

# A folder that only this machine sees: the job had nowhere to write to.
never_began() {
    give_up "node $(field BatchHost) does not see $(field WorkDir): the job could not write its output there" \
        "keep the kit in a folder that all nodes share"
}

# The status of the job that is over.
end_status() {
    local state code
    state=$(field JobState) code=$(field ExitCode)
    [ -z "$ending" ] || return 130
    case $state in
    COMPLETED) return 0 ;;
    FAILED)
        printf 'job %s ended with exit status %s\n' "$job" "$((${code%%:*} + (${code##*:} ? 128 + ${code##*:} : 0)))" >&2
        ((${code##*:} == 0)) || return $((128 + ${code##*:}))
        return "${code%%:*}"
        ;;
    CANCELLED) printf 'error: job %s was cancelled\n  HINT: what it saved before is in SAVE; RESUME goes on from there\n' "$job" >&2 ;;
    TIMEOUT) printf 'error: job %s ran longer than its time\n  HINT: a longer TIME\n' "$job" >&2 ;;
    *) printf 'error: job %s ended as %s\n  HINT: scontrol show job %s says more\n' "$job" "$state" "$job" >&2 ;;
    esac
    return 1
}

# The batch script's TERM lets the ranks save, whatever started them.
end_job() {
    if [ "$(field JobState)" = RUNNING ]; then
        printf 'job %s is asked to end (training saves first); once more ends it at once\n' "$job"
        scancel --batch --signal=TERM "$job"
    else
        printf 'job %s is taken out of the queue\n' "$job"
        scancel "$job"
    fi
}

on_interrupt() {
    leave_status
    if [ -n "$ending" ]; then
        scancel "$job"
    elif [ -n "$interrupted" ]; then
        ending=yes
        end_job
    else
        interrupted=$SECONDS
        printf 'job %s stays in the queue; Ctrl-C again within 5 seconds ends it\n' "$job"
    fi
}

# leave STATUS: this command ends, the job does not.
leave() {
    leave_status
    printf 'job %s goes on. make sbatch JOB=%s waits for it again, scancel %s ends it\n' "$job" "$job" "$job"
    exit "$1"
}

# A controller that serves thousands is asked every second at first, later every five.
wait_for_job() {
    local asked=-5
    job=$1
    trap on_interrupt INT
    trap 'leave 143' TERM HUP
    ask_slurm
    show_files
    while :; do
        if ((SECONDS < 30 || SECONDS - asked >= 5)); then
            ask_slurm
            asked=$SECONDS
        fi
        [ -z "$interrupted" ] || [ -n "$ending" ] || ((SECONDS - interrupted < 5)) || leave 130
        case $(field JobState) in
        '') ;;
        PENDING | CONFIGURING | REQUEUE* | SPECIAL_EXIT) show_pending ;;
        RUNNING | COMPLETING | SUSPENDED | STOPPED | RESIZING | SIGNALING | STAGE_OUT)
            [ "$shown" != 0 ] || show_status "job $job  $(field JobState | tr '[:upper:]' '[:lower:]') on $(field NodeList)"
            show_output
            ;;
        *) break ;;
        esac
        sleep 1 || true
    done
    trap '' INT
    [ "$shown" != 0 ] || [ "$(field JobState)" = CANCELLED ] || show_status "job $job  ran on $(field NodeList)"
    sleep 1 # what nodes write comes over a network
    show_output
    leave_status
    [ -e "$output" ] || [ "$(field JobState)" = CANCELLED ] || never_began
    end_status
}
