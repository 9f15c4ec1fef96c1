# shellcheck shell=bash
# The machine itself: cores, memory, environment. Part of doctor.sh, whose row and say it uses.

gib() {
    printf '%d.%d GiB' $(($1 / 1048576)) $(($1 % 1048576 * 10 / 1048576))
}

meminfo() {
    awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# A container may have less than its host.
memory_limit() {
    local limit
    limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
    if [[ $limit =~ ^[0-9]+$ ]]; then printf '%s' $((limit / 1024)); fi
}

# nproc by itself repeats OMP_NUM_THREADS.
cores() {
    env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc
}

machine_table() {
    local total limit free
    total=$(meminfo MemTotal) limit=$(memory_limit) free=$(meminfo MemAvailable)
    if [[ -n $limit ]] && ((limit < total)); then total=$limit; fi
    if ((free > total)); then free=$total; fi
    row good cores "$(cores)" 'more ranks than cores work, slowly'
    if ((free >= 2 * 1048576)); then
        row good memory "$(gib "$total")" "$(gib "$free") free"
    else
        row note memory "$(gib "$total")" "only $(gib "$free") free"
        say 'HINT: the labs fit; for training take small sizes (LAYERS=2 HIDDEN_DIM=128)'
    fi
    bf16_row
    shared_memory_row
    sandbox_row
    system_rows
}

# Without such instructions oneDNN imitates them, or does without bf16.
bf16_row() {
    local found
    found=$(grep -ow -m 1 -e avx512_bf16 -e amx_bf16 /proc/cpuinfo | head -n 1 || true)
    if [[ -n $found ]]; then
        row good bf16 "$found" 'make train AMP=bf16 is faster here'
    else
        row plain bf16 none 'make train AMP=bf16 gains nothing here'
    fi
}

shared_memory_row() {
    local kib
    kib=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    if [[ -n $kib ]] && ((kib >= 256 * 1024)) && [[ -w /dev/shm ]]; then
        row good /dev/shm "$(gib "$kib")" 'free; ranks of one machine meet there'
    else
        row note /dev/shm "$([[ -z $kib ]] || gib "$kib")" 'less than 256 MiB that can be written'
        say 'HINT: in a container: docker run --shm-size=1g; else: mount -o remount,size=1g /dev/shm as root'
    fi
}

# What grader/judge/sandbox.c asks of the system: namespaces, and mounts that can be made read-only with all below them.
sandbox_row() {
    local kernel
    kernel=$(uname -r)
    if printf '5.12\n%s\n' "$kernel" | sort -CV &&
        unshare --user --map-root-user --mount --net --ipc --pid --fork --mount-proc true 2>/dev/null; then
        row good sandbox "" 'labs are graded apart from all else'
    else
        row note sandbox none 'labs are graded with limits alone'
        say 'HINT: in a container: docker run --privileged; on Ubuntu, as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0; a kernel since 5.12'
    fi
}

system_name() {
    local name=''
    if [[ -r /etc/os-release ]]; then name=$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/os-release); fi
    printf '%s' "${name:-Linux}"
}

system_rows() {
    local kernel
    kernel=$(uname -r)
    case $kernel in
    *[Mm]icrosoft*WSL2* | *WSL2*)
        row good WSL2 "" 'Linux under Windows, as good as a laptop'
        if [[ ${setup_folder:?} == /mnt/[a-z]/* ]]; then
            row note folder "" 'on a Windows disk, which is slow'
            say 'HINT: clone the kit into your Linux home folder (~)'
        fi
        ;;
    *Microsoft*)
        row note WSL1 "" 'has no shared memory that MPI can use'
        say 'HINT: in PowerShell: wsl --set-version <distribution> 2'
        ;;
    esac
}

too_many_threads() {
    local name=$1 value=${!1:-}
    if [[ $value =~ ^[0-9]+$ ]] && ((value > $(cores))); then
        row note environment "" "$name=${value:0:6} on $(cores) cores"
        say "HINT: unset $name; the kit shares the cores out among the ranks"
    fi
}

environment_table() {
    local name
    if [[ -n ${OPENBLAS_CORETYPE:-} ]]; then
        row note environment "" "OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:0:18}"
        say "It makes OpenBLAS use that processor's matrix product, which can be half as fast as this one's."
        say 'HINT: unset OPENBLAS_CORETYPE'
    fi
    for name in OMP_NUM_THREADS OPENBLAS_NUM_THREADS; do too_many_threads "$name"; done
}
