#!/usr/bin/env bash
# Labs that attack their grader (see attacks.bash), as the user who runs this test. slow_attacks.sh
# runs the attacks and the ways that are missing here.
# shellcheck source=grader/tests/attacks.bash
. "$(dirname "$0")/attacks.bash"
builds
time_limits
names
compiler
if has_sandbox; then
    walls
    stays_inside
    signals
    memory
    endings
    starts
    interrupted
else
    echo "skip - attacks in a sandbox: $(sed -n 's/^error: //p' out)"
fi
WAY=off
itself
spawning
processes
files
starts
check "a report without a sandbox says so" says "no sandbox here (switched off): the ranks ran with resource limits only"
interrupted
finish
