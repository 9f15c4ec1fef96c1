#!/usr/bin/env bash
# Reports that the tests on a real GPU are skipped.
echo "skip - kernels, exchanges, labs and training on a real GPU: make test BACKEND=cuda runs them, where there is one"
