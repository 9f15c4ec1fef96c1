#!/usr/bin/env bash
# compile-lab.sh LAB FILE.c OUT.o 'EXPORTS': a lab's object file. Only the exports stay visible, so that helpers of two labs
# cannot collide and no word of the kit can be replaced; the code lies in a section of its own, so that a line of the lab
# can be found on the stack; PMPI_ names lead to MPI_ ones, so that every exchange is seen.
# On failure OUT.o is empty, and OUT.o.failed says what is wrong.
set -euo pipefail
lab=$1 source=$2 object=$3 exports=$4

give_up() {
    printf '%s\n  HINT: %s\n' "$1" "$2" > "$object.failed"
    [ $# -lt 3 ] || sed 's/^/  /' "$3" >> "$object.failed"
    : > "$object"
    exit 1
}

rm -f "$object.failed"
[ -r "$source" ] || give_up "lab $lab has no file $source" "make start LAB=$lab lays a fresh one"
# shellcheck disable=SC2086 # flags are words
"$CC" $CFLAGS -c "$source" -o "$object.raw" 2> "$object.words" ||
    give_up "lab $lab does not compile ($source)" "the compiler's first error is the one to look at" "$object.words"
cat "$object.words" >&2

defined=" $(nm -g --defined-only "$object.raw" | awk '{ printf "%s ", $3 }')"
arguments=()
for name in $exports; do
    [[ $defined == *" $name "* ]] ||
        give_up "lab $lab does not define $name ($source)" "the start file (make start LAB=$lab) shows how it is declared"
    arguments+=("--keep-global-symbol=$name")
done
for name in $(nm -u "$object.raw" | awk '$2 ~ /^PMPI_/ { print $2 }'); do
    arguments+=("--redefine-sym=$name=${name#P}")
done
objcopy "${arguments[@]}" --rename-section .text=balise_labs "$object.raw" "$object"
rm -f "$object.raw" "$object.words"
