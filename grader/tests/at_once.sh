#!/usr/bin/env bash
# Two make commands at once in one checkout: one waits until the other has built, and both succeed.
# shellcheck disable=SC2317,SC2329 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree at-once
copy_solution 3
copy_solution 6

full_marks() { # full_marks FILE...: in each of them
    local file
    for file; do grep -q '^Score: 10/10' "$file" || { cat "$@" > out && return 1; }; done
}
twice() {
    local round
    for round in 1 2; do
        rm -rf build/labs build/runners
        make --silent SEED=1 LAB=6 grade > first 2>&1 &
        make --silent SEED=1 LAB=6 grade > second 2>&1
        wait $!
        full_marks first second || return
    done
}
check "the same lab graded twice at once has full marks twice" twice

beside_watch() {
    local watch round
    setsid env --default-signal=INT make --silent watch LAB=6 > watched 2>&1 & # lets SIGINT through
    watch=$!
    for round in 1 2; do
        echo "/* saved $round */" >> "$(lab_file 6)"
        make --silent SEED=1 LAB=6 grade > graded 2>&1
        full_marks graded || break
    done
    for ((i = 0; i < 600; i++)); do
        ! grep -q 'waiting for .* to be saved' watched || break
        sleep 0.2
    done
    kill -INT -- "-$watch"
    wait "$watch"
    ! grep '^Score: [0-9]/' watched graded > out && full_marks watched graded
}
check "a lab graded beside make watch has full marks in both" beside_watch

waits() {
    flock build/.lock sleep 3 &
    while flock -n build/.lock true; do sleep 0.05; done
    grade LAB=6
    wait $!
    grep -q 'another make is building in build: waiting for it to finish' out && full_marks out
}
check "a make that waits for another one says so" waits

killed_at_once() {
    bash -c '(sleep 0.5; exec bash common/setup/hold.sh build > held) & kill -KILL $$'
    sleep 1.5
    flock -n build/.lock true && [ ! -s held ]
}
check "a make that is killed as it begins to build keeps no other from building" killed_at_once

# A make whose compiler waits until the file `on` exists, and which is stopped meanwhile.
printf '#!/bin/sh\nwhile [ ! -e on ]; do sleep 0.05; done\nexec gcc "$@"\n' > slow-cc
chmod +x slow-cc
begin_stopped() {
    rm -rf build/labs build/runners on
    make --silent SEED=1 LAB=6 CC="$PWD/slow-cc" grade > first 2>&1 &
    stopped=$!
    while flock -n build/.lock true; do sleep 0.05; done
    kill -STOP "$stopped"
    until grep -q '^State:.T' "/proc/$stopped/status"; do sleep 0.05; done
}
go_on() {
    touch on
    kill -CONT "$stopped"
    wait "$stopped"
    full_marks first
}
ends() {
    begin_stopped
    STOPPED_SECONDS=1 grade LAB=6
    says "make is building in build: it is process $stopped, which is stopped" && fails_saying "HINT: kill -CONT $stopped " && go_on
}
check "a make that waits for a stopped one names it, and ends" ends
goes_on() {
    begin_stopped
    make --silent SEED=1 LAB=6 grade > second 2>&1 &
    local second=$!
    until grep -q "process $stopped, is stopped" second || ! kill -0 "$second"; do sleep 0.05; done
    go_on
    wait "$second"
    full_marks second
}
check "make continues to wait if the stopped one continues" goes_on

begins_anew() {
    mkdir -p build
    cp "$(type -P bash)" make-shell # the lock is held for a make
    flock build/.lock sh -c 'sleep 1; rm -rf build' &
    while flock -n build/.lock true; do sleep 0.05; done
    ./make-shell -c 'bash common/setup/hold.sh build > held 2> out && ! flock -n build/.lock true'
}
clean_waits() {
    begin_stopped
    kill -CONT "$stopped"
    make --silent clean > cleaned 2>&1 &
    local clean=$!
    until grep -q 'another make is building in build: waiting for it to finish' cleaned || ! kill -0 "$clean"; do sleep 0.05; done
    touch on
    wait "$clean" || return
    wait "$stopped"
    ! grep -E 'does not build|0/10|undefined reference' first > out
}
check "make clean waits until another make has built, and blames no lab" clean_waits
check "a make that waited for make clean holds the lock of the new folder" begins_anew

finish
