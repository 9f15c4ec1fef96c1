#!/usr/bin/env bash
# compile-lab.sh LAB FILE.c OUT.o 'EXPORTS': a lab's object file. Only the exports stay visible, so that helpers of two labs
# cannot collide and no word of the kit can be replaced; the code lies in a section of its own, so that a line of the lab
# can be found on the stack; PMPI_ names lead to MPI_ ones, and what cannot be counted is refused, so that every exchange
# is seen.
# On failure OUT.o is empty, and OUT.o.failed says what is wrong; its first word is "refused:" where the lab would build.
set -euo pipefail
lab=$1 source=$2 object=$3 exports=$4
here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "$here/../common/base/say.sh"
# The compiler's own files: not where TMPDIR may lead.
scratch=/tmp
[ -w "$scratch" ] || scratch=$(dirname "$object")

give_up() {
    printf '%s\n%s%s\n' "$1" "$(say '  HINT: ')" "$2" > "$object.failed"
    [ $# -lt 3 ] || sed 's/^/  /' "$3" >> "$object.failed"
    : > "$object"
    rm -f "$object.raw" "$object.words" "$object.read" "$object.assembled"
    exit 1
}

refuse() {
    give_up "refused: $1" "$2"
}

# What the compiler may take: a lab makes it work for a moment, on a file of some kilobytes. Two minutes at most, whatever it
# waits for.
compile() {
    ulimit -t 60 -v 1500000 -f 400000 -c 0
    local listing=()
    export TMPDIR=$scratch
    # gcc's assembler also tells which files it has put in (.incbin)
    case $("$CC" --version) in *"Free Software"*) listing=("-Wa,--MD,$object.assembled") ;; esac
    # shellcheck disable=SC2086 # flags are words
    exec timeout -k 5 "${COMPILE_SECONDS:-120}" "$CC" $CFLAGS -MD -MF "$object.read" "${listing[@]}" -c "$source" -o "$object.raw" < /dev/null
}

# say_limit STATUS: adds a sentence to the compiler's words where a limit has ended it.
say_limit() {
    if [ "$1" = 124 ] || [ "$1" = 137 ] || grep -qE '(Killed|CPU time limit exceeded) signal terminated program' "$object.words"; then
        say 'the compiler was stopped: it worked or waited for more than a minute, where a lab takes a moment'
    elif grep -qE 'out of memory|memory exhausted|cannot allocate memory' "$object.words"; then
        say 'the compiler was stopped: it asked for more than 1.5 GB of memory'
    elif grep -qE 'File size limit exceeded|File too large' "$object.words"; then
        say "the compiler was stopped: the lab's object is larger than 400 MB"
    fi
}

# foreign_file: the first file that the compiler has read and that is none of: a header of the kit, of the system or of MPI, the
# lab's own folder. It must not come into the lab, nor its lines into the compiler's messages.
foreign_file() {
    local allowed=("$("$CC" -print-file-name=include)" /usr/include /usr/lib /usr/local/include "$(dirname "$source")") flag file assembled
    assembled=$(realpath -m -- "$scratch")
    for flag in $CFLAGS; do
        case $flag in -I*) allowed+=("${flag#-I}") ;; esac
    done
    mapfile -t allowed < <(realpath -m -- "${allowed[@]}")
    while read -r file; do
        # the assembler names its input, and the lab without its folder
        case $file in "$assembled"/cc*.s | "$PWD/${source##*/}") continue ;; esac
        for flag in "${allowed[@]}"; do
            case $file in "$flag"/*) continue 2 ;; esac
        done
        echo "$file"
        return
    done < <(cat "$object.read" "$object.assembled" 2> /dev/null | sed 's/^[^:]*://; s/\\$//' | tr -s ' ' '\n' | sed '/^$/d' | xargs -r realpath -m --)
}

check_files() {
    local foreign
    foreign=$(foreign_file)
    [ -z "$foreign" ] || refuse "$(said 'lab %s reads %s, which is no header of the kit or of the system (%s)' "$lab" "$foreign" "$source")" \
        "$(say "include balise.h, balise_mpi.h, headers of C, and files of the lab's own folder")"
}

# undefined, defined, chosen: the symbols of other files, those that other files see, and functions that are chosen when the program
# starts (ifunc). The number of a section stands in column 7, the name in column 8.
list_symbols() {
    local symbols
    symbols=$(readelf --syms -W "$object.raw")
    undefined=$(awk '$7 == "UND" && $8 { sub(/@.*/, "", $8); print $8 }' <<< "$symbols")
    defined=" $(awk '$1 ~ /^[0-9]+:$/ && $5 != "LOCAL" && $7 != "UND" { printf "%s ", $8 }' <<< "$symbols")"
    chosen=$(awk '$4 == "IFUNC" { print $8 }' <<< "$symbols")
}

