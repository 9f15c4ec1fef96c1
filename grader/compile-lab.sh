#!/usr/bin/env bash
# compile-lab.sh LAB FILE.c OUT.o 'EXPORTS': compiles a lab. Only the exports stay visible, so that
# helpers of two labs cannot collide and no function of the kit can be replaced. The code is in its
# own section, so that lines of the lab can be recognised on the stack. PMPI_ names are redirected
# to MPI_ ones, and what cannot be counted is refused, so that all communication is recorded.
# ENCLOSE, if set, names grader/enclose.c's program: in it, the compiler reads only what a lab may
# include. On failure OUT.o is empty, and OUT.o.failed says why; its first word is "refused:" if the
# lab would compile. Without OUT.o.failed, the failure is not the lab's: the disk is full.
set -euo pipefail
lab=$1 source=$2 object=$3 exports=$4
here=${0%/*}
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "$here/../common/base/say.sh"
# shellcheck source-path=SCRIPTDIR source=../common/base/disk.sh
source "$here/../common/base/disk.sh"
# shellcheck source-path=SCRIPTDIR source=limits.sh
source "$here/limits.sh"

# The lab is not to blame, and the next make tries again.
end_if_full() {
    local megabytes=1
    # The compiler removes what it could not write to its end.
    ! grep -qsE "(No space left on device|Disk quota exceeded)'?$" "$object".messages* || megabytes=64
    ! disk_is_full "${object%/*}" "$megabytes" || end_without_reason
}
end_without_reason() {
    rm -f "$object" "$object".{s,raw,read,assembled,messages*,failed}
    exit 2
}
end_with() {
    end_if_full
    {
        printf '%s\n%s%s\n' "$1" "$(say '  HINT: ')" "$2" &&
            { [ $# -lt 3 ] || sed 's/^/  /' "$3"; }
    } > "$object.failed" || end_without_reason
    : > "$object"
    rm -f "$object".{s,raw,read,assembled,messages*}
    exit 1
}

refuse() {
    end_with "refused: $1" "$2"
}

# installed PROGRAM: the folders of a program that the system did not install.
installed() {
    local path
    path=$(type -P -- "$1") && path=$(realpath -- "$path") || return 0
    case $path in
    /usr/* | /bin/* | /nix/store/* | /gnu/store/*) ;;
    */bin/*) printf '%s\n' "${path%/*}" "${path%/bin/*}"/{lib,lib64,libexec,include,share,*-linux-*} ;;
    *) echo "${path%/*}" ;;
    esac
}

# list_folders: sets `folders` to those from which a lab may include files.
list_folders() {
    local flag
    folders=("$("$CC" -print-file-name=include)" /usr/include /usr/lib /usr/local/include "${source%/*}")
    for flag in $CFLAGS; do
        case $flag in -Icommon) ;; -I*) folders+=("${flag#-I}") ;; esac
    done
}

# enclosed COMMAND...: runs it; it can read only what a lab may include, and write only these files.
enclosed() {
    local libraries=()
    if [ -z "${ENCLOSE:-}" ]; then
        bounded "$@"
        return
    fi
    IFS=: read -ra libraries <<< "${LD_LIBRARY_PATH:-}"
    bounded "$ENCLOSE" --read "${folders[@]}" "${installed[@]}" "${libraries[@]}" "$source" common/{balise,balise_mpi,base/ids}.h \
        --write "$object".{s,raw,read,assembled} -- "$@"
}

# The assembler lists the files that it read (.include, .incbin). Its messages may quote them, so
# they are not shown.
compile() {
    tee "$object".{s,raw,read,assembled} < /dev/null # whoever may write only existing files needs them
    # shellcheck disable=SC2086 # flags are words
    enclosed "$CC" $CFLAGS -MD -MF "$object.read" -S "$source" -o "$object.s" 2> "$object.messages" &&
        enclosed as --MD "$object.assembled" "$object.s" -o "$object.raw" 2> "$object.messages.as"
}

# Does the compiler fail in the enclosure even without a lab?
is_unfit() {
    local status=0
    [ -n "${ENCLOSE:-}" ] || return
    : > "$object.raw"
    enclosed "$CC" -x c -S /dev/null -o "$object.raw" 2> /dev/null || status=$?
    [ "$status" != 0 ]
}

# say_limit STATUS: adds a sentence to the compiler's messages if a limit ended it.
say_limit() {
    over_limit "$1" "$object".messages* || true
    case $limit in
    time) say 'the compiler was stopped: it ran for more than 20 seconds, where a lab takes a moment' ;;
    memory) say 'the compiler was stopped: it asked for more than 1.5 GB of memory' ;;
    size) say "the compiler was stopped: the lab's object is larger than 400 MB" ;;
    *) [ ! -s "$object.messages.as" ] || say 'the assembler does not understand what the lab hands it (asm)' ;;
    esac
}

# show_messages: prints the compiler's messages, each with the line of the lab that it is about. The
# compiler itself must quote no lines, because it would take them from any file that a #line names.
show_messages() {
    awk -v source="$source" '
        FILENAME == source { line[FNR] = $0; next }
        { print }
        index($0, source ":") == 1 && split(substr($0, length(source) + 2), at, ":") > 1 && at[1] in line { printf "%5d | %s\n", at[1], line[at[1]] }
        ' "$source" "$object.messages"
}

# foreign_file: the first file read by the compiler or the assembler that is neither in the lab's
# folder nor a header for labs, of the system or of MPI. Neither the lab nor the compiler's messages
# may contain its lines.
foreign_file() {
    local folders=("${folders[@]}") rule words files=() paths file folder
    for rule in "$object.read" "$object.assembled"; do
        [ -s "$rule" ] || continue
        # shellcheck disable=SC2162 # a backslash joins words and lines, as in a rule of make: a target, then files
        read -d '' -a words < "$rule" || true
        files+=("${words[@]:1}")
    done
    mapfile -t paths < <(realpath -m -- "${folders[@]}" "$object.s" common/{balise,balise_mpi,base/ids}.h "${files[@]}")
    folders=("${paths[@]:0:${#folders[@]}}")
    paths=("${paths[@]:${#folders[@]}}")
    for file in "${paths[@]:4}"; do
        # The assembler names the lab without its folder.
        case $file in "${paths[0]}" | "${paths[1]}" | "${paths[2]}" | "${paths[3]}" | "$PWD/${source##*/}") continue ;; esac
        for folder in "${folders[@]}"; do
            case $file in "$folder"/*) continue 2 ;; esac
        done
        echo "$file"
        return
    done
}

# denied_file: the file that the enclosed compiler or assembler could not read, if it is there.
denied_file() {
    local file
    file=$(sed -nE 's/.*: fatal error: (.*): Permission denied$/\1/p; s/.*: Error: file not found: (.*)$/\1/p' "$object".messages* | head -1)
    [ ! -e "$file" ] || realpath -- "$file"
}

check_files() {
    local foreign
    foreign=$(foreign_file)
    [ -n "$foreign" ] || [ "$status" = 0 ] || foreign=$(denied_file)
    [ -z "$foreign" ] || refuse "$(said 'lab %s reads %s, which is not a header of the kit or the system (%s)' "$lab" "$foreign" "$source")" \
        "$(say "include only balise.h, balise_mpi.h, C standard headers and files from the lab's own folder")"
}

# recorded_calls: the MPI functions that the recorder wraps, one by one or as pairs in a macro, such
# as COLLECTIVE(Bcast, Ibcast, ...
recorded_calls() {
    sed -nE 's/^int (MPI_\w+)\(.*/\1/p; s/^(COLLECTIVE|SEND)\((\w+), (\w+),.*/MPI_\2\nMPI_\3/p' "$here"/runner/*.c
}

