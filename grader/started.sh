#!/usr/bin/env bash
# started.sh FILE START: has the student begun? Comments and white space do not count. A missing file was not started.
set -euo pipefail
tokens() {
    gcc -fpreprocessed -dD -E -P -x c - < "$1" 2> /dev/null | tr -d '[:space:]'
}
[ -r "$1" ] && [ "$(tokens "$1")" != "$(tokens "$2")" ]
