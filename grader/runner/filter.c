/* A filter of system calls, written as a program of the Berkeley Packet Filter. */
#include "grader/runner/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
enum { OTHER_NUMBERS = 0x40000000 }; /* the same calls by their x32 numbers */
static const uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined __aarch64__
enum { OTHER_NUMBERS = 0x7fffffff };
static const uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
#error "say which system calls there are on this processor"
#endif

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62 /* Linux 5.14 */
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41 /* Linux 5.17 */
#endif
#define WHOLE    0xffffffff
#define NEGATIVE 0x80000000

/* From here on, the numbers are the same on all processors. */
enum {
    NEWER_CALLS = 434,
    NEW_faccessat2 = 439,
    NEW_epoll_pwait2 = 441,
    NEW_futex_waitv = 449,
    NEW_futex_wake = 454,
    NEW_futex_wait = 455,
};

enum { ROW = 12 };

/* Calls of a rank after MPI_Init, by Open MPI, the C library, OpenBLAS, the sanitizers and this
 * runner, in their older and newer forms; grouped by purpose, the most frequent first. They reach
 * only the process itself and what it has opened. Rows are padded with 0. */
static const uint32_t allowed[][ROW] = {
    {SYS_futex, SYS_sched_yield, SYS_nanosleep, SYS_gettimeofday, SYS_times, NEW_futex_waitv,
     NEW_futex_wake, NEW_futex_wait},
    {SYS_epoll_pwait, NEW_epoll_pwait2, SYS_ppoll, SYS_pselect6, SYS_epoll_ctl, SYS_epoll_create1,
     SYS_eventfd2, SYS_pipe2, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime},
#ifdef SYS_open
    {SYS_epoll_wait, SYS_poll, SYS_select, SYS_epoll_create, SYS_eventfd, SYS_pipe, SYS_dup2,
     SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_time},
#endif
    {SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_lseek, SYS_close, SYS_dup, SYS_dup3,
     SYS_fstat, SYS_fstatfs, SYS_statfs},
    {SYS_newfstatat, SYS_statx, SYS_faccessat, NEW_faccessat2, SYS_readlinkat, SYS_getcwd},
    {SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown, SYS_getsockopt,
     SYS_setsockopt, SYS_getsockname, SYS_getpeername, SYS_accept, SYS_accept4},
    {SYS_brk, SYS_mincore, SYS_msync, SYS_mbind, SYS_get_mempolicy, SYS_set_mempolicy, SYS_shmdt},
    {SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigsuspend,
     SYS_rt_sigtimedwait, SYS_sigaltstack, SYS_restart_syscall},
    {SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_rseq, SYS_membarrier,
     SYS_getcpu, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_gettid,
     SYS_exit, SYS_exit_group},
    {SYS_getpid, SYS_getppid, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid,
     SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_getpriority},
    {SYS_getrandom, SYS_getrlimit, SYS_getrusage, SYS_uname, SYS_sysinfo, SYS_wait4, SYS_waitid,
     SYS_umask},
};

/* Calls that are allowed unless forbidden_with[] names their arguments, and read, whose number may
 * be 0. */
static const uint32_t allowed_otherwise[] = {
    SYS_clock_gettime, SYS_clock_nanosleep, SYS_clock_getres, SYS_fcntl,
    SYS_ioctl,         SYS_rt_sigaction,    SYS_read};

