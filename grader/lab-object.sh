# shellcheck shell=bash
# Sourced by compile-lab.sh; uses its settings, end_with and refuse. What the object of a lab may
# hold (sections, static variables) and call.

# The MPI functions that the recorder wraps, one by one or as pairs in a macro, such as
# COLLECTIVE(Bcast, Ibcast, ...
mapfile -t recorded < <(sed -nE 's/^int (MPI_\w+)\(.*/\1/p; s/^(COLLECTIVE|SEND)\((\w+), (\w+),.*/MPI_\2\nMPI_\3/p' "$here"/runner/*.c)

# allowed_calls: the functions of MPI and of the kit's headers that a lab may call, one per line.
allowed_calls() {
    printf '%s\n' "${recorded[@]}" "${recorded[@]/#/P}"
    sed -nE 's/^[A-Za-z_][A-Za-z0-9_ ]*[ *]([a-z_0-9]+)\(.*/\1/p' common/balise{,_mpi}.h
}

# names_address_table: does the lab itself name the table of addresses, in which it would find any
# function? Where a compiler takes an address, the assembler only adds the name to the symbols.
names_address_table() {
    [ -n "$(bounded objdump -r "$object.raw" | awk '$3 ~ /^_GLOBAL_OFFSET_TABLE_/')" ]
}

