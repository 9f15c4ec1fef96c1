# shellcheck shell=bash
# The machine itself: cores, memory, environment. Part of doctor.sh; uses its row, under and hint.

gib() {
    said '%d.%d GiB' $(($1 / 1048576)) $(($1 % 1048576 * 10 / 1048576))
}

meminfo() {
    awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# The memory limit of the container in KiB, which may be below the host's memory; nothing if there
# is none.
memory_limit() {
    local limit
    limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
    if [[ $limit =~ ^[0-9]+$ ]]; then printf '%s' $((limit / 1024)); fi
}

# The number of cores. nproc would otherwise return OMP_NUM_THREADS, if that is set.
cores() {
    env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc
}

machine_table() {
    local total limit free
    total=$(meminfo MemTotal) limit=$(memory_limit) free=$(meminfo MemAvailable)
    if [[ -n $limit ]] && ((limit < total)); then total=$limit; fi
    if ((free > total)); then free=$total; fi
    row good "$(say 'cores')" "$(cores)" "$(say 'more ranks than cores run, but slowly')"
    if ((free >= 2 * 1048576)); then
        row good "$(say 'memory')" "$(gib "$total")" "$(said '%s free' "$(gib "$free")")"
    else
        row note "$(say 'memory')" "$(gib "$total")" "$(said 'only %s free' "$(gib "$free")")"
        hint "$(say 'enough for the labs; train with small sizes (LAYERS=2 HIDDEN_DIM=128)')"
    fi
    bf16_row
    shared_memory_row
    sandbox_row
    system_rows
}

# Shows whether the processor has instructions for bf16. Without them, oneDNN emulates bf16 or does
# not support it.
bf16_row() {
    local found
    found=$(grep -ow -m 1 -e avx512_bf16 -e amx_bf16 /proc/cpuinfo | head -n 1 || true)
    if [[ -n $found ]]; then
        row good bf16 "$found" "$(say 'make train AMP=bf16 is faster here')"
    else
        row plain bf16 "$(say 'none')" "$(say 'make train AMP=bf16 gains nothing here')"
    fi
}

shared_memory_row() {
    local kib
    kib=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    if [[ -n $kib ]] && ((kib >= 256 * 1024)) && [[ -w /dev/shm ]]; then
        row good /dev/shm "$(gib "$kib")" "$(say 'free; ranks on one machine share it')"
    else
        row note /dev/shm "$([[ -z $kib ]] || gib "$kib")" "$(say 'less than 256 MiB of writable space')"
        hint "$(say 'in a container: docker run --shm-size=1g; otherwise, as root: mount -o remount,size=1g /dev/shm')"
    fi
}

# Checks the needs of grader/judge/launch/sandbox.c: namespaces, and mounts that can
# be made read-only recursively.
sandbox_row() {
    local kernel
    kernel=$(uname -r)
    if printf '5.12\n%s\n' "$kernel" | sort -CV &&
        unshare --user --map-root-user --mount --net --ipc --pid --fork --mount-proc true 2>/dev/null; then
        row good "$(say 'sandbox')" "" "$(say 'labs are graded in isolation')"
    else
        row note "$(say 'sandbox')" "$(say 'none')" "$(say 'resource limits only')"
        hint "$(say 'in a container: docker run --privileged; on Ubuntu, as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0; kernel 5.12 or later')"
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
        row good WSL2 "" "$(say 'Linux under Windows: as suitable as Linux on a laptop')"
        if [[ ${setup_folder:?} == /mnt/[a-z]/* ]]; then
            row note "$(say 'folder')" "" "$(say 'on a Windows disk, which is slow')"
            hint "$(say 'clone the kit into your Linux home folder (~)')"
        fi
        ;;
    *Microsoft*)
        row note WSL1 "" "$(say 'has no shared memory that MPI can use')"
        hint "$(say 'in PowerShell: wsl --set-version <distribution> 2')"
        ;;
    esac
}

too_many_threads() {
    local name=$1 value=${!1:-}
    if [[ $value =~ ^[0-9]+$ ]] && ((value > $(cores))); then
        row note "$(say 'environment')" "" "$(said '%s on %d cores' "$name=${value:0:6}" "$(cores)")"
        hint "$(said 'unset %s; the kit divides the cores among the ranks' "$name")"
    fi
}

environment_table() {
    local name
    if [[ -n ${OPENBLAS_CORETYPE:-} ]]; then
        row note "$(say 'environment')" "" "OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:0:18}"
        under "$(say "This variable makes OpenBLAS use that processor's matrix product, which can be half as fast as this one's.")"
        hint "$(say 'unset OPENBLAS_CORETYPE')"
    fi
    for name in OMP_NUM_THREADS OPENBLAS_NUM_THREADS; do too_many_threads "$name"; done
}