/* Calls that end the case, grouped by purpose. For a lab, calls in no list do not exist. */
static const uint32_t forbidden[][ROW] = {
#ifdef SYS_fork
    {SYS_fork, SYS_vfork, SYS_creat, SYS_utime, SYS_utimes, SYS_futimesat},
#endif
    {SYS_execve, SYS_execveat, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
     SYS_pidfd_open, SYS_pidfd_send_signal, SYS_pidfd_getfd, SYS_ptrace, SYS_process_vm_readv,
     SYS_process_vm_writev, SYS_kcmp},
    {SYS_setpriority, SYS_ioprio_set, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
     SYS_setrlimit, SYS_migrate_pages, SYS_move_pages, SYS_process_madvise, SYS_setpgid, SYS_setsid,
     SYS_personality},
    {SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen},
    {SYS_openat2, SYS_sync, SYS_memfd_create, SYS_io_uring_setup, SYS_bpf, SYS_perf_event_open,
     SYS_userfaultfd, SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_removexattr,
     SYS_lremovexattr},
    {SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_msgctl, SYS_msgsnd, SYS_msgrcv, SYS_semget,
     SYS_semctl, SYS_semop, SYS_semtimedop},
    {SYS_mq_open, SYS_mq_unlink, SYS_pkey_mprotect, SYS_remap_file_pages},
    {SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_chroot, SYS_pivot_root, SYS_add_key,
     SYS_request_key, SYS_keyctl, SYS_open_by_handle_at},
    {SYS_seccomp, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_acct, SYS_quotactl, SYS_sethostname,
     SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime},
    {SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_syslog, SYS_vhangup,
     SYS_fanotify_init, SYS_inotify_add_watch}};

/* Calls that have no effect outside a case, but appear to succeed: MPI deletes its files when it
 * ends. */
static const uint32_t pretended[] = {
#ifdef SYS_unlink
    SYS_unlink,   SYS_rmdir,     SYS_rename,  SYS_link,      SYS_symlink,
    SYS_mkdir,    SYS_chmod,     SYS_chown,   SYS_mknod,     SYS_lchown,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_unlinkat, SYS_renameat2, SYS_linkat,  SYS_symlinkat, SYS_mkdirat,
    SYS_fchmodat, SYS_fchownat,  SYS_mknodat, SYS_truncate,
};

/* An argument of a call: the bits in `mask` of its lower half are `value`. */
typedef struct Argument {
    int place;
    uint32_t mask, value;
} Argument;

enum { MOST = 2 };

typedef struct CallWith {
    uint32_t number;
    Argument as[MOST];
    int count;
} CallWith;

/* Calls that end the case if their arguments are these. They could make the kernel signal other
 * processes: the owner of a file, or those of a terminal. Negative clocks are the CPU time of any
 * process, with which ranks could tell each other numbers. */
static const CallWith forbidden_with[] = {
    {SYS_clock_gettime, {{0, NEGATIVE, NEGATIVE}}, 1},
    {SYS_clock_nanosleep, {{0, NEGATIVE, NEGATIVE}}, 1},
    {SYS_clock_getres, {{0, NEGATIVE, NEGATIVE}}, 1},
    {SYS_fcntl, {{1, WHOLE, F_SETOWN}}, 1},
    {SYS_fcntl, {{1, WHOLE, F_SETOWN_EX}}, 1},
    {SYS_fcntl, {{1, WHOLE, F_SETSIG}}, 1},
    {SYS_fcntl, {{1, WHOLE, F_SETFL}, {2, O_ASYNC, O_ASYNC}}, 2},
    {SYS_ioctl, {{1, WHOLE, FIOSETOWN}}, 1},
    {SYS_ioctl, {{1, WHOLE, SIOCSPGRP}}, 1},
    {SYS_ioctl, {{1, WHOLE, FIOASYNC}}, 1},
    {SYS_ioctl, {{1, WHOLE, TIOCSPGRP}}, 1},
    {SYS_ioctl, {{1, WHOLE, TIOCSCTTY}}, 1},
    {SYS_ioctl, {{1, WHOLE, TIOCNOTTY}}, 1},
    {SYS_ioctl, {{1, WHOLE, TIOCSTI}}, 1},
    {SYS_ioctl, {{1, WHOLE, TIOCSIG}}, 1},
    {SYS_ioctl, {{1, WHOLE, TIOCVHANGUP}}, 1},
    {SYS_rt_sigaction, {{0, WHOLE, SIGSYS}}, 1}, /* the signal of this filter */
    {SYS_prctl, {{0, WHOLE, PR_SET_SECCOMP}}, 1},
    {SYS_prctl, {{0, WHOLE, PR_SCHED_CORE}}, 1}, /* it delays the processes that it separates */
};

