# shellcheck shell=bash
# Sourced by attacks.sh and slow_attacks.sh: labs that attack their grader. Each must end as a
# failed case with a true reason, and other checks keep their points. WAY: "off" without a sandbox,
# "on" only with a sandbox, "" as the system allows; go_as selects the user.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "${BASH_SOURCE[0]}")/tree.sh"
cd "$ROOT" || exit 2
make --silent BUILD="${BUILD#"$ROOT"/}" "${BUILD#"$ROOT"/}"/{generated/grading.sh,runners/idle} > /dev/null || exit 2
# shellcheck source=/dev/null # made by make
. "$BUILD/generated/grading.sh"
WAY='' USER_ID='' who=()
tree=$(mktemp -d "${TMPDIR:-/tmp}/attacks.XXXXXX")
trap 'rm -rf "$tree"' EXIT
cp "$BUILD"/{grade,enclose,runners/idle} "$tree"
cd "$tree" || exit 2

# System calls without the C library's functions, which a lab may not call; for x86-64 and aarch64.
ask='#define _GNU_SOURCE
#include <string.h>
#include "balise.h"
#include "balise_mpi.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
static __attribute__((unused)) long ask(long n, long a, long b, long c, long d, long e, long f)
{
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
        x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}
#define ASK(n, ...) ASK_(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define ASK_(n, a, b, c, d, e, f, ...) ask(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
'

# build CODE [BEFORE]: lab 1 with CODE before the sum of g, and BEFORE above all functions, as
# $tree/01-attack.
build() {
    mkdir -p student
    rm -f 01-attack*
    { printf '%s' "$ask${2:-}"; awk -v code="$1" '/return group_all_reduce\(mesh->world, x\);/ { print code } { print }' "$ROOT/solutions/$FILE_1"; } > student/collectives.c
    # shellcheck disable=SC2086 # a list of files
    (cd "$ROOT" && grader/compile-lab.sh 1 "$tree/student/collectives.c" "$tree/student/1.o" "$EXPORTS_1" > "$tree/words" 2>&1
        grader/link-runner.sh 1 "$tree/01-attack" "$tree/student/1.o" $OBJECTS_1)
    [ -z "$USER_ID" ] || chown -R "$USER_ID:$USER_ID" "$tree"
}

# go_as USER_ID: selects the user, and sets `who` to the words that run a command as that user.
go_as() {
    USER_ID=$1 who=()
    [ -z "$1" ] || who=(setpriv "--reuid=$1" "--regid=$1" --clear-groups env "HOME=$tree")
}

# judge RUNNER OPTIONS...: runs the judge; writes the output to the file out, sets $status.
judge() {
    local options=(--lab 1 --author "$1" --runners "$tree" --seed 1 --cpu-limit 1)
    shift
    [ -z "$WAY" ] || options+=(--sandbox "$WAY")
    "${who[@]}" timeout 300 ./grade "${options[@]}" "$@" > out 2>&1
    status=$?
}

# attack CODE [BEFORE]: builds this lab, and judges the case in which two ranks take part.
attack() {
    build "$@"
    judge attack --case 5
}

