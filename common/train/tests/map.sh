#!/usr/bin/env bash
# MAP=1 prints where each rank runs, and warns about a tensor-parallel group on several nodes. Here
# nodes are host names, which ranks set in namespaces of their own.
set -uo pipefail
cd "$ROOT" || exit 2
# shellcheck source-path=SCRIPTDIR source=../../comm/open_mpi.sh
source common/comm/open_mpi.sh
open_mpi root here quiet
small=(--layers 2 --hidden-dim 24 --heads 2 --batch-size 4 --seq 16 --samples 8 --steps 1 --test "" --threads 1 --map 1)
work=$(mktemp -d "$BUILD/map.XXXXXX")
trap 'rm -rf "$work"' EXIT

check() {
    local sentence=$1
    shift
    if "$@"; then echo "ok - $sentence"; else
        echo "not ok - $sentence"
        sed 's/^/    /' "$work/out"
    fi
}
says() { grep -qF -- "$1" "$work/out"; }
is_silent() { ! grep -q warning "$work/out"; }

common/train/launch.sh 8 solutions 14 "$BUILD/train" --cache "$BUILD/cache" --tp 2 --pp 2 "${small[@]}" > "$work/out" 2>&1
check "consecutive ranks are a tensor-parallel group" says "rank 1: node $(uname -n), tp 1, dp 0, pp 0"
check "replicas follow each other" says "rank 2: node $(uname -n), tp 0, dp 1, pp 0"
check "stages are the outermost dimension" says "rank 4: node $(uname -n), tp 0, dp 0, pp 1"
check "on one node there is no warning" is_silent

sentence="a tensor-parallel group on several nodes causes a warning"
if ! unshare --uts hostname node0 2> /dev/null; then
    echo "skip - $sentence: this user may not give a process a host name of its own (unshare --uts)"
    exit
fi
# on_nodes RANKS-A-NODE OPTIONS...: four ranks
on_nodes() {
    local per_node=$1
    shift
    # shellcheck disable=SC2016 # the ranks expand it
    OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo mpirun -n 4 unshare --uts \
        sh -c 'hostname node$((OMPI_COMM_WORLD_RANK / $0)); exec "$@"' "$per_node" "$BUILD/train" --cache "$BUILD/cache" "${small[@]}" \
        "$@" < /dev/null > "$work/out" 2>&1
}
on_nodes 1 --tp 2
check "$sentence" says "warning: tensor-parallel groups on several nodes: 2 of 2"
on_nodes 2 --tp 2
check "a tensor-parallel group within a node causes no warning" is_silent
check "the map names the node of each rank" says "rank 3: node node1, tp 1, dp 1"
