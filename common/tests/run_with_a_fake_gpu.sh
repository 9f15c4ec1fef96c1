#!/usr/bin/env bash
# make test BACKEND=cuda with fake programs and a fake compute-sanitizer: which tools check which
# tests, and that their findings are failures.
set -uo pipefail
cd "$ROOT" || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

program=$work/build/tests/cuda/common/backend/tests/test_kernels_made_up
mkdir -p "${program%/*}" "$work/bin" "$work/none"
printf '#!/bin/bash\necho "ok 1 - one"\necho 1..1\n' > "$program"
cat > "$work/bin/compute-sanitizer" << 'END'
#!/bin/bash
# --tool TOOL --error-exitcode STATUS --launch-count COUNT PROGRAM
echo "$2 looks at $6 launches of ${7##*/}" >> "$TOOLS"
"$7" || exit
[[ $2 != "$FINDS" ]] || { echo "========= Invalid __global__ read of size 4 bytes"; exit "$4"; }
END
chmod +x "$program" "$work/bin/compute-sanitizer"

# runs PATH VARIABLES...: runs the fake test; writes its output to $work/said, sets $status.
runs() {
    : > "$work/tools"
    env PATH="$1" TOOLS="$work/tools" FINDS= BUILD="$work/build" BACKEND=cuda ON_GPU=common/backend/tests/test_kernels_made_up.c "${@:2}" \
        common/tests/run.sh gpu made_up > "$work/said" 2>&1
    status=$?
}
check() {
    if "${@:2}"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/    | /' "$work/said" "$work/tools"
        failures=1
    fi
}
with=$work/bin:$PATH

runs "$with"
check "each tool checks the first launches of a kernel test" [ "$status $(grep -c 'looks at 400 launches of test_kernels_made_up' "$work/tools")" = '0 4' ]
runs "$with" SANITIZER=all
check "SANITIZER=all: checks all launches" [ "$status $(grep -c 'looks at 0 launches' "$work/tools")" = '0 4' ]
runs "$with" SANITIZER='memcheck synccheck'
check "SANITIZER=tools: runs those alone" [ "$status $(cut -d' ' -f1 "$work/tools" | tr '\n' ' ')" = '0 memcheck synccheck ' ]
runs "$with" SANITIZER=off
check "SANITIZER=off: runs no tool, but the test" [ "$status $(wc -l < "$work/tools") $(grep -c '1 passed, 0 failed' "$work/said")" = '0 0 1' ]
runs "$with" FINDS=racecheck
check "a tool's finding is a failure, and is shown" [ "$status $(grep -c '^✗ .*racecheck' "$work/said") $(grep -c '^✗' "$work/said") $(grep -q '= Invalid __global__ read' "$work/said")$?" = '1 3 3 0' ]
runs "$with" SANITIZER=memchk
check "an unknown tool is one error" [ "$status $(grep -c '^error: ' "$work/said") $(grep -c 'HINT: ' "$work/said")" = '2 1 1' ]
if type -P compute-sanitizer > /dev/null; then
    echo "skip - without compute-sanitizer its tests are skipped: it is installed"
else
    runs "$PATH"
    check "without compute-sanitizer its tests are skipped" [ "$status $(grep -c 'passed, 1 skipped' "$work/said")" = '0 4' ]
fi
exit "$failures"
