#!/usr/bin/env bash
# open_mpi.sh KIND...: prints settings of Open MPI, one NAME=VALUE per line, for the environment of
# mpirun and its ranks. Scripts source this file; `open_mpi KIND...` then exports the settings.
#
#   root           root may start ranks
#   here           ranks of one machine: over shared memory, bound to no core
#   cores=N        the number of cores that mpirun and the ranks see
#   quiet          mpirun reports no ranks that fail
#   yield          a waiting rank gives up its core
#   sums           the fastest nonblocking all-reduce
#   session=DIR    the folder of mpirun's own files
#   shared=DIR     the folder of the memory that ranks share
#   alone          mpirun ignores the other nodes of a Slurm allocation
#   single         a program without other ranks: no launcher, no network
#   graded         no plugin that the ranks of a lab do not need
#
# Only this file knows what differs between Open MPI's versions. The launcher of 4.1 is ORTE, that of
# 5.0 is PRRTE, which reads PRTE_MCA_* where ORTE reads OMPI_MCA_*; 6.0 has new names for two of them,
# and a banner for each old one. The shared memory between ranks is called vader in 4.1 and sm later;
# the list btl still accepts vader. Each setting has all its names here, and a version ignores those
# of others.

open_mpi_settings() {
    local kind value
    for kind; do
        value=${kind#*=}
        case $kind in
        root) printf '%s\n' OMPI_ALLOW_RUN_AS_ROOT{,_CONFIRM}=1 ;;
        here)
            printf '%s\n' OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_{rmaps_default_mapping_policy,mapby}=:oversubscribe
            printf '%s\n' {OMPI_MCA_hwloc_base,PRTE_MCA_hwloc_default}_binding_policy=none PRTE_MCA_bindto=none
            printf '%s\n' {OMPI,PRTE}_MCA_odls_base_sigkill_timeout=0
            echo PMIX_MCA_mca_base_suppress_deprecated_warning=1
            # A rank copies through shared memory, because that is faster than reading the other's
            # memory, which the sandbox forbids.
            printf '%s\n' OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma,knem,xpmem \
                OMPI_MCA_btl_{vader,sm}_segment_size=4194304 # of each rank; the default of 5.0 is four times as much
            ;;
        cores=*)
            # Ranks are bound to no core, so nothing need search for caches, GPUs and displays, nor
            # write files.
            printf '%s\n' "HWLOC_SYNTHETIC=core:$value pu:1" HWLOC_PLUGINS_PATH=/none PMIX_MCA_gds=hash
            ;;
        quiet) printf '%s\n' {OMPI_MCA_orte,PRTE_MCA_prte}_execute_quiet=1 OMPI_MCA_orte_abort_print_stack=0 ;;
        yield) printf '%s\n' OMPI_MCA_mpi_yield_when_idle=1 RANKS_SHARE_CORES=1 ;; # yield.c reads it
        sums) echo OMPI_MCA_coll_libnbc_iallreduce_algorithm=3 ;; # Rabenseifner's; the default takes two to four times as long
        session=*) printf '%s\n' {OMPI_MCA_orte,PRTE_MCA_prte}_tmpdir_base="$value" ;;
        shared=*) printf '%s\n' OMPI_MCA_{btl_vader,btl_sm,osc_sm}_backing_directory="$value" ;;
        alone) printf '%s\n' {OMPI,PRTE}_MCA_{plm,ras}=^slurm ;;
        single) printf '%s\n' OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self ;;
        graded)
            # Plugins for other nodes, queues and tools, for registered memory, or for windows
            # (MPI_Win) and intercommunicators, which a lab may not use. Without them, a launch by 4.1
            # takes half the time; 5.0 has no plugins to load.
            printf '%s\n' OMPI_MCA_coll=^sm,monitoring,adapt,sync,han,inter OMPI_MCA_mpool=^hugepage OMPI_MCA_op=^avx \
                OMPI_MCA_osc=^monitoring,rdma,pt2pt,ucx OMPI_MCA_rcache=^grdma OMPI_MCA_reachable=^netlink \
                OMPI_MCA_shmem=^posix,sysv OMPI_MCA_errmgr=^default_tool,default_orted OMPI_MCA_ess=^env,singleton,slurm,tool \
                OMPI_MCA_iof=^orted,tool OMPI_MCA_pmix=^flux OMPI_MCA_ras=^slurm,gridengine,simulator \
                OMPI_MCA_rmaps=^mindist,ppr,rank_file,resilient,seq OMPI_MCA_schizo=^slurm,jsm,flux \
                OMPI_MCA_state=^novm,tool,orted
            ;;
        esac
    done
}

open_mpi() {
    local setting
    while read -r setting; do export "${setting?}"; done < <(open_mpi_settings "$@")
}

# open_mpi_without_banners FILE: copies mpirun's standard error, without its banners and warnings
# about ranks that ended or failed. Writes the number and the signal of a killed rank to FILE. Uses
# sed, because mawk would hold back messages of ranks until the run ends.
open_mpi_without_banners() {
    local killed='s/.*process rank ([0-9]+) .*exited on signal ([0-9]+).*/\1 \2/w '$1
    sed -unE -e '/^-{30,}$/{' -e ':more' -e 'N;/\n-{30,}$/!bmore' -e "s/\n/ /g;$killed" -e 'd' -e '}' \
        -e "/process rank .* exited on signal/{$killed" -e 'd' -e '}' \
        -e '/^\[warn\] Epoll |^(mpirun|prterun): |^\x00+$|ORTE_ERROR_LOG: .*\/show_help\.c |^\[[^]]*\] PMIX ERROR: /d' -e p
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || open_mpi_settings "$@"
