# shellcheck shell=bash
# GPUs: toolkit, driver, NCCL, which rank uses which GPU, and which tests have run on a real one.
# Part of doctor.sh; uses its row, under, hint, title and $all.

nvcc_path() {
    local nvcc
    nvcc=$(type -P nvcc || compgen -G '/usr/local/cuda/bin/nvcc' || true)
    if [[ -n $nvcc ]]; then readlink -f "$nvcc"; fi
}

# ask_driver OPTIONS...: the output of nvidia-smi; nothing if it fails, for example because the
# driver finds no device. Under WSL2, nvidia-smi is not on the PATH.
ask_driver() {
    local smi
    smi=$(type -P nvidia-smi || compgen -G '/usr/lib/wsl/lib/nvidia-smi' || true)
    if [[ -n $smi ]]; then timeout 10 "$smi" "$@" 2>/dev/null || true; fi
}

# list_gpus: a line per GPU that the driver knows: index, uuid, name, MiB in total, MiB free and
# driver, separated by ", ".
list_gpus() {
    ask_driver --query-gpu=index,uuid,name,memory.total,memory.free,driver_version --format=csv,noheader,nounits |
        grep -E '^[0-9]+, [^,]+, ' || true
}

# visible_gpus LINES: the lines of GPUs that CUDA_VISIBLE_DEVICES shows, in its order. As in CUDA, a
# name that matches no GPU hides everything after it.
visible_gpus() {
    local names name line
    if [[ -z ${CUDA_VISIBLE_DEVICES+set} ]]; then
        printf '%s' "$1"
        return
    fi
    IFS=, read -ra names <<<"$CUDA_VISIBLE_DEVICES"
    for name in "${names[@]}"; do
        line=$(awk -F ', ' -v name="$name" '$1 == name || (name ~ /^GPU-/ && index($2, name) == 1) { print; exit }' <<<"$1")
        [[ -n $line ]] || return 0
        printf '%s\n' "$line"
    done
}

# Is version $1 older than $2?
is_older() {
    [[ $1 != "$2" ]] && printf '%s\n%s\n' "$1" "$2" | sort -CV
}

toolkit_rows() {
    local nvcc toolkit='' driver knows
    nvcc=$(nvcc_path)
    if [[ -n $nvcc ]]; then
        toolkit=$(first_number "$("$nvcc" --version 2>&1 | grep release || true)")
        row good nvcc "$toolkit" "$(say 'the CUDA Toolkit')"
    else
        row plain nvcc "$(say 'none')" "$(say 'the CUDA Toolkit')"
    fi
    driver=$(head -n 1 <<<"$1" | awk -F ', ' '{ print $6 }')
    knows=$(first_number "$(ask_driver | grep -o 'CUDA Version: [0-9.]*' || true)")
    if [[ -z $driver ]]; then
        row plain "$(say 'driver')" "$(say 'none')" "$(say 'from NVIDIA')"
    elif [[ -n $toolkit && -n $knows ]] && is_older "${knows%%.*}" "${toolkit%%.*}"; then
        row note "$(say 'driver')" "$driver" "$(said 'supports CUDA %s; the toolkit is newer' "$knows")"
        hint "$(said 'update the driver, or build with an older toolkit: CUDA=%s' "/usr/local/cuda-${knows%%.*}")"
    elif [[ -n $knows ]]; then
        row good "$(say 'driver')" "$driver" "$(said 'supports CUDA up to %s' "$knows")"
    else
        row good "$(say 'driver')" "$driver" "$(say 'supports CUDA')"
    fi
    nccl_row "${nvcc%/bin/nvcc}"
}

# Shows the version of the header with which the kit is built; the library's version may differ.
nccl_row() {
    local header folder=$1 version='' library
    for header in ${folder:+"$folder/include/nccl.h"} /usr/include/nccl.h; do
        if [[ -z $version && -r $header ]]; then
            version=$(sed -nE 's/^#define NCCL_(MAJOR|MINOR|PATCH) +([0-9]+).*/\2/p' "$header" | paste -sd.)
        fi
    done
    library=$({
        compgen -G "$folder/lib64/libnccl.so.2" || ldconfig -p 2>/dev/null | sed -n 's/.*libnccl\.so\.2.* => //p'
    } | head -n 1)
    if [[ -z $version ]]; then
        row plain NCCL "$(say 'none')" "$(say 'for TRANSPORT=nccl')"
    elif is_older "$version" 2.18 || { [[ -n $library ]] && ! grep -qam 1 ncclCommSplit "$library"; }; then
        row note NCCL "$version" "$(say 'has no ncclCommSplit')"
        hint "$(say 'TRANSPORT=nccl needs NCCL 2.18 or later; TRANSPORT=mpi does not need NCCL')"
    else
        row good NCCL "$version" "$(say 'has ncclCommSplit: TRANSPORT=nccl')"
    fi
}

