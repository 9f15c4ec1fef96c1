#!/usr/bin/env bash
# compile-lab.sh LAB FILE.c OUT.o 'EXPORTS': a lab's object file. Only the exports stay visible, so that helpers of two labs
# cannot collide and no word of the kit can be replaced; the code lies in a section of its own, so that a line of the lab
# can be found on the stack; PMPI_ names lead to MPI_ ones, and what cannot be counted is refused, so that every exchange
# is seen.
# On failure OUT.o is empty, and OUT.o.failed says what is wrong.
set -euo pipefail
lab=$1 source=$2 object=$3 exports=$4
here=$(dirname "$0")

give_up() {
    printf '%s\n  HINT: %s\n' "$1" "$2" > "$object.failed"
    [ $# -lt 3 ] || sed 's/^/  /' "$3" >> "$object.failed"
    : > "$object"
    rm -f "$object.raw" "$object.words"
    exit 1
}

# is_seen NAME: does the recorder count this function of MPI, or has it nothing to count?
is_seen() {
    case $1 in
    MPI_Type_* | MPI_Group_* | MPI_Op_* | MPI_Get_* | MPI_Status_* | MPI_Info_* | MPI_Error_* | MPI_Wtime | MPI_Wtick | \
        MPI_Init* | MPI_Final* | MPI_Comm_compare | MPI_Comm_set_name | MPI_Reduce_local) return 0 ;;
    esac
    grep -q "^int $1(" "$here"/runner/*.c
}

check_calls() {
    local name
    while read -r name; do
        case $name in
        MPI_* | PMPI_*)
            is_seen "${name#P}" || give_up "lab $lab calls $name, which the grader cannot count ($source)" \
                "use a word of balise.h, or one of MPI's usual collectives and messages"
            ;;
        dlopen | dlmopen | dlsym | dlvsym | syscall | fork | vfork | clone | execv* | execl* | system | popen | socket | \
            socketpair | pipe | shm_open | shmget | memfd_create | mmap | process_vm_* | ptrace | fopen | fopen64 | \
            freopen | open | open64 | openat | creat)
            give_up "lab $lab calls $name: data would be exchanged beside the recorder ($source)" \
                "ranks exchange data by the words of balise.h, or by MPI; to look at numbers, print to stderr"
            ;;
        esac
    done < <(nm -u "$object.raw" | awk '{ print $2 }')
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
check_calls
for name in $(nm -u "$object.raw" | awk '$2 ~ /^PMPI_/ { print $2 }'); do
    arguments+=("--redefine-sym=$name=${name#P}")
done
objcopy "${arguments[@]}" --rename-section .text=balise_labs "$object.raw" "$object"
rm -f "$object.raw" "$object.words"
