#!/usr/bin/env bash
# Every unusual right answer is accepted, and the first wrong one of each set of checks is rejected
# by these checks with the right sentence. ALL=1 (make test-grader): every wrong one, in half an hour.
few=(--few)
[ -z "${ALL:-}" ] || few=()
bash "$(dirname "$0")/mutants.sh" "${few[@]}"
status=$?
bash "$(dirname "$0")/margins.sh" && exit $status
