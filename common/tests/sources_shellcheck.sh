#!/usr/bin/env bash
# Shellcheck finds nothing in any shell script.
set -euo pipefail
cd -- "${ROOT:?}"
sentence="shellcheck finds nothing in the shell scripts"
if ! type -P shellcheck >/dev/null; then
    echo "skip - $sentence: shellcheck is not installed"
    exit
fi
mapfile -t files < <(grep -rlIE '^#!(/usr/bin/env bash|/bin/bash|/bin/sh)' common grader data slides .ci ./*.sh 2>/dev/null | sort)
if words=$(shellcheck -x -f gcc "${files[@]}" 2>&1); then
    echo "ok - $sentence"
else
    echo "not ok - $sentence"
    echo "    ${words//$'\n'/$'\n    '}"
    exit 1
fi