# Code that the system would run before or after the cases, and data beyond all measure.
check_sections() {
    local name bytes
    while read -r name; do
        case $name in
        .text* | .data* | .bss* | .rodata* | .tbss* | .tdata* | .comment | .note* | .eh_frame* | .debug* | .group | .rel* | .symtab* | .strtab | .shstrtab | \
            .llvm_addrsig | .llvm.call-graph-profile) ;; # the last two: what clang tells a linker
        .init_array.00099 | .fini_array.00099 | asan_* | .init_array.1) # the address sanitizer's own
            [[ $CFLAGS == *-fsanitize=* ]] || refuse "$(said 'lab %s has a constructor or a destructor: %s (%s)' "$lab" "$name" "$source")" \
                "$(say 'do what is to be done in the functions of the lab')" ;;
        *) refuse "$(said 'lab %s has a section %s: constructors, destructors and the like run outside of every case (%s)' "$lab" "$name" "$source")" \
            "$(say 'do what is to be done in the functions of the lab')" ;;
        esac
    done < <(readelf -SW "$object.raw" | sed -nE 's/^ *\[ *[0-9]+\] (\.?[^ ]+) .*/\1/p' | grep -v '^NULL$')
    [ -z "$chosen" ] || refuse "$(said 'lab %s has a function that is chosen before the program starts (ifunc) (%s)' "$lab" "$source")" \
        "$(say 'do what is to be done in the functions of the lab')"
    bytes=$(size "$object.raw" | awk 'NR == 2 { printf "%.0f", $2 + $3 }')
    [ "$bytes" -le $((256 << 20)) ] || refuse "$(said 'lab %s has %s MB of static variables, where 256 MB are allowed (%s)' "$lab" "$((bytes >> 20))" "$source")" \
        "$(say 'the sizes of a case come with its tensors: take memory when you know them')"
}

# is_seen NAME: does the recorder count this function of MPI, or has it nothing to count?
is_seen() {
    case $1 in
    MPI_Get_accumulate) return 1 ;;
    MPI_Type_* | MPI_Group_* | MPI_Op_* | MPI_Get_* | MPI_Status_* | MPI_Info_* | MPI_Error_* | MPI_Wtime | MPI_Wtick | \
        MPI_Init* | MPI_Final* | MPI_Pack | MPI_Pack_size | MPI_Unpack | MPI_Comm_compare | MPI_Comm_set_name | MPI_Comm_get_name | MPI_Comm_get_attr | MPI_Query_thread | MPI_Is_thread_main | MPI_Reduce_local | \
        MPI_Cart_coords | MPI_Cart_rank | MPI_Cart_shift | MPI_Cart_get | MPI_Cartdim_get | MPI_Dims_create | MPI_Topo_test) return 0 ;;
    esac
    grep -q "^int $1(" "$here"/runner/*.c
}

# where NAME: the file, and where this function is called the line.
where() {
    local section offset line=
    read -r section offset < <(objdump -r "$object.raw" | awk -v name="$1" '
        /^RELOCATION RECORDS FOR/ { section = substr($4, 2, length($4) - 3) }
        section ~ /^\.text/ && $3 ~ "^" name "([-+]|$)" { print section, $1; exit }') &&
        line=$(addr2line -e "$object.raw" -j "$section" "0x$offset" | sed -nE 's/.*:([0-9]+).*/\1/p')
    echo "$source${line:+:$line}"
}

