#!/usr/bin/env bash
# A rank that gets no core for a while, as on a busy machine, must run each case in which it takes
# part exactly once.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree late-rank
grade SOLUTION=1 LAB=11 # makes the runner

descendants() { # descendants PID: each descendant with its command line
    local child
    for child in $(pgrep -P "$1"); do
        echo "$child $(tr '\0' ' ' 2> /dev/null < "/proc/$child/cmdline")"
        descendants "$child"
    done
}
the_last_rank() { # the_last_rank JUDGE: prints the last rank once all ranks exist
    local processes ranks
    processes=$(descendants "$1" 2> /dev/null)
    ranks=$(sed -nE '0,/mpirun/ s/.* mpirun -n ([0-9]+) .*/\1/p' <<< "$processes")
    processes=$(grep -E '^[0-9]+ [^ ]*11-solution ' <<< "$processes" | sort -n)
    [ "$(wc -l <<< "$processes")" != "$ranks" ] || tail -1 <<< "$processes" | cut -d' ' -f1
}

launched() { # launched JUDGE: each mpirun that the judge's supervisors run now
    local supervisor
    for supervisor in $(pgrep -P "$1"); do pgrep -P "$supervisor" -f '^[^ ]*mpirun -n'; done
}

# Grades lab 11, which has many cases of few ranks, and stops its last rank again and again. Adds to
# `stops`, writes each mpirun that runs after the first to the file `again`; sets status.
stops=0 status=0
grade_with_a_late_rank() { # grade_with_a_late_rank SEED
    local judge first last='' until=$((stops + 100))
    build/grade --lab 11 --author solution --runners build/runners --seed "$1" > "out.$1" 2>&1 &
    judge=$!
    until [ -n "$last" ] || ! kill -0 "$judge" 2> /dev/null; do last=$(the_last_rank "$judge"); done
    first=$(launched "$judge")
    while [ $stops -lt $until ] && kill -STOP "$last" 2> /dev/null; do
        sleep 0.03
        kill -CONT "$last" 2> /dev/null
        stops=$((stops + 1))
    done
    while kill -0 "$judge" 2> /dev/null; do
        launched "$judge" | grep -vxF "${first:-none}" >> again
        sleep 0.05
    done
    wait "$judge" || status=1
}
: > again
# On a busy machine, the rank is stopped once or twice in a launch; on a quiet machine, 100 times.
for ((seed = 1; stops < 30 && SECONDS < 300; seed++)); do
    grade_with_a_late_rank "$seed"
done
launches=$(sort -u again | wc -l)
{
    echo "stopped $stops times; started again $launches times"
    cat out.*
} > out
check "a right answer has full marks although a rank is late" [ $status = 0 -a $stops -ge 30 ]
check "no case is run twice, which would be a hang: the ranks are started once" [ "$launches" = 0 ]
finish