quiet() { # the lab has full marks, and the ranks' output shows no success of the attack
    [ "$status" = 0 ] && ! grep -q LEAK 01-attack.log
}
fails_saying_one_of() {
    fails_saying "$1" || fails_saying "$2"
}
not_says() {
    ! says "$1"
}
refused() {
    fails_saying "forbidden system call" && says "at collectives.c:"
}
gone() { # gone COMMAND...: within a minute, the command prints nothing
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        [ -n "$("$@")" ] || return 0
        sleep 0.1
    done
    "$@" >> out
    return 1
}
attackers() {
    ps -eo args | grep '01-attack' | grep -v grep
}
those_of() { # those_of FILE...: prints those that exist
    find "$@" -maxdepth 0 2> /dev/null
}
nothing_is_left() { # no process of the attack and no file of its ranks; other tests soon remove theirs
    local files
    mapfile -t files < <(find /dev/shm /tmp -maxdepth 1 -name 'balise.*' -user "${USER_ID:-$(id -u)}" -newer "$tree/grade" ! -path "$tree" 2> /dev/null)
    gone attackers && { [ ${#files[@]} = 0 ] || gone those_of "${files[@]}"; }
}

# shellcheck source=grader/tests/attacks_on_build.bash
. "$ROOT/grader/tests/attacks_on_build.bash"

# ---- what the running lab does

signals() {
    local call
    attack 'if (mesh->tp_rank == 1) ASK(SYS_kill, -1, SIGKILL);'
    check "killing all processes fails the case" refused
    attack 'if (mesh->tp_rank == 1) ASK(SYS_kill, 0, SIGKILL);'
    check "killing the process group fails the case" refused
    attack 'if (mesh->tp_rank == 1) ASK(SYS_kill, ASK(SYS_getppid, 0), SIGSTOP);'
    check "stopping the parent fails the case" refused
    for call in 'SYS_fcntl, 1, F_SETOWN, mpirun' 'SYS_fcntl, 1, F_SETOWN_EX, owner' 'SYS_fcntl, 1, F_SETSIG, SIGKILL' 'SYS_fcntl, 1, F_SETFL, O_NONBLOCK | O_ASYNC' \
        'SYS_ioctl, 1, FIOSETOWN, &mpirun' 'SYS_ioctl, 1, SIOCSPGRP, &mpirun' 'SYS_ioctl, 1, FIOASYNC, &mpirun' 'SYS_ioctl, 1, TIOCSTI, "x"'; do
        attack "if (mesh->tp_rank == 1) { int mpirun = (int)ASK(SYS_getppid, 0), owner[] = {1, mpirun}; (void)owner; ASK($call); }"
        check "a file that signals mpirun fails the case: $call" refused
    done
    attack 'struct { void (*handler)(int); unsigned long rest[3]; } none = {SIG_IGN, {0}}; ASK(SYS_rt_sigaction, SIGSYS, &none, 0, 8);'
    check "a lab that handles the signal of the filter itself fails the case" refused
    attack 'int f[2]; ASK(SYS_pipe2, f, 0); if (ASK(SYS_fcntl, f[0], F_SETFL, O_NONBLOCK) || ASK(SYS_fcntl, f[0], F_GETOWN) || ASK(SYS_fcntl, f[0], F_DUPFD, 8) < 8) puts("LEAK");'
    check "a lab that changes its own files otherwise keeps its points" quiet
    attack 'if (mesh->tp_rank == 1) kill(1, SIGKILL);'
    check "a lab that calls kill is refused" fails_saying "lab 1 calls kill"
}
processes() {
    attack 'for (;;) ASK(SYS_clone, SIGCHLD);'
    check "a fork bomb fails the case" refused
    check "a fork bomb leaves nothing behind" nothing_is_left
}
# mpirun has no system-call filter and starts programs for ranks. The lab finds the function by its
# address in the library.
spawning() {
    local library from
    library=$(ldd "$BUILD/train" | sed -n 's/.*libmpi\.so.* => \([^ ]*\) .*/\1/p')
    from=$(nm -D "$library" | awk '$3 == "MPI_Wtime" { wtime = $1 } $3 == "ompi_dpm_spawn" { spawn = $1 } $3 == "ompi_mpi_info_null" { none = $1 }
        END { print "0x" spawn " - 0x" wtime ", 0x" none " - 0x" wtime }')
    attack "if (mesh->tp_rank == 0) spawn(\"echo LEAK\", $from); sleep(1);" 'static void spawn(char *text, long function, long none)
{
    char *arguments[] = {"-c", text, NULL}, *command[] = {"/bin/sh"}, **all[] = {arguments};
    int processes[] = {1};
    unsigned char *stub = (unsigned char *)MPI_Wtime;
    MPI_Wtime();
    __asm__("" : "+r"(stub));
    while (stub[0] != 0xff || stub[1] != 0x25) stub++;
    char *wtime = *(char **)(stub + 6 + *(int *)(stub + 2)), *info[] = {wtime + none};
    ((int (*)(int, char **, char ***, int *, char **, char *))(wtime + function))(1, command, all, processes, info, "port");
}'
    check "a rank that makes mpirun start a program fails the case" test "$status" = 1
    check "a program that a rank has mpirun start does not run" test -z "$(grep LEAK 01-attack.log)"
}
files() {
    local call
    rm -rf /tmp/balise-was-here
    attack 'ASK(SYS_openat, AT_FDCWD, "'"$tree/student/was-here"'", O_WRONLY | O_CREAT, 0600);'
    check "writing outside fails the case" refused
    check "writing outside names the line" says "at collectives.c:"
    check "writing outside writes nothing" test ! -e student/was-here
    attack 'ASK(SYS_unlinkat, AT_FDCWD, "'"$tree/grade"'");'
    check "removing a file fails the case" refused
    attack 'ASK(SYS_renameat, AT_FDCWD, "'"$tree/student/collectives.c"'", AT_FDCWD, "'"$tree/student/gone"'");'
    check "renaming a file fails the case" refused
    check "a file of the user keeps its name" test -e student/collectives.c
    chmod 600 student/collectives.c
    attack 'ASK(452, AT_FDCWD, "'"$tree/student/collectives.c"'", 0777, 0);' '/* 452 is fchmodat2, of Linux 6.6 */'
    check "a call of a newer kernel does not exist for a lab, which keeps its points" quiet
    check "a file of the user keeps its mode" test -z "$(find student/collectives.c -perm -o=w)"
    attack 'if (ASK(SYS_inotify_init1, 0) != -ENOSYS || ASK(SYS_fsync, 1) != -ENOSYS || ASK(SYS_ftruncate, 1, 0) != -ENOSYS || ASK(SYS_prctl, 29, 1L << 60) != -ENOSYS || ASK(SYS_prctl, 15, "lab") != 0) puts("LEAK");' '#include <errno.h>
'
    check "a call that no case needs does not exist for a lab, which keeps its points" quiet
    attack 'long f = ASK(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
    if (f >= 0 || ASK(SYS_openat, AT_FDCWD, "/proc/1/mem", O_RDONLY) >= 0 || ASK(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY) >= 0) puts("LEAK");'
    check "no file can be read, not even in /proc/self, and a lab that tries keeps its points" quiet
    for call in 'SYS_socket, 1, 1, 0' 'SYS_socketpair, 1, SOCK_DGRAM, 0, (int[2]){0}' 'SYS_connect, 5, (short[8]){AF_UNSPEC}, 16' 'SYS_bind, 5, (short[8]){AF_INET}, 16' 'SYS_listen, 5, 1'; do
        attack "ASK($call);"
        check "making a connection fails the case: $call" refused
    done
    attack 'char b[64]; struct { void *p; size_t n; } l = {b, 64}, r = {(void *)4096, 64};
    ASK(SYS_process_vm_readv, ASK(SYS_getppid, 0), &l, 1, &r, 1, 0);'
    check "reading another process fails the case" refused
}
# Other processes, code and threads, through system calls.
itself() {
    local call
    for call in 'SYS_seccomp, 2, 0, 0' 'SYS_prctl, 22, 1' 'SYS_prlimit64, ASK(SYS_getppid, 0), 0, "................", 0' 'SYS_sched_setparam, ASK(SYS_getppid, 0), "...."' \
        'SYS_sched_setaffinity, ASK(SYS_getppid, 0), 8, "........"' 'SYS_ioprio_set, 1, ASK(SYS_getppid, 0), 3 << 13' \
        'SYS_utimensat, AT_FDCWD, "/tmp", 0, 0' 'SYS_shmctl, 0, 0, 0' 'SYS_semop, 0, "......", 1' 'SYS_msgsnd, 0, "........", 0, 0' 'SYS_sync, 0' \
        'SYS_mprotect, (long)group_size & -4096, 4096, 7' \
        'SYS_mmap, 0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0' 'SYS_personality, 0x400000' 'SYS_prctl, 62, 1, ASK(SYS_getppid, 0), 2' 'SYS_clone, 0x50f00, 0'; do
        attack "ASK($call);"
        check "${call%%,*} fails the case" refused
    done
    attack 'struct timespec t; ASK(SYS_clock_gettime, (int)(~(unsigned)ASK(SYS_getppid, 0) << 3 | 2), &t);' '#include <time.h>
'
    check "a lab that reads the clock of another process fails the case" refused
    attack 'struct timespec t; if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) || clock_gettime(CLOCK_MONOTONIC, &t)) puts("LEAK");' '#include <time.h>
'
    check "a lab that reads its own clocks keeps its points" quiet
    for call in 'SYS_munmap, 0x30000000, 4096' 'SYS_munmap, 0, 1L << 33' 'SYS_mremap, 0x30000000, 4096, 4096, MREMAP_MAYMOVE' \
        'SYS_mremap, heap, 4096, 4096, MREMAP_MAYMOVE | 4' 'SYS_madvise, 0x30000000, 4096, MADV_DONTNEED' \
        'SYS_mprotect, (long)ask & -4096, 4096, PROT_READ | PROT_WRITE' \
        'SYS_mmap, 0x30000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0'; do
        attack "if (mesh->tp_rank == 1) { long heap = ASK(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); (void)heap; ASK($call); }"
        check "a lab that replaces pages of the program or of the record fails the case: $call" refused
    done
}
memory() {
    attack 'if (mesh->tp_rank == 1) for (;;) { char *p = (char *)ASK(SYS_mmap, 0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); for (int i = 0; i < 1 << 20; i += 4096) p[i] = 1; }'
    check "unbounded memory fails the case, and the report says so" fails_saying "memory limit exceeded: rank 1 held"
    attack 'if (mesh->tp_rank == 1) for (;;) { char *p = (char *)ASK(SYS_mmap, 0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); for (int i = 0; i < 1 << 20; i += 4096) p[i] = 1; for (double until = MPI_Wtime() + 1.0 / 300; MPI_Wtime() < until;); }'
    check "unbounded memory that is taken slowly fails the case, and the report says so" fails_saying "memory limit exceeded: rank 1 held"
    attack 'if (mesh->tp_rank == 1) *(volatile char *)malloc(100UL << 30) = 1;'
    check "100 GB are refused, with the line" fails_saying "memory limit exceeded: 107374182400 bytes were requested"
    attack 'if (mesh->tp_rank == 1) deeper(1);' 'static long deeper(long n) { volatile char a[500]; a[0] = (char)n; return deeper(n + 1) + a[0]; }'
    check "unbounded recursion fails the case, and the report says so" fails_saying "stack overflow"
    attack 'if (mesh->tp_rank == 1) { char *p = (char *)ASK(SYS_mmap, 0, 100UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); p[0] = 1; }'
    check "100 GB of address space are refused" fails_saying "rank 1 was killed by signal 11"
}
endings() {
    attack 'if (mesh->tp_rank == 1) ASK(SYS_exit_group, 0);'
    check "an exit that bypasses the C library fails the case" fails_saying "The program ended before the check was complete"
    attack 'struct { void (*handler)(int); unsigned long rest[3]; } none = {SIG_IGN, {0}};
    for (int i = 1; i < SIGSYS; i++) ASK(SYS_rt_sigaction, i, &none, 0, 8); if (mesh->tp_rank == 1) for (volatile int go = 1; go;);'
    check "an endless loop that ignores every signal is stopped" fails_saying "Rank 1 did not return within the time limit"
    check "an endless loop leaves nothing behind" nothing_is_left
    attack 'if (mesh->tp_rank == 1) for (;;) puts("Score: 100/100");'
    check "printing without end is stopped" fails_saying_one_of "Rank 1 did not return within the time limit" "the ranks print more than"
    check "a lab's output is cut at a megabyte" test "$(stat -c %s 01-attack.log)" -le 1048576
    attack 'for (int i = 0; i < 256; i++) ASK(SYS_close, i);'
    check "closing all descriptors does not stop the judge" test "$status" -le 1
    attack 'char record[512] = "passed"; for (int i = 3; i < 256; i++) ASK(SYS_write, i, record, sizeof record); scale(x, 0);'
    check "writing to all descriptors does not stop the judge" test "$status" -le 1
}
# A note that asks for a processor which no machine has.
starts() {
    attack '' '__asm__(".pushsection .note.gnu.property, \"a\", %note\n.p2align 3\n.long 4, 16, 5\n.asciz \"GNU\"\n.long 0xc0008002, 4, 0xffffffff, 0\n.popsection");'
    if [ "$(uname -m)" = x86_64 ]; then
        check "a lab that keeps its program from starting has a verdict" fails_saying "Lab 1 Duplication and AllReduce: refused 0/9 the lab's program does not start, although one without a lab does: "
    fi
    if [ "$WAY" = off ]; then # a sandbox does not show this program
        rm -rf "$tree.mpi"
        mkdir -m 755 "$tree.mpi"
        printf '#!/usr/bin/env bash\n[[ "$1 $3" != "-n "-* ]] || exit 213\nexec %s "$@"\n' "$(command -v mpirun)" > "$tree.mpi/mpirun"
        chmod 755 "$tree.mpi/mpirun"
        PATH=$tree.mpi:$PATH attack ''
        rm -r "$tree.mpi"
        check "an mpirun that knows no option but -n starts the ranks" test "$status" = 0
    fi
}
endings_slowly() {
    local call
    attack 'if (mesh->tp_rank == 1) ASK(SYS_kill, ASK(SYS_getpid, 0), SIGSTOP);'
    check "a rank that stops itself has a verdict" fails_saying "the lab did not end in time"
    check "which says that a signal stopped it" says "a signal has stopped rank 1"
    attack 'if (mesh->tp_rank == 1) for (int there;; sleep(1)) MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);'
    check "an endless series of events has a verdict" fails_saying_one_of "did not return within the time limit" "the lab did not end in time"
    attack 'if (mesh->tp_rank == 1) for (;;) sleep(1000);'
    check "a rank that sleeps forever is stopped" fails_saying "Rank 1 did not return within the time limit"
    for call in 'exit(0)' '_exit(0)' 'abort()' 'MPI_Abort(MPI_COMM_WORLD, 0)' 'MPI_Finalize(); exit(0)'; do
        attack "if (mesh->tp_rank == 1) { $call; }"
        check "$call fails the case, and the report names it" fails_saying "${call%%(*}"
    done
    attack 'atexit(late);' 'static void late(void) { for (;;); }'
    check "a function at exit is refused" fails_saying "lab 1 calls atexit"
    build 'if (mesh->tp_degree == 4) ASK(SYS_exit_group, 0);'
    judge attack
    check "the report of a crash on four ranks names their number" says "4 ranks"
}

# The judge is killed while a lab loops forever.
interrupted() {
    local judge
    build 'for (volatile int go = 1; go;);'
    "${who[@]}" ./grade --lab 1 --author attack --runners "$tree" --seed 1 --cpu-limit 600 ${WAY:+--sandbox "$WAY"} > out 2>&1 &
    judge=$!
    until ps -eo args | grep -qE '^[^ ]*01-attack /' || ! kill -0 "$judge" 2> /dev/null; do sleep 0.1; done
    sleep 1
    records() { # where the ranks hold the record
        local maps
        mapfile -t maps < <(ps -eo pid,args | awk '$2 ~ /01-attack$/ { print "/proc/" $1 "/maps" }')
        grep -hs /launch "${maps[@]}" | cut -d- -f1
    }
    check "each rank has the record at an address of its own" [ "$(records | sort -u | wc -l)" -gt 1 ]
    check "the judge runs until it is killed" kill -KILL "$judge"
    wait "$judge" 2> /dev/null
    check "a killed judge leaves nothing behind" nothing_is_left
}

# ---- the sandbox itself: a program without the system-call filter

walls() {
    gcc -O1 -Wall -D_GNU_SOURCE -DKIT="\"$ROOT\"" -DHOME="\"${HOME:-/home}\"" "$ROOT/grader/tests/prisoner.c" "$BUILD/double/grader/labs/stamp.o" -o 01-prisoner
    [ -z "$USER_ID" ] || chown "$USER_ID" 01-prisoner
    PRISONER=1 WAY=on judge prisoner
    cp 01-prisoner.log out
    check "a program without the filter tries to leave the sandbox in all ways" says "the prisoner has tried"
    check "a program without the filter reaches no file, process, network, privilege or seed" not_says "reached:"
}

# A program that fails to start does not count as a missing sandbox.
stays_inside() {
    printf '#!/bin/sh\n! test -e "%s/Makefile" || echo OUTSIDE\nexit 1\n' "$ROOT" > 01-broken
    grep -ao 'balise protocol [0-9a-f]*' grade | tr '\n' '\0' >> 01-broken
    chmod 755 01-broken
    [ -z "$USER_ID" ] || chown "$USER_ID" 01-broken
    WAY='' judge broken
    check "a runner that cannot start fails, because one without a lab starts" fails_saying "the lab's program does not start, although one without a lab does"
    check "it has a verdict" scores 0/9
    check "a runner that cannot start is not tried again without the sandbox" test -z "$(grep OUTSIDE 01-broken.log)"
    mv idle other
    WAY='' judge broken
    mv other idle
    check "a runner that cannot start is one error where nothing tells why" test "$status" = 2
}

# has_sandbox: can this user have namespaces here?
has_sandbox() {
    build ''
    WAY=on judge attack --case 5
    [ "$status" != 2 ]
}
