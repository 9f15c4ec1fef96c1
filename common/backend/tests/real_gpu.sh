#!/usr/bin/env bash
# What the tests that need no GPU leave out.
echo "skip - kernels, exchanges, labs and training on a real GPU: make test BACKEND=cuda runs them, where there is one"
