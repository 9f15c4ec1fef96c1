#!/usr/bin/env bash
# common/comm/open_mpi.sh: the messages of both versions of Open MPI, and the version that is
# installed here.
# shellcheck disable=SC2016 # the ranks expand what is in single quotes
set -uo pipefail
cd "$ROOT" || exit 2
source common/comm/open_mpi.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # check SENTENCE COMMAND...
    local sentence=$1
    shift
    if "$@"; then echo "ok - $sentence"; else
        echo "not ok - $sentence"
        head -n 20 "$work"/out "$work"/err "$work"/killed 2> /dev/null | sed 's/^/    /'
    fi
}
# filtered: passes standard input through the filter.
filtered() {
    rm -f "$work/killed"
    open_mpi_without_banners "$work/killed" > "$work/out"
}
has() { [[ $(cat "$work/$1") == "$2" ]]; }

dashes=--------------------------------------------------------------------------
filtered << END
a warning of a rank
$dashes
Primary job  terminated normally, but 1 process returned
$dashes
$dashes
mpirun noticed that process rank 11 with PID 0 on node vm exited on signal 9 (Killed).
$dashes

the last words of a rank
END
check "of ORTE's banners, the rank that was killed and its signal are kept" has killed "11 9"
check "the ranks' own lines are kept" has out $'a warning of a rank\n\nthe last words of a rank'
filtered << END
[warn] Epoll MOD(4) on fd 21 failed. Old events were 6; read change was 2 (del): Bad file descriptor
$dashes
prterun noticed that process rank 1 with PID 68 on node laptop exited on
signal 25 (File size limit exceeded).
$dashes
the last words of a rank
END
check "of PRRTE's banners, too" has killed "1 25"
check "of which nothing is left" has out "the last words of a rank"

# ranks NUMBER PROGRAM: runs a shell program on ranks.
ranks() {
    (
        open_mpi root here cores=1 quiet session="$work" shared="$work"
        mpirun -n "$1" sh -c "$2"
    ) > "$work/out" 2> "$work/err"
    status=$?
}
ranks 5 'echo "$OMPI_COMM_WORLD_SIZE"'
check "mpirun starts more ranks than cores, and says nothing itself" [ "$status $(sort -u "$work/out")" = "0 5" -a ! -s "$work/err" ]
ranks 2 'exit 3'
check "a rank that fails ends mpirun with its status" [ "$status" = 3 ]
ranks 2 '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || kill -KILL $$; sleep 30'
check "a rank that is killed ends the others" [ "$status" = 137 -a "$SECONDS" -lt 25 ]
(
    open_mpi root here
    mpirun -n 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || kill -XFSZ $$; sleep 30' 2>&1 > "$work/out"
) | filtered
# mpirun may end before it has printed the banner.
check "this mpirun's banner, if there is one, names it" [ ! -s "$work/killed" -o "$(cat "$work/killed")" = "1 25" ]
check "and nothing of the banner is left" has out ""
