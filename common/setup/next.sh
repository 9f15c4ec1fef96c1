#!/usr/bin/env bash
# next.sh: the last words of make setup and make demo.
source "$(dirname -- "${BASH_SOURCE[0]}")/../base/say.sh"
tell 'setup: everything that the labs need is installed (make doctor shows it)
next: read labs/01-duplication-allreduce/README.md, then make watch LAB=1'
