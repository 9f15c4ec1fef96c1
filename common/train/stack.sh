#!/usr/bin/env bash
# stack.sh MINE REFERENCED TOO-EARLY LACKING: whose labs a training with STACK=mine stands on, and which of the student's it does not use yet.
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/../base/say.sh"
mine=$1 referenced=$2 too_early=$3 lacking=$4
case ${mine:+mine}${referenced:+referenced} in
'') say 'stack     your labs: none; the reference: none' ;;
mine) said 'stack     your labs: %s; the reference: none' "$mine" ;;
referenced) said 'stack     your labs: none; the reference: %s' "$referenced" ;;
*) said 'stack     your labs: %s; the reference: %s' "$mine" "$referenced" ;;
esac
echo
if [ -n "$too_early" ]; then
    said 'not used  your labs: %s; the next stage needs labs that are not started: %s' "$too_early" "$lacking"
    echo
fi
