#!/usr/bin/env bash
# Every wrong answer is rejected by the right check with the right sentence; every right one is
# accepted.
bash "$(dirname "$0")/mutants.sh"
status=$?
bash "$(dirname "$0")/margins.sh" && exit $status
