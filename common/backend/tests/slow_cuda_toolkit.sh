#!/usr/bin/env bash
# The same for every GPU that the toolkit knows, in a build of its own.
BUILD=$BUILD/every-gpu GPU_ARCH=all exec "$(dirname "$0")/cuda_toolkit.sh"
