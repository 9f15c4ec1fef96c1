#!/usr/bin/env bash
# help.sh [TOPIC]: prints make help [TOPIC], rows of the table of settings, in the reader's language.
set -euo pipefail
source "${0%/*}/../base/say.sh"
source "${0%/*}/settings.sh"
topics=$(sed -n 's/^== //p' "$settings_table" | paste -sd ' ')
[[ $# = 0 || ($# = 1 && " $topics " == *" $1 "*) ]] ||
    give_up "$(said "there is no help on '%s'" "$*")" "$(said 'make help alone, or with one of: %s' "$topics")"

# in_columns INDENT LEFT TEXT: prints a row within 80 columns. The text begins in the 30th, below what
# is too long.
in_columns() {
    local LC_ALL=C.UTF-8 head rest=$3 line
    printf -v head '%*s%s' "$1" '' "$2"
    ((${#head} <= 28)) || { printf '%s\n' "$head" && head=''; }
    while line=${rest:0:52} && [ -n "$line" ]; do
        ((${#line} <= 51)) || line=${line% *}
        printf '%s%*s%s\n' "$head" $((29 - ${#head})) '' "$line"
        head='' rest=${rest:${#line}} rest=${rest# }
    done
    [ -z "$head" ] || printf '%s\n' "$head"
}

help=$(rows "${1:-}" | while IFS= read -r row; do
    text=${row##*$'\t'} row=${row%$'\t'*}
    [ -z "$text" ] || text=$(say "$text")
    case $row in
    0*) printf '%s\n' "$text" ;;
    *) in_columns "${row%%$'\t'*}" "${row#*$'\t'}" "$text" ;;
    esac
done)
printf '%s\n' "$help" 2> /dev/null || output_is_lost
