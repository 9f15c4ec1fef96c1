# shellcheck shell=bash
# What must hold of NTASKS and TP before ranks are started, here or on a cluster. Sourced by launch.sh and slurm/sbatch.sh.

give_up() {
    printf 'error: %s\n  HINT: %s\n' "$1" "$2" >&2
    exit 2
}

# check_ranks NTASKS STACK STAGE OPTIONS...: ends with an error where this stage of the labs cannot train so.
check_ranks() {
    local ranks=$1 stack=$2 stage=$3 tp=1
    shift 3
    [[ $ranks =~ ^[1-9][0-9]{0,3}$ ]] || give_up "NTASKS cannot be '$ranks'" "it is the number of ranks: make train NTASKS=2 TP=2"
    if [ "$stage" -lt 5 ] && [ "$ranks" -gt 1 ]; then
        give_up "at stage $stage (STACK=$stack) the feed-forward layers are whole on every rank: NTASKS=$ranks would not split the model" \
            "NTASKS=1 TP=1, or go on to balise 5"
    fi
    while (($# > 1)); do
        [ "$1" != --tp ] || tp=$2
        shift
    done
    if [ "$stage" -lt 9 ] && [ "$stage" -ge 5 ] && [ "$tp" != "$ranks" ]; then
        give_up "NTASKS=$ranks and TP=$tp: before balise 9 all ranks split one model" "choose TP equal to NTASKS"
    fi
    [ "$stack" != mine ] || printf 'stage     after lab %s\n' "$stage"
}
