#!/usr/bin/env bash
# started.sh FILE START: has the student begun? Comments and white space do not count. A missing file was not started.
# START is the start file, or the solution that it is made from (start.awk).
set -euo pipefail
tokens() {
    gcc -fpreprocessed -dD -E -P -x c - 2> /dev/null | tr -d '[:space:]'
}
start() {
    case $1 in
        solutions/* | grader/start/*) awk -f grader/start.awk "$1" ;;
        *) cat "$1" ;;
    esac
}
[ -r "$1" ] && [ "$(tokens < "$1")" != "$(start "$2" | tokens)" ]
