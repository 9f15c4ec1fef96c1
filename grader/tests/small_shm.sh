#!/usr/bin/env bash
# If /dev/shm is as small as in a container, labs are still graded and models trained, and a message
# says which folder is used instead.
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
check "a warning says which folder is used instead" [ "$(grep -c 'warning: /dev/shm has 4 MB free' out)" = 1 ]
check "a lab is graded with 64 MB" full_marks 64m
check "a lab is graded with 4 MB without a sandbox" full_marks 4m SANDBOX=off
make --silent build/gradebook build/generated/kit.txt > out 2>&1 || cat out
for name in Ada Grace; do
    mkdir -p "class/$name"
    cp -r "$ROOT"/solutions/0[12]-* "class/$name"
    for file in class/"$name"/*/*.c; do echo "/* $name */" >> "$file"; done # each is graded alone
done
# all_cells SIZE: two students have full marks in both labs.
all_cells() {
    rm -rf grades*
    with_shm "$1" build/gradebook --dir class --out grades.csv --seed 1 --jobs 2 && [ "$(cut -d, -f4,5 grades.csv | tail -n +2 | tr -d '\r' | sort -u)" = 9,9 ]
}
check "a gradebook with JOBS=2 loses no cell with 4 MB" all_cells 4m
check "one warning says which folder is used instead" [ "$(grep -c 'warning: /dev/shm has 4 MB free' out)" = 1 ]
check "a gradebook with JOBS=2 loses no cell with 64 MB" all_cells 64m
check "a gradebook with JOBS=2 loses no cell with room for one lab" all_cells 800m
check "with room for one lab, the gradebook grades one at a time" [ "$(grep -c 'warning: JOBS=1 instead of 2: /dev/shm has no room for more labs at a time' out)" = 1 ]
trains() {
    with_shm 4m "$ROOT/common/train/launch.sh" 2 solutions 11 "$BUILD/train" --cache build/cache --tp 2 --layers 1 --hidden-dim 24 --heads 2 \
        --batch-size 4 --seq 16 --steps 2 --test "" && grep -q 'warning: /dev/shm has .* MB free' out
}
check "a run trains with 4 MB, and says where its ranks share memory" trains
# both_small SIZE WORDS COMMAND...: with /dev/shm and /tmp of this size, the command is one error.
# The checkout stays in its place, which may be below /tmp.
both_small() {
    # shellcheck disable=SC2016 # the inner shell's
    ! unshare -rm bash -c 'set -e
        mount -t tmpfs -o "size=$1" none /dev/shm
        mount --bind "$2" /mnt
        mount -t tmpfs -o "size=$1" none /tmp
        mkdir -p "$2"
        mount --bind /mnt "$2"
        cd "$PWD"
        shift 2
        "$@"' bash "$1" "$ROOT" "${@:3}" > out 2>&1 && [ "$(grep -c '^error: ' out)" = 1 ] && grep -qF "$2" out && grep -q '^  HINT: ' out
}
check "without room in /dev/shm and /tmp, grading is one error" both_small 20m "but ranks and judge share 64 MB and more" make --silent SEED=1 LAB=2 SOLUTION=1 grade
check "so is training" env -u TMPDIR bash -c "$(declare -f both_small); both_small 1m 'but the ranks share 16 MB' '$ROOT/common/train/launch.sh' 2 solutions 11 '$BUILD/train'"
finish