# allowed_calls: the functions of MPI and of the kit's headers that a lab may call, one per line.
allowed_calls() {
    recorded_calls | sed 'p; s/^/P/'
    sed -nE 's/^[A-Za-z_][A-Za-z0-9_ ]*[ *]([a-z_0-9]+)\(.*/\1/p' common/balise{,_mpi}.h
}

# list_object: sets `sections` (and notes writable code), `bytes` to the size of variables, `defined`
# to the defined exports, `undefined` to the undefined symbols that a lab may not use, and `chosen`
# to an ifunc, a function that is selected when the program starts. In readelf's output, column 7 of
# a symbol is the number of its section and column 8 its name; the flags of a section, if any,
# precede the last three columns, after its size and that of its entries.
list_object() {
    local kind name patterns complete=
    sections=() undefined=() defined=' ' chosen='' bytes=0
    patterns=$(grep -v '^#' "$here/lab-calls.txt" | paste -sd '|')
    [[ $CFLAGS != *-fsanitize=* ]] || patterns+='|__(asan|ubsan|sanitizer)_.*'
    while read -r kind name; do
        case $kind in
        section) sections+=("$name") ;;
        undefined) undefined+=("$name") ;;
        defined) defined+="$name " ;;
        chosen) chosen=yes ;;
        variables)
            ((${#name} <= 10)) || name=ffffffffff # a terabyte: sums must fit 64 bits
            bytes=$((bytes + 16#$name))
            ;;
        complete) complete=yes ;;
        esac
    done < <(allowed_calls | awk -v exports=" $exports " -v patterns="^($patterns)$" '
        FILENAME == "-" { allowed[$1]; next }
        $0 == "complete" { print; next }
        match($0, /^ *\[ *[1-9][0-9]*\] /) {
            $0 = substr($0, RLENGTH + 1)
            flags = $(NF - 3)
            size = NF - (flags ~ /^[0-9a-f]+$/ ? 4 : 5)
            if (flags ~ /W/ || $(size - 3) == "NOBITS") print "variables", $size
            if (flags ~ /X/ && (flags ~ /W/ || /^\.note\.GNU-stack/)) $1 = "writable code"
            else if ($1 !~ /_array/ && match($0, / (PREINIT|INIT|FINI)_ARRAY /)) $1 = "." tolower(substr($0, RSTART + 1, RLENGTH - 2))
            print "section", $1
            next
        }
        $1 !~ /^[0-9]+:$/ { next }
        ($7 == "UND" || $7 == "COM") && $8 { sub(/@.*/, "", $8); if (!($8 in allowed) && $8 !~ patterns && foreign++ < 3) print "undefined", $8 }
        $7 != "UND" && $5 != "LOCAL" && index(exports, " " $8 " ") { print "defined", $8 }
        $4 == "IFUNC" { print "chosen" }' - <(bounded readelf -SW --syms "$object.raw" && echo complete))
    [ -n "$complete" ] || too_large
}

too_large() {
    end_with "$(said "lab %s has an object that takes too long to examine (%s)" "$lab" "$source")" \
        "$(say 'a lab has a few functions and small tables')"
}

# Refuses code that would run before or after the cases, and excessive data.
check_sections() {
    local name
    for name in "${sections[@]}"; do
        case $name in
        .text* | .data* | .bss* | .rodata* | .tbss* | .tdata* | .comment | .note* | .eh_frame* | .debug* | .group | .rel* | .symtab* | .strtab | .shstrtab | \
            .llvm_addrsig | .llvm.call-graph-profile) ;; # the last two: what clang tells a linker
        .init_array.00099 | .fini_array.00099 | asan_* | .init_array.1) # the address sanitizer's own
            [[ $CFLAGS == *-fsanitize=* ]] || refuse "$(said 'lab %s has a constructor or a destructor: %s (%s)' "$lab" "$name" "$source")" \
                "$(say 'do the work in the functions of the lab')" ;;
        "writable code") refuse "$(said 'lab %s has code on its stack or in its data (%s): taking the address of a nested function does that' "$lab" "$source")" \
            "$(say 'write the nested function beside the others, as a static function')" ;;
        *) refuse "$(said 'lab %s has a section %s: constructors, destructors and the like run outside of every case (%s)' "$lab" "$name" "$source")" \
            "$(say 'do the work in the functions of the lab')" ;;
        esac
    done
    [ -z "$chosen" ] || refuse "$(said 'lab %s has a function that is chosen before the program starts (ifunc) (%s)' "$lab" "$source")" \
        "$(say 'do the work in the functions of the lab')"
    [ "$bytes" -le $((256 << 20)) ] || refuse "$(said 'lab %s has %s MB of static variables, where 256 MB are allowed (%s)' "$lab" "$((bytes >> 20))" "$source")" \
        "$(say 'the sizes of a case come with its tensors: allocate memory once you know them')"
}

