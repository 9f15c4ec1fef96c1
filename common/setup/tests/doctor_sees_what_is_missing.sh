#!/usr/bin/env bash
# doctor.sh on this machine, and on this machine without some of its commands.
set -euo pipefail

root=${ROOT:-$(git -C "$(dirname -- "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0 reasons=()
unset NO_COLOR OPENBLAS_CORETYPE OMP_NUM_THREADS OPENBLAS_NUM_THREADS
export LC_ALL=C.UTF-8

# A PATH of links to every command but the ones named, as `bin`.
path_without() {
    local folder folders name
    bin=$work/bin
    rm -rf "$bin"
    mkdir "$bin"
    mapfile -t folders < <(tr : '\n' <<<"$PATH" | tac)
    for folder in "${folders[@]}"; do
        if [[ -d $folder ]]; then find "$folder"/ -maxdepth 1 ! -type d -exec ln -sf -t "$bin" {} +; fi
    done
    for name; do rm -f "$bin/$name"; done
}

doctor() {
    status=0
    env "$@" bash "$root/common/setup/doctor.sh" >"$work/said" 2>&1 </dev/null || status=$?
    expect_narrow
}

# Whatever is missing, the table fits 80 columns.
expect_narrow() {
    local line
    while read -r line; do
        ((${#line} <= 80)) || reasons+=("longer than 80 columns: ${line//./ }")
    done < <(tr ' ' . <"$work/said") # read strips blanks
}

doctor_on_terminal() {
    env "$@" script -qec "bash $root/common/setup/doctor.sh" /dev/null >"$work/said" 2>&1 </dev/null || true
}

expect_status() {
    [[ $status == "$1" ]] || reasons+=("exit status $status, not $1")
}

expect_said() {
    local pattern
    for pattern; do
        grep -qE -- "$pattern" "$work/said" || reasons+=("does not say: $pattern")
    done
}

verdict() {
    if ((${#reasons[@]} == 0)); then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '    %s\n' "${reasons[@]}"
        sed 's/^/    | /' "$work/said"
        failures=$((failures + 1))
    fi
    reasons=()
}

doctor PATH="$PATH"
expect_status 0
expect_said '✓ gcc +[0-9]' '✓ MPI, 2 ranks' '✓ cores' '✓ memory' '/dev/shm' 'sandbox' 'the labs need none' \
    'The labs can be done here'
verdict 'a machine that can do the labs is told so'

! grep -q $'\e' "$work/said" || reasons+=('colour in a file')
verdict 'there is no colour in a file'

path_without mpicc
doctor PATH="$bin"
expect_status 2
expect_said '✗ libopenmpi-dev +missing' 'HINT: make setup; on a cluster: module load openmpi' \
    '✗ MPI, 2 ranks +fails +Open MPI is not installed' 'The labs cannot be done here yet'
verdict 'without mpicc the doctor names MPI and says how to get it'

path_without addr2line
doctor PATH="$bin"
expect_status 2
expect_said '✗ binutils +missing' '✓ MPI, 2 ranks' 'cannot be done here yet' '^  binutils$'
verdict 'any one thing that the labs need stands in their way'

path_without shellcheck
doctor PATH="$bin"
expect_status 0
expect_said '✗ shellcheck +missing' 'HINT: common/setup/setup.sh test' 'The labs can be done here'
verdict 'what only the tests need stands not in the way of the labs'

path_without mpicc
printf '#!/bin/bash\nset -o pipefail\n%s "$@" | sed /dnnl/d\n' "$(type -P mpicc)" >"$bin/mpicc"
chmod +x "$bin/mpicc"
doctor PATH="$bin"
expect_status 0
expect_said '✗ libdnnl-dev +missing \(opt.\)' 'HINT: make setup;' 'The labs can be done here'
verdict 'what training alone can do without stands not in the way of the labs'

path_without mpirun
cat >"$bin/mpirun" <<'END'
#!/bin/bash
[[ $1 == --version ]] && { echo 'mpirun (Open MPI) 4.1.4'; exit; }
echo ranks=1
echo ranks=1
END
chmod +x "$bin/mpirun"
doctor PATH="$bin"
expect_status 2
expect_said 'each rank is alone in its world' 'belong to two installations'
verdict 'an mpirun that does not belong to mpicc is found out'

printf '#!/bin/bash\necho HYDRA build details\n' >"$bin/mpirun"
doctor PATH="$bin"
expect_status 2
expect_said 'not that of Open MPI' 'HINT'
verdict 'an mpirun that is not of Open MPI is named'

path_without nvidia-smi
printf '#!/bin/bash\nprintf "%%s\\n" "NVIDIA Card" "NVIDIA Card"\n' >"$bin/nvidia-smi"
chmod +x "$bin/nvidia-smi"
doctor PATH="$bin"
expect_said '✓ GPU +2 +NVIDIA Card$'
verdict 'GPUs are counted and named'

path_without unshare
printf '#!/bin/bash\nexit 1\n' >"$bin/unshare"
chmod +x "$bin/unshare"
doctor PATH="$bin"
expect_status 0
expect_said '! sandbox +none' 'with limits alone' 'HINT: in a container'
verdict 'a machine that allows no sandbox is no hindrance, and told so'

doctor PATH="$PATH" OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=999999
expect_status 0
expect_said 'OPENBLAS_CORETYPE=Haswell' 'HINT: unset OPENBLAS_CORETYPE' 'OPENBLAS_NUM_THREADS=999999 on'
verdict 'an environment that slows the kernels down is shown with a HINT'

doctor_on_terminal TERM=xterm
grep -q $'\e\[32m✓' "$work/said" || reasons+=('no colour on a terminal')
doctor_on_terminal TERM=xterm NO_COLOR=1
! grep -q $'\e' "$work/said" || reasons+=('colour in spite of NO_COLOR')
verdict 'colour appears on a terminal only, and not with NO_COLOR'

((failures == 0))
