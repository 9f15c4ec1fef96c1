#!/usr/bin/env bash
# run.sh with fake tests, in its own folder: its output for a failure and a flaky test, and its
# final lines.
# shellcheck disable=SC2016,SC2317 # fakes expand what is quoted; check calls functions
set -uo pipefail
cd "$ROOT" || exit 2
runner=$PWD/common/tests/run.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
check() {
    if "${@:2}"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/    | /' "$work/said"
        failures=1
    fi
}

# fake NAME COMMANDS: makes a test that runs COMMANDS. In its first run, $again is empty.
fake() {
    local path=$work/kit/common/base/tests/$1.sh
    mkdir -p "${path%/*}"
    printf '#!/bin/bash\nran=%q\nagain=; [ ! -e "$ran" ] || again=1; : > "$ran"\necho "$$" >> "$ran"\n%s\n' "$work/$1.ran" "$2" > "$path"
    chmod +x "$path"
}
flaky='[ "$again" ] && echo "ok - holds now" || { echo "not ok - holds"; echo "    a reason"; exit 1; }'
# runs: runs all fakes; writes the output to $work/said, sets $status.
runs() {
    rm -f "$work"/*.ran
    mkdir -p "$work/kit/build/tests"
    ROOT=$work/kit BUILD=$work/kit/build "$runner" fast > "$work/said" 2>&1
    status=$?
    rm -rf "$work/kit/common"
}
closes() { # closes LINE STATUS
    [ "$status" = "$2" ] && [ "$(tail -n 1 "$work/said")" = "$1" ]
}
says() {
    grep -qE -- "$1" "$work/said"
}
line() { # the number of the last line that matches
    grep -nE -- "$1" "$work/said" | tail -n 1 | cut -d: -f1
}

fake good 'echo "ok - one"; echo "skip - two: none"'
runs
check "a run without failures is green, and ends with its totals" closes "1 passed, 0 failed, 1 skipped" 0
check "each test is shown with its seconds and CPU seconds" says '^✓ common/base/tests/good.sh +1 passed, 1 skipped +[0-9.]+ s +[0-9.]+ s CPU$'
check "a run of ten tests or fewer has no list of the slowest" eval '! says "slowest"'

fake outer "$(printf '%q fast > "$BUILD/inner" 2>&1; [ $? = 2 ] && grep -q "^error: another run of the tests" "$BUILD/inner" && [ -e "$BUILD/tests/log/script/common/base/tests/outer.sh.log" ] && echo "ok - refused"' "$runner")"
runs
check "a second run in the same folder is refused, and deletes no logs" closes "1 passed, 0 failed, 0 skipped" 0

for n in 1 2 3 4 5 6 7 8 9 10 11; do fake "good$n" 'echo "ok - one"'; done
fake slow 'echo "ok - one"; for ((i = 0; i < 300000; i++)); do :; done'
runs
check "a longer run lists its ten slowest tests before the last line" \
    [ "$(tail -n 11 "$work/said" | head -n 10 | grep -cE '^ +[0-9.]+ +[0-9.]+  common/base/tests/[a-z0-9]+\.sh$')" = 10 ]
check "the slowest is first, with its CPU seconds" \
    eval "tail -n 11 '$work/said' | head -n 1 | grep -qE '^ +[0-9.]+ +(0\.[1-9]|[1-9][0-9.]+)  common/base/tests/slow\.sh'"

fake flaky1 "$flaky"
fake flaky2 "$flaky"
fake zlast 'sleep 0.5; [ "$(cat "${ran%/*}"/flaky1.ran | wc -l)" = 1 ] && echo "ok - the others run first"'
runs
check "two tests that fail once leave the run green, with no failure" closes "3 passed, 0 failed, 0 skipped" 0
check "tests that fail once are listed as flaky" says '^Flaky'
for n in 1 2; do
    check "the list shows the first run of flaky test $n" [ "$(line "^✗ common/base/tests/flaky$n.sh")" -gt "$(line '^Flaky')" ]
    check "the list shows the second run of flaky test $n" [ "$(line "^✓ common/base/tests/flaky$n.sh")" -gt "$(line "^✗ common/base/tests/flaky$n.sh")" ]
done
check "both outputs are shown" eval 'says "^    not ok - holds$" && says "^        a reason$" && says "^    \\| ok - holds now$"'

for n in 1 2 3; do fake "flaky$n" "$flaky"; done
fake good 'echo "ok - one"'
runs
check "three flaky tests make the run red" closes "4 passed, 3 failed, 0 skipped" 1

fake bad 'echo "ok - one"; echo "not ok - two"; echo "    a reason"; exit 1'
runs
check "a test that fails twice is red" closes "1 passed, 1 failed, 0 skipped" 1
check "a test that fails runs twice, and no more" [ "$(grep -c '^✗' "$work/said")" = 3 ]
check "the end repeats what failed" [ "$(line '^    not ok - two$')" -gt "$(line '^What failed:$')" ]
check "a test that fails twice is not flaky" eval '! says "^Flaky"'

fake silent ':'
fake dies 'echo "ok - one"; kill -SEGV $$'
runs
check "a test that prints nothing fails, and so does one that dies" closes "1 passed, 2 failed, 0 skipped" 1

fake hides 'python3 -c "print(\"ok - one\"); {}[2]" | tee /dev/null'
runs
check "a test that hides a Python traceback fails" closes "1 passed, 1 failed, 0 skipped" 1
exit "$failures"