# list_object: sets `sections` (and notes writable code), `bytes` and `own_bytes` to the size of
# variables and of thread-local ones, with their alignment, `debug_bytes` to that of debugging
# information, `defined` to the exports that are code (a linker may leave out other sections),
# `undefined` to the undefined symbols that a lab may not use, `strange` to a name that is not one of
# C, `shared` to a symbol that objcopy does not make local, and `chosen` to an ifunc, a function that
# is selected when the program starts. In readelf's output, the flags of a section, if any, precede
# the last three columns, after its size and that of its entries. The name of a symbol is all that
# follows its section; some processors have a column more before it.
list_object() {
    local kind name patterns='' complete=
    sections=() undefined=() defined=' ' strange='' shared='' chosen='' bytes=0 own_bytes=0 debug_bytes=0
    while read -r name; do
        [[ $name == '#'* ]] || patterns+=${patterns:+|}$name
    done < "$here/lab-calls.txt"
    [[ $CFLAGS != *-fsanitize=* ]] || patterns+='|__(asan|ubsan|sanitizer)_.*'
    while read -r kind name; do
        case $kind in
        section) sections+=("$name") ;;
        undefined) [[ $name == _GLOBAL_OFFSET_TABLE_ ]] && ! names_address_table || undefined+=("$name") ;;
        defined) defined+="$name " ;;
        strange) strange=$name ;;
        shared) shared=$name ;;
        chosen) chosen=yes ;;
        variables | own | debug)
            ((${#name} <= 10)) || name=ffffffffff # a terabyte: sums must fit 64 bits
            case $kind in
            debug) debug_bytes=$((debug_bytes + 16#$name)) ;;
            own) own_bytes=$((own_bytes + 16#$name)) ;&
            variables) bytes=$((bytes + 16#$name)) ;;
            esac
            ;;
        complete) complete=yes ;;
        esac
    done < <(allowed_calls | LC_ALL=C awk -v exports=" $exports " -v patterns="^($patterns)$" '
        FILENAME == "-" { allowed[$1]; next }
        FNR > 50000 { exit } # a lab has a hundred sections and symbols
        $0 == "complete" { print; next }
        match($0, /^ *\[ *[1-9][0-9]*\] /) {
            number = substr($0, 1, RLENGTH)
            gsub(/[^0-9]/, "", number)
            if (number + 0 > 5000) exit
            $0 = substr($0, RLENGTH + 1)
            flags = $(NF - 3)
            if ($1 ~ /^\.text/ && flags == "AX") code[number]
            if ($1 ~ /^\.eh_frame/) frames[number]
            size = NF - (flags ~ /^[0-9a-f]+$/ ? 4 : 5)
            type = $(size - 3)
            kind = flags ~ /T/ ? "own" : "variables"
            if (/^\.z?debug/ && type != "NOBITS") print "debug", $size
            if (flags ~ /[WT]/ || type == "NOBITS") print kind, $size
            if ($NF > 64) printf "%s %x\n", kind, $NF
            if ($1 ~ /^\.(init|fini)_array\.(00099|1)$/ && $size !~ /^0*8$/) sub(/\.[0-9]+$/, "", $1) # sanitizers have one function there
            if (flags ~ /X/ && (flags ~ /W/ || /^\.note\.GNU-stack/)) $1 = "writable code"
            else if ($1 !~ /_array/ && match($0, / (PREINIT|INIT|FINI)_ARRAY /)) $1 = "." tolower(substr($0, RSTART + 1, RLENGTH - 2))
            else if ($1 ~ /^\.rela?\./ && $2 ~ /^RELA?$/ || $1 ~ /^\.(symtab|strtab|shstrtab|symtab_shndx)$/ && $2 ~ /^(SYM|STR)TAB$/ && !tables[$1]++) $1 = "a table"
            else if (type !~ /^(PROGBITS|NOBITS|NOTE|X86_64_UNWIND|LLVM_.*|(INIT|FINI)_ARRAY)$/ && (type != "GROUP" || $1 != ".group")) $1 = "of type " type
            else if (flags ~ /X/ && (type !~ /^(PROG|NO)BITS$/ || NF != 10 || flags != "AX" || $1 !~ /^\.text[A-Za-z0-9_.]*$/)) $1 = "code " $1
            if (!listed[$1]++) print "section", $1
            next
        }
        $1 !~ /^[0-9]+:$/ || $4 == "SECTION" || $4 == "FILE" { next }
        $4 == "IFUNC" { print "chosen" }
        {
            of = $4 # NOTYPE: where data begins, for aarch64
            binding = $5
            sub(/^ *[0-9]+: +[0-9a-f]+ +[0-9a-fx]+ +[A-Z]+ +[A-Z]+ +[A-Z]+ +(\[[^]]*\] +)?/, "")
            place = $1
            name = substr($0, length(place) + 2)
        }
        place in frames && of != "NOTYPE" { print "section", "of type .eh_frame" } # it could describe the frames of any function
        name == "" { next }
        name ~ /[^A-Za-z0-9_.$\200-\377]/ { if (!strangers++) print "strange", name; next }
        place !~ /^(UND|ABS|[0-9]+)$/ || binding !~ /^(LOCAL|GLOBAL|WEAK)$/ { if (!sharers++) print "shared", name; next }
        place == "UND" {
            fortified = name ~ /^__.*_chk$/ && substr(name, 3, length(name) - 6) ~ patterns
            if (!(name in allowed) && name !~ patterns && !fortified && foreign++ < 3) print "undefined", name
            next
        }
        binding != "LOCAL" && place in code && index(exports, " " name " ") { print "defined", name }' - <(bounded readelf -SW --syms "$object.raw" 2> /dev/null && echo complete))
    [ -n "$complete" ] || too_large
}

too_large() {
    limit=time
    end_with "$(said "lab %s has an object file that cannot be examined, or not in time (%s)" "$lab" "$source")" \
        "$(say 'a lab has a few functions and small tables')"
}

# Refuses code that would run before or after the cases, and excessive data.
check_sections() {
    local name
    for name in "${sections[@]}"; do
        case $name in
        .text* | .data* | .bss* | .rodata* | .tbss* | .tdata* | .comment | .note* | .eh_frame* | .debug* | .group | "a table" | \
            .llvm_addrsig | .llvm.call-graph-profile) ;; # the last two: what clang tells a linker
        .init_array.00099 | .fini_array.00099 | asan_* | .init_array.1 | .fini_array.1) # the address sanitizer's own
            [[ $CFLAGS == *-fsanitize=* ]] || refuse "$(said 'lab %s has a constructor or a destructor: %s (%s)' "$lab" "$name" "$source")" \
                "$(say 'do the work in the functions of the lab')" ;;
        "code "*) refuse "$(said 'lab %s has code in a section %s (%s)' "$lab" "${name#code }" "$source")" \
            "$(say 'leave the code of functions in .text, where the compiler puts it')" ;;
        "of type "*) refuse "$(said 'lab %s has a section of type %s (%s)' "$lab" "${name#of type }" "$source")" \
            "$(say 'leave tables, and all that is neither code nor data, to the compiler')" ;;
        "writable code") refuse "$(said 'lab %s has code on its stack or in its data (%s): taking the address of a nested function causes this' "$lab" "$source")" \
            "$(say 'write the nested function beside the others, as a static function')" ;;
        *) refuse "$(said 'lab %s has a section %s: constructors, destructors and the like run outside of every case (%s)' "$lab" "$name" "$source")" \
            "$(say 'do the work in the functions of the lab')" ;;
        esac
    done
    [ -z "$chosen" ] || refuse "$(said 'lab %s has a function that is chosen before the program starts (ifunc) (%s)' "$lab" "$source")" \
        "$(say 'do the work in the functions of the lab')"
    [ "$debug_bytes" -le $((1 << 20)) ] || refuse "$(said 'lab %s has %s KB of debugging information, where 1024 KB are allowed (%s)' "$lab" "$(((debug_bytes - 1 >> 10) + 1))" "$source")" \
        "$(say 'leave it to the compiler: assembler statements may not write it')"
    [ "$own_bytes" -le $((1 << 20)) ] || refuse "$(said 'lab %s has %s KB of thread-local variables, where 1024 KB are allowed (%s)' "$lab" "$(((own_bytes - 1 >> 10) + 1))" "$source")" \
        "$(say 'declare them without _Thread_local: a lab has one thread')"
    [ "$bytes" -le $((256 << 20)) ] || refuse "$(said 'lab %s has %s MB of static variables, where 256 MB are allowed (%s)' "$lab" "$(((bytes - 1 >> 20) + 1))" "$source")" \
        "$(say 'the sizes of a case come with its tensors: allocate memory once you know them')"
}

