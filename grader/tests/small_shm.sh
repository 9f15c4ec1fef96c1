#!/usr/bin/env bash
# Labs can be graded and models trained even if /dev/shm is as small as in a container.
# shellcheck disable=SC2317,SC2329 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree small-shm
with_shm() { # with_shm SIZE COMMAND...
    # shellcheck disable=SC2016 # the inner shell's
    unshare -rm bash -c 'mount -t tmpfs -o "size=$1" none /dev/shm && shift && "$@"' bash "$@" > out 2>&1
}
if ! with_shm 4m true; then
    echo "skip - a lab is graded with 4 MB of /dev/shm: this user may mount nothing (unshare -rm)"
    finish
fi
# full_marks SIZE OPTIONS...
full_marks() {
    with_shm "$1" make --silent SEED=1 LAB=2 SOLUTION=1 grade "${@:2}" && grep -q '^Score: 9/9' out
}
check "a lab is graded with 4 MB of /dev/shm" full_marks 4m
check "and with 64 MB" full_marks 64m
check "and without a sandbox" full_marks 4m SANDBOX=off
trains() {
    with_shm 4m "$ROOT/common/train/launch.sh" 2 solutions 11 "$BUILD/train" --cache build/cache --tp 2 --layers 1 --hidden-dim 24 --heads 2 \
        --batch-size 4 --seq 16 --steps 2 --test "" && grep -q 'warning: /dev/shm has .* MB free' out
}
check "a run trains with 4 MB, and says where its ranks share memory" trains
finish
