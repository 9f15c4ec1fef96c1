#!/usr/bin/env bash
# dry_run.sh NTASKS STACK STAGE PROGRAM OPTIONS...: simulates ranks of a run on NTASKS ranks with PROGRAM
# (build/check), in one process.
set -euo pipefail
ranks=$1 stack=$2 stage=$3 program=$4
shift 4
# shellcheck source-path=SCRIPTDIR source=ranks.sh
source "${BASH_SOURCE[0]%/*}/ranks.sh"
# shellcheck source-path=SCRIPTDIR source=../comm/open_mpi.sh
source "${BASH_SOURCE[0]%/*}/../comm/open_mpi.sh"
check_ranks "$ranks" "$stack" "$stage" 5
open_mpi single quiet
"$program" --threads "$(threads_of_a_rank "$ranks")" "$@" --ranks "$ranks" --labs "$stage" && status=0 || status=$?
[ "$status" -le 128 ] || complain "$(said 'the run was ended by signal %s (%s)' $((status - 128)) "$(kill -l $((status - 128)))")" \
    "$(say 'make grade tells why a lab crashes')"
exit "$status"