/* Of prctl's many settings, a rank may use only the names of threads and of memory. */
static const CallWith allowed_with[] = {
    {SYS_prctl, {{0, WHOLE, PR_SET_NAME}}, 1},
    {SYS_prctl, {{0, WHOLE, PR_GET_NAME}}, 1},
    {SYS_prctl, {{0, WHOLE, PR_SET_VMA}}, 1},
};

/* Calls that change the pages from their first argument on. */
static const uint32_t of_pages[] = {SYS_munmap, SYS_madvise, SYS_mremap, SYS_mprotect, SYS_mmap};

enum { COUNT = 1024 };

typedef struct Program {
    struct sock_filter code[COUNT];
    int length;
} Program;

static void emit(Program *p, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false)
{
    p->code[p->length++] = (struct sock_filter)BPF_JUMP(code, value, if_true, if_false);
}

static void load(Program *p, size_t offset)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(Program *p, uint32_t result)
{
    emit(p, BPF_RET | BPF_K, result, 0, 0);
}

static void answer_call(Program *p, uint32_t number, uint32_t result)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    answer(p, result);
}

/* Answers the call with `result` if the bits in `mask` of the lower half of its argument are
 * `value`; otherwise traps it. */
static void answer_call_if(Program *p, uint32_t number, int argument, uint32_t mask, uint32_t value,
                           uint32_t result)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5);
    load(p, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (size_t)argument);
    emit(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(p, result);
    answer(p, SECCOMP_RET_TRAP);
}

/* Answers the call with `result` if all its arguments are as given. */
static void answer_call_with(Program *p, const CallWith *call, uint32_t result)
{
    enum { LENGTH = 3 }; /* of a condition */
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, call->number, 0, (uint8_t)(LENGTH * call->count + 2));
    for (int i = 0; i < call->count; i++) {
        const Argument *a = &call->as[i];
        load(p, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (size_t)a->place);
        emit(p, BPF_ALU | BPF_AND | BPF_K, a->mask, 0, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, a->value, 0,
             (uint8_t)(LENGTH * (call->count - 1 - i) + 1));
    }
    answer(p, result);
    load(p, offsetof(struct seccomp_data, nr));
}

/* Loads an argument without its lowest 16 bits, so that it fits the filter's 32. */
static void load_in_64_kb(Program *p, int argument)
{
    const size_t lower = offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (size_t)argument;
    load(p, lower + sizeof(uint32_t));
    emit(p, BPF_ALU | BPF_LSH | BPF_K, 16, 0, 0);
    emit(p, BPF_MISC | BPF_TAX, 0, 0, 0);
    load(p, lower);
    emit(p, BPF_ALU | BPF_RSH | BPF_K, 16, 0, 0);
    emit(p, BPF_ALU | BPF_OR | BPF_X, 0, 0, 0);
}

/* Traps calls that change the pages of the program or of the record, which is below it. Only mmap may
 * leave the address to the system. */
static void keep_pages(Program *p)
{
    extern const char _end[];
    for (size_t i = 0; i < sizeof of_pages / sizeof *of_pages; i++) {
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, of_pages[i], 0, 10);
        load_in_64_kb(p, 0);
        emit(p, BPF_JMP | BPF_JGE | BPF_K, of_pages[i] == SYS_mmap, 0, 2);
        emit(p, BPF_JMP | BPF_JGT | BPF_K, (uint32_t)((uintptr_t)_end >> 16), 1, 0);
        answer(p, SECCOMP_RET_TRAP);
        load(p, offsetof(struct seccomp_data, nr));
    }
}

static void answer_rows(Program *p, const uint32_t calls[][ROW], size_t rows, uint32_t result)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < ROW && calls[row][i]; i++)
            answer_call(p, calls[row][i], result);
}