# where NAME: the file, and the line where this function is called, or else where its name occurs.
where() {
    local section offset line=
    read -r section offset < <(bounded objdump -r "$object.raw" | awk -v name="$1" '
        /^RELOCATION RECORDS FOR/ { section = substr($4, 2, length($4) - 3) }
        section ~ /^\.text/ && sub(/[-+]0x[0-9a-f]+$|$/, "", $3) && $3 == name { print section, $1; exit }') &&
        line=$(bounded addr2line -e "$object.raw" -j "$section" "0x$offset" | sed -nE 's/.*:([0-9]+).*/\1/p')
    [ -n "$line" ] || line=$(grep -nwm 1 -- "$1" "$source" | cut -d: -f1) || true
    echo "$source${line:+:$line}"
}

# instead_of NAME: what a lab should call instead of this MPI function.
instead_of() {
    case $1 in
    MPI*_init | MPI_Start*)
        say "start each message and each collective anew: MPI_Isend, MPI_Irecv, MPI_Iallreduce and the like" ;;
    MPI_Bsend | MPI_Ibsend | MPI_Buffer_*)
        say "MPI_Isend returns at once too; its buffer may be reused only after MPI_Wait" ;;
    MPI_Mprobe | MPI_Improbe | MPI_Mrecv | MPI_Imrecv)
        say "MPI_Probe says what has arrived, and MPI_Recv receives it" ;;
    MPI_Request_free | MPI_Cancel | MPI_Grequest_*)
        say "start only what is needed, and wait for it" ;;
    MPI_Cart* | MPI_Dims_create | MPI_Topo_test | MPI_Graph* | MPI_Dist_graph_* | MPI_Neighbor_* | MPI_Ineighbor_*)
        say "compute the neighbours from the rank; MPI_Comm_split makes rows and columns, MPI_Sendrecv exchanges" ;;
    MPI_Win_* | MPI_Put | MPI_Get | MPI_Rput | MPI_Rget | MPI_*ccumulate | MPI_Fetch_and_op | MPI_Compare_and_swap)
        say "let both ranks take part: a collective, or MPI_Isend on one and MPI_Irecv on the other" ;;
    MPI_File_*)
        say "exchange numbers with messages and collectives: the grader does not count files" ;;
    MPI_Type_* | MPI_Pack* | MPI_Unpack* | MPI_*lltoallw)
        say "copy the numbers into one contiguous buffer, and send them as a basic datatype such as MPI_FLOAT" ;;
    MPI_Op_* | MPI_Reduce_local)
        say "reduce by MPI_SUM, MPI_MAX and the like, or gather the parts and combine them in C" ;;
    MPI_Comm_split_type | MPI_Comm_*dup* | MPI_Comm_spawn* | MPI_Comm_connect | MPI_Comm_accept | MPI_Intercomm_* | MPI_Group_*)
        say "MPI_Comm_split and MPI_Comm_create_group make groups of the existing ranks" ;;
    MPI_Alloc_mem | MPI_Free_mem)
        say "use malloc and free" ;;
    *)
        say "use a function of balise.h, or one of MPI that common/balise_mpi.h lists" ;;
    esac
}