# refuse_call NAME: why this function of MPI is none for a lab, and what is.
refuse_call() {
    local why hint
    case $1 in
    MPI_Win_* | MPI_Put | MPI_Get | MPI_Rput | MPI_Rget | MPI_*ccumulate | MPI_Fetch_and_op | MPI_Compare_and_swap)
        why=$(say "one rank would reach into another's memory while that makes no call, and what they exchange could not be told")
        hint=$(say "let both ranks take part: a collective, or MPI_Isend on one and MPI_Irecv on the other") ;;
    MPI_Neighbor_* | MPI_Ineighbor_* | MPI_Graph* | MPI_Dist_graph_*)
        why=$(say "who exchanges with whom would be hidden in a graph, and could not be compared between the ranks")
        hint=$(say "name the neighbours: MPI_Cart_shift tells them, MPI_Sendrecv or MPI_Alltoallv exchange") ;;
    MPI_File_* | MPI_Register_datarep)
        why=$(say "ranks would exchange data through a file, beside what is counted")
        hint=$(say "numbers come to a lab in tensors and leave it in tensors; ranks exchange them by messages and collectives") ;;
    MPI_Comm_spawn* | MPI_Comm_connect | MPI_Comm_accept | MPI_Comm_join | MPI_Comm_disconnect | MPI_Open_port | MPI_Close_port | \
        MPI_Publish_name | MPI_Unpublish_name | MPI_Lookup_name | MPI_Intercomm_*)
        why=$(say "there are no other processes than the ranks of the case")
        hint=$(say "MPI_Comm_split, MPI_Comm_create and MPI_Comm_create_group make groups of these") ;;
    MPI_*lltoallw)
        why=$(say "its types and byte offsets for each rank are not compared")
        hint=$(say "MPI_Alltoallv says the same with one type") ;;
    MPI_Cancel | MPI_Grequest_*)
        why=$(say "it would depend on the moment what was exchanged")
        hint=$(say "start only what is needed, and wait for it") ;;
    MPI_*rrhandler*)
        why=$(say "the grader catches errors itself, to tell them with their line")
        hint=$(say "check what a call is given before it") ;;
    *)
        why=$(say "the grader does not know what it sends")
        hint=$(say "use a word of balise.h, or of MPI what common/balise_mpi.h lists") ;;
    esac
    refuse "$(said 'lab %s calls %s (%s): %s' "$lab" "$1" "$(where "$2")" "$why")" "$hint"
}

check_calls() {
    local name
    while read -r name; do
        case $name in
        MPI_* | PMPI_*) is_seen "${name#P}" || refuse_call "${name#P}" "$name" ;;
        dlopen | dlmopen | dlsym | dlvsym | syscall | fork | vfork | clone | execv* | execl* | system | popen | socket | \
            socketpair | pipe | shm_open | shmget | memfd_create | mmap | process_vm_* | ptrace | fopen | fopen64 | \
            freopen | open | open64 | openat | creat)
            refuse "$(said 'lab %s calls %s (%s): data would be exchanged beside the recorder' "$lab" "$name" "$(where "$name")")" \
                "$(say 'ranks exchange data by the words of balise.h, or by MPI; to look at numbers, print to stderr')"
            ;;
        kill | killpg | sigqueue | unlink | unlinkat | remove | rename | tmpfile | mkstemp* | mkdir | rmdir)
            refuse "$(said "lab %s calls %s (%s): other processes and files are none of a lab's business" "$lab" "$name" "$(where "$name")")" \
                "$(say 'a lab computes, and talks to its group by the words of balise.h or by MPI')"
            ;;
        esac
    done <<< "$undefined"
}

rm -f "$object.failed"
[ -r "$source" ] || give_up "$(said 'lab %s has no file %s' "$lab" "$source")" "$(said 'make start LAB=%s lays a fresh one' "$lab")"
rm -f "$object.read" "$object.assembled"
(compile) 2> "$object.words" && status=0 || status=$?
if [ "$status" != 0 ]; then
    check_files
    limit=$(say_limit "$status")
    truncate -s '<1000000' "$object.words"
    [ -z "$limit" ] || printf '\n%s\n' "$limit" >> "$object.words"
    # What the compiler has not read to its end may be no text: of the words about it only one line is kept, that of a limit or of the lab.
    [ -e "$object.read" ] || { { [ -z "$limit" ] && grep -m 1 -aE "^$source:[0-9]+(:[0-9]+)?: .*error: " "$object.words" || tail -n 1 "$object.words"; } > "$object.raw" && mv "$object.raw" "$object.words"; }
    give_up "$(said 'lab %s does not compile (%s)' "$lab" "$source")" "$(say "the compiler's first error is the one to look at")" "$object.words"
fi
check_files
list_symbols
check_sections
head -c 100000 "$object.words" >&2

arguments=()
for name in $exports; do
    [[ $defined == *" $name "* ]] ||
        give_up "$(said 'lab %s does not define %s (%s)' "$lab" "$name" "$source")" "$(said 'the start file (make start LAB=%s) shows how it is declared' "$lab")"
    arguments+=("--keep-global-symbol=$name")
done
check_calls
while read -r name; do
    case $name in PMPI_*) arguments+=("--redefine-sym=$name=${name#P}") ;; esac
done <<< "$undefined"
objcopy "${arguments[@]}" --rename-section .text=balise_labs "$object.raw" "$object"
rm -f "$object.raw" "$object.words" "$object.read" "$object.assembled"
