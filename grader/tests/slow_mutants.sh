#!/usr/bin/env bash
# Every wrong answer is rejected by the check that should, with the sentence that should; every right one is accepted.
exec bash "$(dirname "$0")/mutants.sh"