# is_in_c_library NAME
is_in_c_library() {
    "$CC" -x c -w -o "$object.s" - -lm <<< "char $1(); int main(void) { return $1(); }" 2> /dev/null
}

# check_call NAME: refuses the lab for calling this function, and says what to call instead.
check_call() {
    local name=${1:0:200} function place
    place=$(where "$name")
    case $name in
    *MPI_* | *MPIX_* | *mpi_* | opal_* | orte_* | mca_* | pmix_* | PMIx_*)
        function=${name/#PMPI/MPI}
        refuse "$(said 'lab %s calls %s (%s): a lab may not call this function of MPI' "$lab" "$function" "$place")" "$(instead_of "$function")"
        ;;
    dlopen | dlmopen | dlsym | dlvsym | syscall | fork | vfork | clone | execv* | execl* | system | popen | socket | \
        socketpair | pipe | shm_open | shmget | memfd_create | mmap | process_vm_* | ptrace | fopen | fopen64 | \
        freopen | open | open64 | openat | creat)
        refuse "$(said 'lab %s calls %s (%s): data exchanged this way would not be recorded' "$lab" "$name" "$place")" \
            "$(say 'ranks exchange data through balise.h or MPI; to look at numbers, print to stderr')"
        ;;
    kill | killpg | sigqueue | unlink | unlinkat | remove | rename | tmpfile | mkstemp* | mkdir | rmdir)
        refuse "$(said "lab %s calls %s (%s): a lab must not touch other processes or files" "$lab" "$name" "$place")" \
            "$(say 'a lab computes, and communicates with its group through balise.h or MPI')"
        ;;
    esac
    ! is_in_c_library "$name" ||
        refuse "$(said 'lab %s calls %s (%s): a lab may not call this function' "$lab" "$name" "$place")" \
            "$(say 'a lab may call functions of balise.h and balise_mpi.h, and those of math.h, string.h, stdlib.h and stdio.h that compute or print')"
    end_with "$(said 'lab %s calls an undefined function: %s' "$lab" "$name ($place)")" "$(say 'common/balise.h declares every function that a lab is written in')"
}

