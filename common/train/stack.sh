#!/usr/bin/env bash
# stack.sh MINE REFERENCED TOO-EARLY LACKING: whose labs a training with STACK=mine stands on, and which of the student's it does not use yet.
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/../base/say.sh"
mine=$1 referenced=$2 too_early=$3 lacking=$4
case ${mine:+mine}${referenced:+referenced} in
'') tell 'stack     your labs: none; the reference: none' ;;
mine) tell 'stack     your labs: %s; the reference: none' "$mine" ;;
referenced) tell 'stack     your labs: none; the reference: %s' "$referenced" ;;
*) tell 'stack     your labs: %s; the reference: %s' "$mine" "$referenced" ;;
esac
[ -z "$too_early" ] || tell 'not used  your labs: %s; the next stage needs labs that are not started: %s' "$too_early" "$lacking"
