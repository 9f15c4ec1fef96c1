# shellcheck shell=bash
# Checks NTASKS, TP and PP before ranks are started, here or on a cluster. Sourced by launch.sh and
# slurm/submit.sh.

source "${BASH_SOURCE[0]%/*}/../base/say.sh"

# check_ranks NTASKS STACK STAGE OPTIONS...: ends with an error if this stage of the labs cannot
# train on these ranks.
check_ranks() {
    local ranks=$1 stack=$2 stage=$3 tp=1 pp=1
    shift 3
    [[ $ranks =~ ^[1-9][0-9]{0,3}$ ]] || give_up "$(said "NTASKS cannot be '%s'" "$ranks")" "$(say 'it is the number of ranks: make train NTASKS=2 TP=2')"
    if [ "$stage" -lt 5 ] && [ "$ranks" -gt 1 ]; then
        give_up "$(said 'at stage %s (STACK=%s) the feed-forward layers are whole on every rank: NTASKS=%s would not split the model' "$stage" "$stack" "$ranks")" \
            "$(say 'NTASKS=1 TP=1, or go on to balise 5')"
    fi
    while (($# > 1)); do
        [ "$1" != --tp ] || tp=$2
        [ "$1" != --pp ] || pp=$2
        shift
    done
    if [ "$stage" -lt 9 ] && [ "$stage" -ge 5 ] && [ "$tp" != "$ranks" ]; then
        give_up "$(said 'NTASKS=%s and TP=%s: before balise 9 all ranks split one model' "$ranks" "$tp")" "$(say 'choose TP equal to NTASKS')"
    fi
    if [ "$stage" -lt 12 ] && [ "$pp" != 1 ]; then
        give_up "$(said 'PP=%s: before balise 12 the model is one stage' "$pp")" "$(say 'leave out PP, or go on to balise 12')"
    fi
    if [ "$stack" = mine ]; then
        tell 'stage     after lab %s' "$stage"
    fi
}
