# shellcheck shell=bash
# Waits for a job: shows the queue's state, then the job's output. Five seconds after a Ctrl-C, this
# command ends, but not the job. A second Ctrl-C within this time asks the job to end; a third
# cancels it. Part of submit.sh; uses its give_up.

job='' line='' output='' shown=0 status_line='' interrupted='' ending=''

# Shows a status: on a terminal, overwrites the previous one; otherwise prints a line when it
# changes.
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

# Asks Slurm about the job. If the controller is busy, asks again later; if it does not know the
# job, ends.
ask_slurm() {
    local answer
    if answer=$(scontrol show job --oneliner "$job" 2>&1); then
        line=$answer
    elif [[ $answer == *'Invalid job id'* ]]; then
        leave_status
        give_up "$(said 'Slurm does not know job %s (any more)' "$job")" "$(said 'squeue --me lists your jobs; the output of this one would be in %s' "$FOLDER")"
    else
        show_status "$(said 'job %s  Slurm does not answer; trying again' "$job")"
    fi
}

field() {
    local rest
    [[ " $line" == *" $1="* ]] || return 0
    rest=${line#*" $1="}
    printf '%s' "${rest%% *}"
}

# Slurm's reason, explained if it is not obvious.
reason_in_words() {
    case $1 in
    None | '') say 'Slurm has not considered it yet' ;;
    Priority) say 'Priority: others come first' ;;
    Resources) say 'Resources: waits until busy nodes are free' ;;
    PartitionConfig) say 'PartitionConfig: more nodes, cores or TIME than the partition allows now' ;;
    BeginTime) say 'BeginTime: starts again in a moment' ;;
    Partition*Down | Partition*Inactive) said '%s: the partition is not available' "$1" ;;
    *) echo "$1" ;;
    esac
}

# The state of a job that is not pending, in words. Only these two states last long.
state_in_words() {
    case $(field JobState) in
    RUNNING) say 'running' ;;
    COMPLETING) say 'completing' ;;
    *) field JobState | tr '[:upper:]' '[:lower:]' ;;
    esac
}

show_files() {
    tell 'job %s  script  %s' "$job" "$(shown_path "$(field Command)")"
    tell 'job %s  output  %s' "$job" "$(shown_path "$(field StdOut)")"
}

# The path as the user would write it.
shown_path() {
    printf '%s' "${1#"$PWD"/}"
}

# Would a job that is pending for this reason wait forever?
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
        give_up "$(said 'job %s can never start: %s; it was removed from the queue' "$job" "$reason")" \
            "$(say "sinfo -o '%P %D %c %l' shows nodes, cores and time limits of the partitions")"
    fi
    if [[ $start == *T* ]]; then
        show_status "$(said 'job %s  pending, %s, expected at %s' "$job" "$(reason_in_words "$reason")" "${start/T/ }")"
    else
        show_status "$(said 'job %s  pending, %s' "$job" "$(reason_in_words "$reason")")"
    fi
}

show_output() {
    local size
    output=$(field StdOut)
    [ -n "$output" ] && size=$(stat -c %s -- "$output" 2> /dev/null) && ((size > shown)) || return 0
    leave_status
    tail -c "+$((shown + 1))" -- "$output" | head -c $((size - shown))
    shown=$size
}

# Reports that the node does not see the job's folder, so the job could not write its output there.
never_began() {
    give_up "$(said 'node %s does not see %s: the job could not write its output there' "$(field BatchHost)" "$(field WorkDir)")" \
        "$(say 'keep the kit in a folder that all nodes share')"
}

# The exit status of the finished job.
end_status() {
    local state code
    state=$(field JobState) code=$(field ExitCode)
    [ -z "$ending" ] || return 130
    case $state in
    COMPLETED) return 0 ;;
    FAILED)
        printf '%s\n' "$(said 'job %s ended with exit status %s' "$job" "$((${code%%:*} + (${code##*:} ? 128 + ${code##*:} : 0)))")" >&2
        ((${code##*:} == 0)) || return $((128 + ${code##*:}))
        return "${code%%:*}"
        ;;
    CANCELLED) complain "$(said 'job %s was cancelled' "$job")" "$(say 'what it saved before is in SAVE; RESUME continues from there')" ;;
    TIMEOUT) complain "$(said 'job %s exceeded its time limit' "$job")" "$(say 'choose a longer TIME')" ;;
    *) complain "$(said 'job %s ended as %s' "$job" "$state")" "$(said 'scontrol show job %s says more' "$job")" ;;
    esac
    return 1
}

# Ends the job. On TERM, the batch script makes the ranks save, however it has started them.
end_job() {
    if [ "$(field JobState)" = RUNNING ]; then
        tell 'job %s was asked to stop (training saves first); press Ctrl-C again to end it at once' "$job"
        scancel --batch --signal=TERM "$job"
    else
        tell 'job %s was removed from the queue' "$job"
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
        tell 'job %s stays in the queue; Ctrl-C again within 5 seconds ends it' "$job"
    fi
}

# leave STATUS: ends this command, but not the job.
leave() {
    leave_status
    tell 'job %s continues. make sbatch JOB=%s waits for it again; scancel %s ends it' "$job" "$job" "$job"
    exit "$1"
}

# Waits for the job. Asks the controller, which many users share, every second at first, later every
# five seconds.
wait_for_job() {
    local asked=-5
    job=$1
    trap on_interrupt INT
    trap 'leave 143' TERM HUP
    set +e # Ctrl-C also ends the command that this script is running
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
            [ "$shown" != 0 ] || show_status "$(said 'job %s  %s on %s' "$job" "$(state_in_words)" "$(field NodeList)")"
            show_output
            ;;
        *) break ;;
        esac
        sleep 1 || true
    done
    trap '' INT
    set -e
    [ "$shown" != 0 ] || [ "$(field JobState)" = CANCELLED ] || show_status "$(said 'job %s  ran on %s' "$job" "$(field NodeList)")"
    sleep 1 # the nodes' output arrives over a network
    show_output
    leave_status
    [ -e "$output" ] || [ "$(field JobState)" = CANCELLED ] || never_began
    end_status
}
