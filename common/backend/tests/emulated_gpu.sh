#!/usr/bin/env bash
# Tests the emulated GPU on which other tests run the kernels of common/backend/cuda.
"$BUILD/tests/emulated/emulation" | grep -E '^(not )?ok'
exit "${PIPESTATUS[0]}"
