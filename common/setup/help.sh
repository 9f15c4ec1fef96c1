#!/usr/bin/env bash
# help.sh [TOPIC]: prints make help [TOPIC] in the reader's language. The translated message is the
# name of the file with the help. A topic begins with a line "== TOPIC"; the part before the first
# topic is for students.
set -euo pipefail
source "${0%/*}/../base/say.sh"
file=$(say 'common/setup/help.txt')
[ -r "$file" ] || file=common/setup/help.txt
topics=$(sed -n 's/^== //p' "$file" | paste -sd ' ')
[[ $# = 0 || ($# = 1 && " $topics " == *" $1 "*) ]] ||
    give_up "$(said "there is no help on '%s'" "$*")" "$(said 'make help alone, or with one of: %s' "$topics")"
awk -v asked="${1:-}" '/^== / { topic = $2; next } topic == asked { lines[++count] = $0 }
    END { while (lines[count] == "") count--; for (i = 1; i <= count; i++) print lines[i] }' "$file" 2> /dev/null ||
    output_is_lost
