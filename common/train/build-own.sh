#!/usr/bin/env bash
# build-own.sh OUT OBJECTS...: compiles $PROGRAM, a C file of the user's, and links it with these
# objects. Its code is in the section of the labs, so that errors name its lines.
set -euo pipefail
out=$1
shift
# shellcheck source-path=SCRIPTDIR source=../base/say.sh
source "${0%/*}/../base/say.sh"
[ -n "$PROGRAM" ] || give_up "$(say 'make run needs a program')" "$(say 'name a C file: make run PROGRAM=common/train/pair_main.c NTASKS=2 TP=2')"
[[ -f $PROGRAM && -r $PROGRAM ]] || give_up "$(said 'the program cannot be read: %s' "$PROGRAM")" "$(say 'check the path; it begins in the folder of the kit')"
mkdir -p "${out%/*}"
trap 'rm -f "$out.o"' EXIT
# shellcheck disable=SC2086 # flags are words
"$CC" $CFLAGS -x c -c "$PROGRAM" -o "$out.o" ||
    give_up "$(said 'the program does not compile: %s' "$PROGRAM")" "$(say "start with the compiler's first error")"
objcopy --rename-section .text=balise_labs --rename-section .text.startup=balise_labs "$out.o"
"${0%/*}/../../grader/link-train.sh" "$out" "$out.o" "$@"