# Refuses names that objcopy would not recognise in the guard of a call, or could not hide.
check_names() {
    strange=${strange:0:200} shared=${shared:0:200}
    [ -z "$strange" ] || refuse "$(said 'lab %s uses the name %s (%s), which C does not allow' "$lab" "$strange" "$(where "$strange")")" \
        "$(say "call a function by its name in the header, without a version (@) or an assembler name")"
    [ -z "$shared" ] || refuse "$(said 'lab %s defines %s, which could replace a name of the grader or of a library (%s)' "$lab" "$shared" "$(where "$shared")")" \
        "$(say 'declare it static')"
}

# where NAME: the file, and the line where this function is called, or else where its name occurs.
where() {
    local section offset line=
    read -r section offset < <(bounded objdump -r "$object.raw" | awk -v name="$1" '
        /^RELOCATION RECORDS FOR/ { section = substr($4, 2, length($4) - 3) }
        section ~ /^\.text/ && sub(/[-+]0x[0-9a-f]+$|$/, "", $3) && $3 == name { print section, $1; exit }') &&
        line=$(bounded addr2line -e "$object.raw" -j "$section" "0x$offset" | sed -nE 's/.*:([0-9]+).*/\1/p')
    [ -n "$line" ] || line=$(grep -nwFm 1 -- "$1" "$source" | cut -d: -f1) || true
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
        say "reduce with MPI_SUM, MPI_MAX and the like, or gather the parts and combine them in C" ;;
    MPI_Comm_split_type | MPI_Comm_*dup* | MPI_Comm_spawn* | MPI_Comm_connect | MPI_Comm_accept | MPI_Intercomm_* | MPI_Group_*)
        say "MPI_Comm_split and MPI_Comm_create_group make groups of the existing ranks" ;;
    MPI_Alloc_mem | MPI_Free_mem)
        say "use malloc and free" ;;
    *)
        say "use a function of balise.h, or one of MPI that common/balise_mpi.h lists" ;;
    esac
}

# is_in_c_library NAME: does a program that calls only this function link?
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
        refuse "$(said 'lab %s calls %s (%s): a lab may not call this MPI function' "$lab" "$function" "$place")" "$(instead_of "$function")"
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
    end_with "$(said 'lab %s calls an undefined function: %s' "$lab" "$name ($place)")" "$(say 'common/balise.h declares every function of the kit that a lab may call')"
}

# Writes the object in which the exports alone are visible.
hide_all_but_exports() {
    local name arguments=()
    for name in $exports; do
        [[ $defined == *" $name "* ]] ||
            end_with "$(said 'lab %s does not define %s' "$lab" "$name")"$'\n'"$(said '  at %s' "$source")" "$(said 'the start file (make start LAB=%s) shows how it is declared' "$lab")"
        arguments+=("--keep-global-symbol=$name")
    done
    for name in "${undefined[@]}"; do
        check_call "$name"
    done
    for name in "${recorded[@]}"; do
        echo "P$name $name" # redirects PMPI_ calls to the recorder
    done > "$object.s"
    for name in "${sections[@]}"; do # also those of functions that are cold, or have a section of their own
        [[ ! $name =~ ^\.text[A-Za-z0-9_.]*$ ]] || arguments+=(--rename-section "$name=balise_labs")
    done
    # What the sanitizers start with the program starts in a case (runner/main.c), and never ends. With
    # flags, a renamed section gets a type of its own: linkers would start what is of the old type.
    arguments+=(--rename-section=.init_array.{00099,1}=lab_starts,alloc,load,readonly,data,contents --remove-section '.fini_array*')
    printf '%s\n' "${arguments[@]}" > "$object.messages" # they may be too many for a command
    bounded objcopy @"$object.messages" --redefine-syms="$object.s" "$object.raw" "$object" 2> /dev/null || too_large
}
