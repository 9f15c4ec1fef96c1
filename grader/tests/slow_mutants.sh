#!/usr/bin/env bash
# Every wrong answer is rejected by the check that should, with the sentence that should; every right one is accepted.
bash "$(dirname "$0")/mutants.sh"
status=$?
bash "$(dirname "$0")/margins.sh" && exit $status
