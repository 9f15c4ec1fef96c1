# shellcheck shell=bash
# Checks a run before ranks are started, here or on a cluster. Sourced by launch.sh, slurm/submit.sh
# and setup/doctor.sh.

source "${BASH_SOURCE[0]%/*}/../base/say.sh"

must_be_ranks() { # must_be_ranks NTASKS [MOST]: MOST digits after the first one
    [[ $1 =~ ^[1-9][0-9]{0,"${2:-3}"}$ ]] || give_up "$(said "NTASKS cannot be '%s'" "$1")" "$(say 'it is the number of ranks, such as NTASKS=2')"
}

# threads_of_a_rank NTASKS: by default, ranks share the cores evenly.
threads_of_a_rank() {
    local cores
    cores=$(env -u OMP_NUM_THREADS nproc)
    echo "${OMP_NUM_THREADS:-$((cores / $1 > 0 ? cores / $1 : 1))}"
}

# check_ranks NTASKS STACK STAGE [MOST]: ends with an error if this stage of the labs cannot train on
# these ranks.
check_ranks() {
    local ranks=$1 stack=$2 stage=$3
    must_be_ranks "$ranks" "${4:-}"
    if [ "$stage" -lt 5 ] && [ "$ranks" -gt 1 ]; then
        give_up "$(said 'before lab 5 the feed-forward layers are whole on every rank: NTASKS=%s would not split the model (STACK=%s)' "$ranks" "$stack")" \
            "$(say 'NTASKS=1 TP=1, or go on to lab 5')"
    fi
}
