#!/usr/bin/env bash
# With the CUDA Toolkit: the kernels compile without a warning for each generation of GPUs that it
# supports. Without a GPU: each command that needs one ends with one error.
# shellcheck disable=SC2317 # functions are called by check
set -uo pipefail
cd "$ROOT" || exit 2
unset MAKEFLAGS MAKELEVEL MFLAGS
export BACKEND=cuda GPU_ARCH=all-major
mkdir -p "$BUILD/tests"
out=$BUILD/tests/cuda_toolkit.out

if ! command -v nvcc > /dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
    echo "skip - kernels compile for GPUs: nvcc is not installed"
    exit 0
fi

failures=0
check() { # check SENTENCE COMMAND...
    if "${@:2}"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/    | /' "$out"
        failures=1
    fi
}
builds() {
    make -j2 BUILD="$BUILD" "$@" > "$out" 2>&1
}
refuses() { # before any work: an error, its HINT and make's own error
    make BUILD="$BUILD" "$@" > "$out" 2>&1
    [ $? = 2 ] && [ "$(grep -c '^error: ' "$out")" = 1 ] && [ "$(grep -c 'HINT: ' "$out")" = 1 ] && [ "$(wc -l < "$out")" = 3 ]
}
errors_with() { # errors_with WORDS COMMAND...: one error, one HINT, status 2
    "${@:2}" > "$out" 2>&1
    [ $? = 2 ] && [ "$(grep -c '^error: ' "$out")" = 1 ] && [ "$(grep -c 'HINT: ' "$out")" = 1 ] && grep -qF "$1" "$out"
}

check "kernels compile and link for GPU_ARCH=$GPU_ARCH, warnings being errors" builds "$BUILD/train-cuda" "$BUILD/kernels-cuda" SOLUTION=1 LAB=6 runners
if echo '#include <nccl.h>' | "${CUDA:+$CUDA/bin/}nvcc" -E -x cu - > /dev/null 2>&1 || [ -e /usr/local/cuda/include/nccl.h ]; then
    check "the transport over NCCL too" builds TRANSPORT=nccl "$BUILD/train-cuda-nccl"
    old=$BUILD/tests/old_nccl
    mkdir -p "$old"
    echo 'int ncclGetVersion(int *version) { *version = 21403; return 0; }' | gcc -x c -shared -fPIC -Wl,-soname,libnccl.so.2 -o "$old/libnccl.so.2" -
    runs_with_old_nccl() { # the program, not the loader, reports the old library
        LD_LIBRARY_PATH=$old timeout 300 "$BUILD/train-cuda-nccl" > "$out" 2>&1 < /dev/null
        [ $? = 2 ] && grep -q '^error: ' "$out" && ! grep -q 'undefined symbol' "$out"
    }
    check "a program reports an NCCL that lacks functions" runs_with_old_nccl
else
    echo "skip - the transport over NCCL compiles: there is no nccl.h"
fi
without_nccl=$BUILD/tests/without_nccl
mkdir -p "$without_nccl/bin"
printf '#!/bin/sh\nexit 1\n' > "$without_nccl/bin/nvcc" && chmod +x "$without_nccl/bin/nvcc"
check "a missing NCCL is one error" refuses CUDA="$without_nccl" TRANSPORT=nccl train
check "NCCL without GPUs is one error" refuses BACKEND=cpu TRANSPORT=nccl train
check "grading over NCCL, whose calls the grader cannot observe, is one error" refuses TRANSPORT=nccl grade LAB=6
check "an unknown backend is one error" refuses BACKEND=gpu train
if [ -e /dev/nvidia0 ]; then
    echo "skip - what a machine without a GPU says: this one has a GPU"
else
    check "training without a GPU is one error" errors_with "no NVIDIA driver" make BUILD="$BUILD" train NTASKS=2 TP=2
    check "testing without a GPU is one error" errors_with "no NVIDIA driver" make BUILD="$BUILD" test
    check "grading without a GPU is one error" errors_with "no NVIDIA driver" make BUILD="$BUILD" grade SOLUTION=1 LAB=6
fi
exit "$failures"
