#!/usr/bin/env bash
# The GPU that other tests run the kernels of common/backend/cuda on: does it keep what it promises?
"$BUILD/tests/emulated/emulation" | grep -E '^(not )?ok'
exit "${PIPESTATUS[0]}"