cuda_aware_row() {
    type -P ompi_info >/dev/null || return 0
    if timeout 10 ompi_info --parsable --all 2>/dev/null | grep -q 'cuda_support:value:true'; then
        row good 'Open MPI' CUDA-aware "$(say "the kit uses host memory anyway")"
    else
        row plain 'Open MPI' "$(say 'no CUDA')" "$(say "GPUs communicate through host memory")"
    fi
}

# gpu_text NAME MIB FREE: describes a GPU in a few words.
gpu_text() {
    local name=${1#NVIDIA }
    said '%s, %d GiB, %d free' "${name:0:20}" $(($2 / 1024)) $(($3 / 1024))
}

# Shows which GPU each of NTASKS local ranks uses: rank r uses the r-th visible one, cyclically.
map_rows() {
    local gpus ranks rank fields
    mapfile -t gpus <<<"$1"
    ranks=${NTASKS:-${#gpus[@]}}
    for ((rank = 0; rank < ranks && rank < 64; rank++)); do
        IFS='|' read -ra fields <<<"${gpus[rank % ${#gpus[@]}]//, /|}"
        if ((rank < ${#gpus[@]})); then
            row good "$(said 'local rank %d' "$rank")" "GPU ${fields[0]}" "$(gpu_text "${fields[@]:2:3}")"
        else
            row note "$(said 'local rank %d' "$rank")" "GPU ${fields[0]}" "$(said 'shared with local rank %d' $((rank % ${#gpus[@]})))"
        fi
    done
    if ((ranks > ${#gpus[@]})); then
        if ((${#gpus[@]} == 1)); then
            under "$(said '%d ranks share 1 GPU: their collectives go through MPI via the host; NCCL needs a GPU per rank.' "$ranks")"
        else
            under "$(said '%d ranks share %d GPUs: their collectives go through MPI via the host; NCCL needs a GPU per rank.' "$ranks" ${#gpus[@]})"
        fi
    elif ((${#gpus[@]} == 1)); then
        under "$(say 'More than one rank would share the GPU and communicate through MPI: make doctor NTASKS=2')"
    else
        under "$(said 'More than %d ranks would share GPUs and communicate through MPI: make doctor NTASKS=%d' ${#gpus[@]} $((2 * ${#gpus[@]})))"
    fi
    if (($(awk -F ', ' '!seen[$3]++' <<<"$1" | wc -l) > 1)); then
        row note "$(say 'types of GPUs')" "$(say 'differ')" "$(say 'a run must use GPUs of one type')"
        hint "$(say 'CUDA_VISIBLE_DEVICES=0,2 selects GPUs of one type; with CUDA_DEVICE_ORDER=PCI_BUS_ID, CUDA numbers them as nvidia-smi does')"
    fi
}

# How each pair of visible GPUs is connected, if the driver reports it.
link_row() {
    local pairs
    (($(wc -l <<<"$1") > 1)) || return 0
    pairs=$(ask_driver topo -m | awk -v visible=" $(awk -F ', ' '{ printf "%s ", $1 }' <<<"$1")" '
        /^GPU[0-9]+[ \t]/ {
            a = substr($1, 4)
            for (b = 0; b < a; b++)
                if (index(visible, " " a " ") && index(visible, " " b " ")) {
                    all++
                    if ($(b + 2) ~ /^NV[0-9]/) { linked++; list = list " " b "-" a }
                }
        }
        END { if (all) print (linked == all ? "all" : linked ? substr(list, 2) : "none") }')
    case $pairs in
    '') ;;
    all) row good NVLink "$(say 'all pairs')" '' ;;
    none) row plain NVLink "$(say 'none')" "$(say 'connected over PCIe or the host')" ;;
    *) row note NVLink "$(say 'some')" "$(said 'only between GPUs %s' "${pairs:0:30}")" ;;
    esac
}

# The first paragraph of RESULTS.md, which common/backend/README.md repeats.
gpu_status() {
    awk 'NR > 1 && NF { found = 1; print } NR > 1 && !NF && found { exit }' "${setup_folder:?}/../backend/cuda/RESULTS.md" | tr '\n' ' ' | sed 's/ *$//'
}

# Without a GPU, shows only a row that says so, unless ALL=1 is set.
gpu_table() {
    local known gpus
    known=$(list_gpus)
    gpus=$(visible_gpus "$known")
    if [[ -z $known && -z $all ]]; then
        row plain GPU "$(say 'none')" "$(say 'BACKEND=cpu needs none')"
        return
    fi
    title "$(say 'GPUs, for BACKEND=cuda (the labs need none)')"
    toolkit_rows "$known"
    cuda_aware_row
    if [[ -n $gpus ]]; then
        map_rows "$gpus"
        link_row "$gpus"
    elif [[ -n $known ]]; then
        row note GPU "$(say 'hidden')" "CUDA_VISIBLE_DEVICES='${CUDA_VISIBLE_DEVICES:0:20}'"
    else
        row plain GPU "$(say 'none')" "$(say 'BACKEND=cpu needs none')"
    fi
    [[ ! -r $setup_folder/../backend/cuda/RESULTS.md ]] || under "$(say "$(gpu_status)")" # not in the handout
}
