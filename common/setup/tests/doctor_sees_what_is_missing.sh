#!/usr/bin/env bash
# doctor.sh on this machine, and on this machine without some of its commands. All runs have ALL=1,
# except those of brief_doctor.
set -euo pipefail

root=${ROOT:-$(git -C "$(dirname -- "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source-path=SCRIPTDIR source=verdict.bash
source "$root/common/setup/tests/verdict.bash"
unset NO_COLOR CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER NTASKS OPENBLAS_CORETYPE OMP_NUM_THREADS OPENBLAS_NUM_THREADS
export LC_ALL=C.UTF-8 ALL=1

# Links to every command on the PATH, made once.
link_commands() {
    local folder folders
    mkdir "$work/all"
    mapfile -t folders < <(tr : '\n' <<<"$PATH" | tac)
    for folder in "${folders[@]}"; do
        if [[ -d $folder ]]; then find "$folder"/ -maxdepth 1 ! -type d -exec ln -sf -t "$work/all" {} +; fi
    done
}
link_commands

# The folder `bin`: a PATH with every command except the given ones.
bin=$work/bin
path_without() {
    local name
    rm -rf "$bin"
    cp -a "$work/all" "$bin"
    for name; do rm -f "$bin/$name"; done
}

# fake NAME: writes standard input as a script in place of that command in `bin`.
fake() {
    rm -f "$bin/$1"
    cat >"$bin/$1"
    chmod +x "$bin/$1"
}

brief_doctor() {
    local ALL=''
    doctor "$@"
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

doctor PATH="$PATH"
expect_status 0
expect_said '✓ gcc +[0-9]' '✓ MPI, 2 ranks' '✓ MPI, 2 stages +1 MiB +sent both ways at once' '✓ cores' '✓ memory' '/dev/shm' 'sandbox' 'the labs need none' \
    'You can do the labs on this machine'
verdict 'the doctor says that the labs can be done here'

! grep -q $'\e' "$work/said" || reasons+=('colour in a file')
verdict 'output to a file has no colour'

# words_of: the text as words, wherever its lines are broken.
words_of() {
    tr -s '\n ' ' ' <"$1"
}
status_words=$(awk 'NR > 1 && NF { found = 1; print } NR > 1 && !NF && found { exit }' "$root/common/backend/cuda/RESULTS.md" | tr -s '\n ' ' ')
[[ ${#status_words} -gt 40 && $(words_of "$work/said") == *"$status_words"* ]] || reasons+=('the doctor says otherwise')
[[ $(words_of "$root/common/backend/README.md") == *"$status_words"* ]] || reasons+=('common/backend/README.md says otherwise')
verdict 'RESULTS.md, the doctor and the README of the backends say the same about runs on a real GPU'

path_without sbatch nvidia-smi
brief_doctor PATH="$bin"
expect_status 0
expect_said '✓ gcc [0-9][0-9.]*, libc6-dev [0-9]' '✓ MPI, 2 ranks' '✓ cores' '^    GPU +none' '^    Slurm +none' 'You can do the labs on this machine' 'make doctor ALL=1 shows'
(($(wc -l <"$work/said") < 24)) || reasons+=('more than 23 lines')
! grep -q 'compiles the kit' "$work/said" || reasons+=('says what a package is for')
verdict 'without ALL=1, the doctor fills one screen'

path_without mpicc
doctor PATH="$bin"
expect_status 2
expect_said '✗ libopenmpi-dev +missing' 'HINT: make setup; on a cluster: module load openmpi' \
    '✗ MPI, 2 ranks +fails +Open MPI is not installed' 'You cannot do the labs on this machine yet'
verdict 'without mpicc, the doctor names MPI and says how to get it'
brief_doctor PATH="$bin"
expect_status 2
expect_said '✓ gcc [0-9][0-9.]*, ' '✗ libopenmpi-dev +missing' 'HINT: make setup; on a cluster: module load openmpi' \
    '✗ MPI, 2 ranks +fails +Open MPI is not installed' 'You cannot do the labs on this machine yet'
! grep -q '✓.* libopenmpi-dev' "$work/said" || reasons+=('also lists it as installed')
verdict 'also without ALL=1'

path_without addr2line
doctor PATH="$bin"
expect_status 2
expect_said '✗ binutils +missing' '✓ MPI, 2 ranks' 'cannot do the labs on this machine yet' '^  binutils$'
verdict 'without one program that the labs need, they cannot be done'

# A machine that lacks only things that do not prevent the labs.
path_without shellcheck unshare ompi_info
for compiler in gcc g++; do
    fake "$compiler" <<END
#!/bin/bash
[[ " \$* " != *" -ldnnl "* ]] || exit 1
exec $(type -P "$compiler") "\$@"
END
done
fake unshare <<<$'#!/bin/bash\nexit 1'
fake ompi_info <<<$'#!/bin/bash\necho mca:opal:base:param:opal_built_with_cuda_support:value:true'
doctor PATH="$bin"
expect_status 0
expect_said 'You can do the labs on this machine'
verdict 'the labs can be done without what only tests, training or speed need'
expect_said '✗ shellcheck +missing' 'HINT: common/setup/setup.sh test'
verdict 'a package that only the tests need is listed, with how to get it'
expect_said '✗ libdnnl-dev +missing \(opt.\)' 'HINT: make setup;'
verdict 'so is an optional package'
expect_said '! sandbox +none' 'resource limits only' 'HINT: in a container'
verdict 'so is a missing sandbox'
brief_doctor PATH="$bin"
expect_said '✗ missing packages \([0-9]+ of [0-9]+\): .*shellcheck' 'HINT: common/setup/setup.sh test' '✗ libdnnl-dev +missing \(opt.\)' '! sandbox +none'
verdict 'without ALL=1, packages of the tests are one line'
doctor PATH="$bin"
expect_said '✓ Open MPI +CUDA-aware'
verdict 'a CUDA-aware Open MPI is recognised'

path_without mpirun
fake mpirun <<'END'
#!/bin/bash
[[ $1 == --version ]] && { echo 'mpirun (Open MPI) of another folder'; exit; }
echo ranks=1
echo ranks=1
END
doctor PATH="$bin"
expect_status 2
expect_said 'each rank is alone in its world' 'come from two installations'
verdict 'an mpirun of another installation than mpicc is detected'

fake mpirun <<'END'
#!/bin/bash
[[ $1 == --version ]] && { echo 'mpirun (Open MPI) of another folder'; exit; }
echo ranks=2
exit 124
END
doctor PATH="$bin"
expect_status 2
expect_said '✓ MPI, 2 ranks' '✗ MPI, 2 stages +1 MiB +sent both ways at once does not arrive' 'cannot do the labs on this machine yet'
verdict 'stages between which a large message does not arrive are reported, beside ranks that start'

fake mpirun <<<$'#!/bin/bash\necho HYDRA build details'
doctor PATH="$bin"
expect_status 2
expect_said "not Open MPI's" 'HINT'
verdict 'an mpirun that is not from Open MPI is reported'

# A fake driver that supports CUDA up to $knows, with GPUs of the given names and NVLink between the
# first two. There is no MPI, so the doctor does not try to start ranks.
knows=99.0
path_with_gpus() {
    local index=0 name
    path_without mpicc mpirun
    {
        printf '#!/bin/bash\ncase $* in\n--query-gpu=index,uuid,name,memory.total,memory.free,driver_version*)\n'
        for name; do
            printf 'echo "%d, GPU-%d%d%d, %s, 81559 MiB, 80000 MiB, 550.1"\n' $index $index $index $index "$name" | sed 's/ MiB//g'
            index=$((index + 1))
        done
        printf ';;\ntopo*) printf "%%s\\n" "	GPU0	GPU1	GPU2" "GPU0	 X 	NV18	SYS" "GPU1	NV18	 X 	SYS" "GPU2	SYS	SYS	 X " ;;\n'
        printf '*) echo "| Driver Version: 550.1  CUDA Version: %s |" ;;\nesac\n' "$knows"
    } | fake nvidia-smi
}

path_with_gpus 'NVIDIA H200' 'NVIDIA H200'
doctor PATH="$bin"
expect_said 'local rank 0 +GPU 0 +H200, 79 GiB, 78 free$' 'local rank 1 +GPU 1 +H200' 'NVLink +all pairs' \
    'More than 2 ranks would share' '✓ driver +550.1 +supports CUDA up to 99.0'
verdict 'the doctor shows which local rank uses which GPU, and that NVLink connects them'

doctor PATH="$bin" NTASKS=3
expect_said '! local rank 2 +GPU 0 +shared with local rank 0' '3 ranks share 2 GPUs: their collectives go through MPI'
verdict 'the doctor says which ranks share a GPU, and that they communicate through MPI'

path_with_gpus 'NVIDIA H200' 'NVIDIA H200' 'NVIDIA A30'
doctor PATH="$bin"
expect_said 'NVLink +some +only between GPUs 0-1' 'types of GPUs +differ +a run must use GPUs of one type' 'HINT: CUDA_VISIBLE_DEVICES=0,2'
verdict 'GPUs of two types, and pairs without NVLink, are reported'

doctor PATH="$bin" CUDA_VISIBLE_DEVICES=2,GPU-000,7,1
expect_said 'local rank 0 +GPU 2 +A30' 'local rank 1 +GPU 0 +H200' 'NVLink +none'
! grep -q 'local rank 2' "$work/said" || reasons+=('shows a GPU that follows an unknown one')
verdict 'CUDA_VISIBLE_DEVICES selects and orders the GPUs'

cp -P "$work/all/mpicc" "$work/all/mpirun" "$bin"
doctor PATH="$bin" CUDA_VISIBLE_DEVICES=
expect_status 0
expect_said '! GPU +hidden' 'You can do the labs on this machine'
verdict 'hidden GPUs are reported'

if [[ -n $(type -P nvcc || compgen -G '/usr/local/cuda/bin/nvcc') ]]; then
    knows=9.2
    path_with_gpus 'NVIDIA H200'
    doctor PATH="$bin"
    expect_said '! driver +550.1 +supports CUDA 9.2; the toolkit is newer' 'HINT: update the driver'
    verdict 'a driver older than the toolkit is reported'
else
    echo 'skip - a driver older than the toolkit is reported: nvcc is not installed'
fi

doctor PATH="$PATH" OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=999999
expect_status 0
expect_said 'OPENBLAS_CORETYPE=Haswell' 'HINT: unset OPENBLAS_CORETYPE' 'OPENBLAS_NUM_THREADS=999999 on'
verdict 'settings that slow down the kernels are reported with a HINT'

path_without mpicc mpirun
doctor_on_terminal PATH="$bin" TERM=xterm
grep -q $'\e\[32m✓' "$work/said" || reasons+=('no colour on a terminal')
doctor_on_terminal PATH="$bin" TERM=xterm NO_COLOR=1
! grep -q $'\e' "$work/said" || reasons+=('colour in spite of NO_COLOR')
verdict 'colour appears on a terminal only, and not with NO_COLOR'

((failures == 0))
