# shellcheck shell=bash
# Is Slurm available, and do its nodes start ranks that can communicate? Part of doctor.sh; uses its
# row, hint, title, write_hello and $all. JOB_PARTITION and JOB_ACCOUNT are PARTITION and ACCOUNT of
# site.mk.

check_slurm() {
    local version partitions
    if [[ -n $all ]] || type -P sbatch >/dev/null; then title "$(say 'A cluster, for make sbatch (the labs need none)')"; fi
    if ! type -P sbatch >/dev/null; then
        row plain Slurm "$(say 'none')" "$(say 'everything runs on this machine')"
        return
    fi
    version=$(first_number "$(sbatch --version 2>/dev/null || true)")
    version=${version:-$(packaged_version slurm-client)}
    if ! partitions=$(timeout 20 sinfo --noheader --format %R 2>/dev/null) || [[ -z $partitions ]]; then
        row note Slurm "$version" "$(say 'its controller does not answer')"
        hint "$(say 'sinfo shows the error; only make sbatch and ON=slurm need Slurm')"
        return
    fi
    row good Slurm "$version" "$(sort -u <<<"$partitions" | paste -sd ' ' | cut -c 1-38)"
    check_srun "$1"
}

# Starts two ranks on nodes, if some are free within ten seconds. The program is in the kit's
# folder, because nodes do not see this machine's /tmp.
check_srun() {
    local program=$setup_folder/../../build/doctor-hello.$$ status=0
    if ! srun --mpi=list 2>&1 | grep -qw pmix; then
        row note 'srun --mpi=pmix' "$(say 'none')" "$(say 'make sbatch starts ranks with mpirun')"
        return
    fi
    mkdir -p "${program%/*}"
    if ! [[ -x $1/hello ]] || ! cp "$1/hello" "$program" 2>/dev/null; then return; fi
    timeout -k 5 60 srun --quiet --mpi=pmix --ntasks=2 --immediate=10 --time=1 ${JOB_PARTITION:+--partition="$JOB_PARTITION"} \
        ${JOB_ACCOUNT:+--account="$JOB_ACCOUNT"} "$program" >"$1/said" 2>&1 </dev/null || status=$?
    rm -f "$program"
    judge_srun "$1/said" "$status"
}

judge_srun() {
    if ((!$2)) && grep -qx 'ranks=2' "$1"; then
        row good 'srun --mpi=pmix' "" "$(say 'ranks start on nodes, and communicate')"
    elif grep -qx 'ranks=1' "$1"; then
        row note 'srun --mpi=pmix' "$(say 'alone')" "$(say 'each rank is alone in its world')"
        hint "$(say 'this MPI does not support PMIx: START = mpirun in site.mk, or another module of MPI')"
    elif grep -q 'Immediate execution impossible\|temporarily unavailable\|Resource temporarily\|nodes are busy' "$1"; then
        row plain 'srun --mpi=pmix' "$(say 'not tried')" "$(say 'no node was free within 10 s')"
    elif grep -qi 'invalid partition' "$1"; then
        row note 'srun --mpi=pmix' "$(say 'fails')" "$(said "there is no partition '%s'" "${JOB_PARTITION:-}")"
        hint "$(say 'PARTITION in site.mk must be one of those above')"
    elif grep -qi 'invalid account' "$1"; then
        row note 'srun --mpi=pmix' "$(say 'fails')" "$(said "Slurm does not accept ACCOUNT '%s'" "${JOB_ACCOUNT:-}")"
        hint "$(say "sacctmgr show associations user=\$USER lists yours, for ACCOUNT in site.mk")"
    else
        row note 'srun --mpi=pmix' "$(say 'fails')" "$(head -n 1 "$1" | cut -c 1-38)"
        hint "$(say 'set PARTITION and ACCOUNT in site.mk; START = mpirun there avoids srun')"
    fi
}
