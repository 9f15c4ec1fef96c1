#!/usr/bin/env bash
# tell.sh stop|error|line SENTENCE HINT ARGUMENTS...: what a makefile has to say, in the reader's language: for $(error), in one line; as an error,
# on stderr and with status 2; as a line. There may be no hint. The arguments are those of the sentence, and then those of the hint.
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/say.sh"
# make speaks before it makes anything
if [ ! -d "$TEXTDOMAINDIR" ]; then
    for file in "${BASH_SOURCE[0]%/*}"/*.po; do
        folder=$TEXTDOMAINDIR/$(basename "$file" .po)/LC_MESSAGES
        if mkdir -p "$folder"; then msgfmt -o "$folder/$TEXTDOMAIN.mo" "$file" || break; fi
    done 2> /dev/null
fi
as=$1 sentence=$(say "$2") hint=${3:+$(say "$3")}
shift 3
before='' between=${hint:+$'\n'$(say '  HINT: ')} end=$'\n'
case $as in
stop) between=${hint:+. $(say 'HINT: ')} end='' ;;
error)
    before=$(say 'error: ')
    exec >&2
    ;;
esac
# shellcheck disable=SC2059 # sentence and hint are formats
printf "$before$sentence$between$hint$end" "$@"
[ "$as" != error ] || exit 2
