#!/usr/bin/env bash
# Tests that need a real GPU.
echo "skip - kernels, exchanges, labs and training on a real GPU: make test BACKEND=cuda runs them, where there is one"
