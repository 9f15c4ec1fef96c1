#!/usr/bin/env bash
# Output that is lost because its disk is full is an error. Output whose reader has gone is not.
# shellcheck disable=SC2317 # functions are called by check
set -uo pipefail
cd -- "${ROOT:?}" || exit 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TERM=dumb PYTHONDONTWRITEBYTECODE=1
failures=0

check() { # check SENTENCE STATUS COMMAND...
    local status
    "${@:3}" 2> "$folder/errors"
    status=$?
    if [ "$status" = "$2" ] && [ "$(grep -c 'error: ' "$folder/errors")" = $(($2 / 2)) ] && [ "$(grep -c 'HINT: ' "$folder/errors")" = $(($2 / 2)) ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed "s/^/    status $status: /" "$folder/errors"
        failures=1
    fi
}
lost() { # lost COMMAND...
    "$@" > /dev/full
}
cut_short() {
    "$@" | head -1 > /dev/null
}

train=(common/train/launch.sh 1 solutions 14 "$BUILD/train" --cache "$BUILD/cache" --layers 1 --hidden-dim 24 --heads 2
    --batch-size 4 --seq 16 --samples 40 --test "" --metrics "$folder/run.jsonl")
"${train[@]}" --steps 2 --save "$folder/saved" > "$folder/out" 2>&1 || cat "$folder/out"
rm -rf "$folder/run.jsonl"
check "make train" 2 lost "${train[@]}" --steps 3
if [ "$(grep -c '"step"' "$folder/run.jsonl")" = 3 ]; then
    echo "ok - make train still goes on to its end"
else
    echo "not ok - make train still goes on to its end"
    failures=1
fi
check "make train whose output is not read to its end" 0 cut_short "${train[@]}" --steps 10
[ -x "$BUILD/grade" ] && check "make grade" 2 lost "$BUILD/grade" --list
[ -x "$BUILD/hand-in" ] && check "make hand-in" 2 lost "$BUILD/hand-in" --name Ada --out "$folder/ada.tar.gz"
check "checkpoint info" 2 lost "$BUILD/checkpoint" info "$folder/saved"
if command -v gnuplot > /dev/null; then
    export METRICS=$folder/run.jsonl
    check "make plot" 2 lost python3 common/plot/plot.py
    check "make plot whose output is not read to its end" 0 cut_short python3 common/plot/plot.py
else
    echo "skip - make plot: gnuplot is not installed"
fi
check "make help" 2 lost common/setup/help.sh
check "make doctor" 2 lost common/setup/doctor.sh
exit "$failures"