rm -f "$object".{failed,read,assembled,messages*}
[ -r "$source" ] || end_with "$(said 'lab %s has no file %s' "$lab" "$source")" "$(said 'make start LAB=%s creates a fresh one' "$lab")"
list_folders
installed=()
[ -z "${ENCLOSE:-}" ] || mapfile -t installed < <(installed "$CC" && installed as)
(compile) && status=0 || status=$?
if [ "$status" != 0 ] && is_unfit; then
    ENCLOSE=
    (compile) && status=0 || status=$?
fi
if [ "$status" != 0 ]; then
    check_files
    limit=$(say_limit "$status")
    truncate -s '<1000000' "$object.messages"
    { show_messages && [ -z "$limit" ] || printf '\n%s\n' "$limit"; } > "$object.s" && mv "$object.s" "$object.messages"
    # A file that the compiler has not read to its end may be no text: of the messages about it,
    # only one line is kept, about a limit or about the lab.
    [ -s "$object.read" ] || { { [ -z "$limit" ] && grep -m 1 -aE "^$source:[0-9]+(:[0-9]+)?: .*error: " "$object.messages" || tail -n 1 "$object.messages"; } > "$object.raw" && mv "$object.raw" "$object.messages"; }
    end_with "$(said 'lab %s does not compile (%s)' "$lab" "$source")" "$(say "start with the compiler's first error")" "$object.messages"
fi
check_files
list_object
check_sections
[ ! -s "$object.messages" ] || head -c 100000 <(show_messages) >&2

arguments=()
for name in $exports; do
    [[ $defined == *" $name "* ]] ||
        end_with "$(said 'lab %s does not define %s (%s)' "$lab" "$name" "$source")" "$(said 'the start file (make start LAB=%s) shows how it is declared' "$lab")"
    arguments+=("--keep-global-symbol=$name")
done
for name in "${undefined[@]}"; do
    check_call "$name"
done
recorded_calls | sed 's/.*/P& &/' > "$object.s" # redirects PMPI_ calls to the recorder
bounded objcopy "${arguments[@]}" --redefine-syms="$object.s" --rename-section .text=balise_labs "$object.raw" "$object" || too_large
rm -f "$object".{s,raw,read,assembled,messages*}