bool filter_begin(bool devices)
{
    /* The C library tries to read files now and then, and can do without; a lab has no reason to
     * read any. */
    const uint32_t opened = devices ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EACCES;
    const uint32_t writes = (uint32_t)(O_WRONLY | O_CREAT | O_TRUNC | (devices ? 0 : O_RDWR));
    const uint32_t self = (uint32_t)getpid();
    /* a GPU's driver opens libraries and makes threads when it needs them */
    const uint32_t executable = devices ? 0 : PROT_EXEC,
                   threads = devices ? SECCOMP_RET_ALLOW : SECCOMP_RET_TRAP,
                   others = devices ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS;
    Program p = {.length = 0};
    load(&p, offsetof(struct seccomp_data, arch));
    emit(&p, BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0);
    answer(&p, SECCOMP_RET_TRAP);
    load(&p, offsetof(struct seccomp_data, nr));
    emit(&p, BPF_JMP | BPF_JGE | BPF_K, OTHER_NUMBERS, 0, 1);
    answer(&p, SECCOMP_RET_TRAP);
    answer_rows(&p, allowed, sizeof allowed / sizeof *allowed, SECCOMP_RET_ALLOW);
    answer_rows(&p, forbidden, sizeof forbidden / sizeof *forbidden, SECCOMP_RET_TRAP);
    for (size_t i = 0; i < sizeof pretended / sizeof *pretended; i++)
        answer_call(&p, pretended[i], SECCOMP_RET_TRAP);
    for (size_t i = 0; i < sizeof forbidden_with / sizeof *forbidden_with; i++)
        answer_call_with(&p, &forbidden_with[i], SECCOMP_RET_TRAP);
    for (size_t i = 0; i < sizeof allowed_with / sizeof *allowed_with; i++)
        answer_call_with(&p, &allowed_with[i], SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < sizeof allowed_otherwise / sizeof *allowed_otherwise; i++)
        answer_call(&p, allowed_otherwise[i], SECCOMP_RET_ALLOW);
    /* the filter cannot see the flags of clone3; after this error, the C library uses clone */
    answer_call(&p, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    emit(&p, BPF_JMP | BPF_JGE | BPF_K, NEWER_CALLS, 0, 1);
    answer(&p, SECCOMP_RET_ERRNO | ENOSYS);
    answer_call_if(&p, SYS_clone, 0, CLONE_THREAD, CLONE_THREAD, threads);
    answer_call_if(&p, SYS_kill, 0, WHOLE, self, SECCOMP_RET_ALLOW);
    answer_call_if(&p, SYS_tgkill, 0, WHOLE, self, SECCOMP_RET_ALLOW);
    answer_call_if(&p, SYS_sched_setaffinity, 0, WHOLE, 0, SECCOMP_RET_ALLOW);
    answer_call_if(&p, SYS_prlimit64, 0, WHOLE, 0, SECCOMP_RET_ALLOW);
    if (!devices)
        keep_pages(&p);
    answer_call(&p, SYS_munmap, SECCOMP_RET_ALLOW);
    answer_call(&p, SYS_madvise, SECCOMP_RET_ALLOW);
    answer_call_if(&p, SYS_mremap, 3, ~(uint32_t)MREMAP_MAYMOVE, 0, SECCOMP_RET_ALLOW);
    answer_call_if(&p, SYS_mprotect, 2, executable, 0, SECCOMP_RET_ALLOW);
    answer_call_if(&p, SYS_mmap, 2, executable, 0, SECCOMP_RET_ALLOW);
    answer_call_if(&p, SYS_openat, 2, writes, 0, opened);
#ifdef SYS_open
    answer_call_if(&p, SYS_open, 1, writes, 0, opened);
#endif
    answer(&p, others);
    struct sock_fprog program = {(unsigned short)p.length, p.code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

void filter_answer(ucontext_t *context, int call)
{
    long result = -EPERM;
    for (size_t i = 0; i < sizeof pretended / sizeof *pretended; i++)
        if (pretended[i] == (uint32_t)call)
            result = 0;
#if defined __x86_64__
    context->uc_mcontext.gregs[REG_RAX] = result;
#else
    context->uc_mcontext.regs[0] = (uint64_t)result;
#endif
}
