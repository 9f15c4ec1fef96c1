#!/usr/bin/env bash
# compile-lab.sh LAB FILE.c OUT.o 'EXPORTS': compiles a lab. Only the exports stay visible, so that
# helpers of two labs cannot collide and no function of the kit can be replaced. The code is in its
# own section, so that lines of the lab can be recognised on the stack. PMPI_ names are redirected
# to MPI_ ones, and calls that cannot be counted are refused, so all communication is recorded.
# ENCLOSE, if set, names grader/enclose.c's program: under it, the compiler reads only what a lab
# may include. On failure OUT.o is empty, and OUT.o.failed says why; its first word is "refused:" if
# the lab is valid C that the kit does not allow. Without OUT.o.failed, the failure is not the lab's:
# the disk is full.
set -euo pipefail
lab=$1 source=$2 object=$3 exports=$4
here=${0%/*}
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "$here/../common/base/say.sh"
# shellcheck source-path=SCRIPTDIR source=../common/base/disk.sh
source "$here/../common/base/disk.sh"
# shellcheck source-path=SCRIPTDIR source=limits.sh
source "$here/limits.sh"
limit=
# shellcheck source-path=SCRIPTDIR source=lab-object.sh
source "$here/lab-object.sh"

# Ends without blaming the lab if the disk is full; the next make tries again.
end_if_full() {
    local megabytes=1
    # The compiler removes an output file that it could not complete.
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
    # A slow machine may have been the reason of a limit: the next make tries again.
    [ -z "$limit" ] || { rm -f "${object%.o}.sources" && touch "$object.again"; }
    rm -f "$object".{s,raw,read,assembled,messages*}
    exit 1
}

refuse() {
    end_with "refused: $1" "$2"
}

# list_installed PROGRAM...: sets `installed` to the folders of programs that the system did not
# install.
list_installed() {
    local paths path
    installed=()
    mapfile -t paths < <(type -P -- "$@")
    [ ${#paths[@]} = 0 ] || mapfile -t paths < <(realpath -- "${paths[@]}")
    for path in "${paths[@]}"; do
        case $path in
        /usr/* | /bin/* | /nix/store/* | /gnu/store/*) ;;
        */bin/*) installed+=("${path%/*}" "${path%/bin/*}"/{lib,lib64,libexec,include,share,*-linux-*}) ;;
        *) installed+=("${path%/*}") ;;
        esac
    done
}

# list_folders: sets `folders` to those from which a lab may include files.
list_folders() {
    local flag
    folders=("$("$CC" -print-file-name=include)" /usr/include /usr/lib /usr/local/include "${source%/*}")
    for flag in $CFLAGS; do
        case $flag in -Icommon) ;; -I*) folders+=("${flag#-I}") ;; esac
    done
}

# enclosed COMMAND...: runs it. With ENCLOSE, it can read only what a lab may include, and write
# only the files of `compile` below.
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

# The assembler lists the files that it read (.include, .incbin). Its messages may quote them, and a
# lab can print its own (.print), so they are not shown.
compile() {
    local kind
    for kind in s raw read assembled; do
        : > "$object.$kind" # enclosed, a command writes only existing files
    done
    # shellcheck disable=SC2086 # flags are words
    enclosed "$CC" $CFLAGS -MD -MF "$object.read" -S "$source" -o "$object.s" 2> "$object.messages" > /dev/null &&
        enclosed as --MD "$object.assembled" "$object.s" -o "$object.raw" 2> "$object.messages.as" > /dev/null
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
    time) say 'the compiler was stopped: it ran for more than 10 seconds, but a lab normally takes a moment' ;;
    memory) say 'the compiler was stopped: it asked for more than 1.5 GB of memory' ;;
    size) say "the compiler was stopped: the lab's object file, or its messages, are larger than 400 MB" ;;
    *) [ ! -s "$object.messages.as" ] || say "the assembler rejects the lab's assembly code (asm)" ;;
    esac
}

# show_messages: prints the compiler's messages, each with the line of the lab that it is about, and a
# caret below the column. The compiler itself must quote no lines, because it would take them from any file that a #line names.
# A file name of #line and the text of a #pragma or an attribute may contain newlines, so a line
# that does not begin as the compiler's do continues the one before. Control characters and
# characters that change the direction of text become '?'.
show_messages() {
    LC_ALL=C awk -v source="$source" '
        BEGIN { strange = "[\001-\010\013-\037\177]|\302[\200-\237]|\342\200[\216\217\250-\256]|\342\201[\246-\251]|\330\234" }
        function flush() {
            if (!begun) return
            gsub(strange, "?", message)
            gsub(strange, "?", quoted)
            print message quoted
            quoted = ""
        }
        FILENAME == source { line[FNR] = $0; next }
        !(index($0, source ":") == 1 || /^[^ :]+:[0-9]+(:[0-9]+)?: / || /^[^ :]+\.[ch]: / || /^(cc1|gcc|cc|clang)[-.0-9]*: / ||
          /^In file included from / || /^ +from / || /^compilation terminated( due to -fmax-errors=[0-9]+)?\.$/ || /^(fatal error: too many errors|[0-9]+ (error|warning)s?)/) && begun {
            message = message "?" $0
            next
        }
        { flush(); message = $0; begun = 1 }
        index($0, source ":") == 1 && split(substr($0, length(source) + 2), at, ":") > 1 && at[1] in line {
            quoted = sprintf("\n%5d | ", at[1]) substr(line[at[1]], 1, 1000)
            blanks = substr(line[at[1]], 1, at[2] - 1)
            gsub("[\200-\277]", "", blanks) # the bytes after the first one of a character
            gsub("[^\t]", " ", blanks)
            if (at[2] ~ /^[0-9]+$/ && at[2] <= 1000) quoted = quoted "\n      | " blanks "^"
        }
        END { flush() }' "$source" "$object.messages"
}

# foreign_file: the first file read by the compiler or the assembler that is neither in the lab's
# folder nor a header for labs, of the system or of MPI. Neither the lab nor the compiler's messages
# may contain its lines.
foreign_file() {
    local folders=("${folders[@]}") rule words files=() paths file folder own
    for rule in "$object.read" "$object.assembled"; do
        [ -s "$rule" ] || continue
        # shellcheck disable=SC2162 # a backslash joins words and lines, as in a rule of make: a target, then files
        read -d '' -a words < "$rule" || true
        files+=("${words[@]:1}")
    done
    files=("${folders[@]}" "$object.s" common/{balise,balise_mpi,base/ids}.h "${files[@]}")
    mapfile -t paths < <(printf '%s\0' "${files[@]}" | xargs -0 realpath -m --)
    ((${#paths[@]} == ${#files[@]})) || return 1 # too many, or too long
    folders=("${paths[@]:0:${#folders[@]}}")
    paths=("${paths[@]:${#folders[@]}}")
    # Of the lab's own folder, make notices changes of files in it that are not hidden.
    own=$(realpath -m -- "${source%/*}")
    for file in "${paths[@]:4}"; do
        # The assembler names the lab without its folder.
        case $file in "${paths[0]}" | "${paths[1]}" | "${paths[2]}" | "${paths[3]}" | "$PWD/${source##*/}") continue ;; esac
        for folder in "${folders[@]}"; do
            case $file in "$own"/*/* | "$own"/.*) ;; "$folder"/*) continue 2 ;; esac
        done
        echo "$file"
        return 0
    done
    return 0
}

# denied_file: the existing file that the enclosed compiler or assembler could not read, or nothing.
denied_file() {
    local file
    file=$(sed -nE 's/.*: fatal error: (.*): Permission denied$/\1/p; s/.*: Error: file not found: (.*)$/\1/p' "$object".messages* | sed -n 1p)
    [ ! -e "$file" ] || realpath -- "$file"
}

check_files() {
    local foreign
    foreign=$(foreign_file) || too_large
    [ -n "$foreign" ] || [ "$status" = 0 ] || foreign=$(denied_file)
    [ -z "$foreign" ] || [ "$foreign" != "$(realpath -- "$source")" ] ||
        refuse "$(said 'lab %s is a link to %s, outside of its folder (%s)' "$lab" "$foreign" "$source")" \
            "$(said 'put the file itself there: cp --remove-destination %s %s' "$foreign" "$source")"
    [ -z "$foreign" ] || refuse "$(said 'lab %s reads %s, which is not a header of the kit or the system (%s)' "$lab" "${foreign#"$(pwd -P)/"}" "$source")" \
        "$(say "include only balise.h, balise_mpi.h, C standard headers and files beside the lab, not hidden and not in a folder of their own")"
}

# tail_call: a jump out of a function, which takes its frame off the stack, or a part of a function
# that stands elsewhere, in which the stack does not tell the function. The flags forbid both, but an
# attribute can ask for them. Where a jump to a computed address leads is unknown; a switch jumps
# through a table of local labels. Prints "none" if it has read all and found none.
tail_call() {
    LC_ALL=C awk '
        { gsub(/"([^"\\]|\\.)*"/, "\"\""); count = split($0, part, ";") }
        {
            for (i = 1; i <= count; i++) {
                $0 = part[i]
                while ($1 ~ /^(notrack|bnd)$/ || $1 ~ /:$/ && $1 !~ /\.cold(\.[0-9]+)?:$/) { $1 = ""; $0 = $0 }
                if ($1 ~ /^jmpq?$/ && $2 !~ /^\*?\.L|^[0-9]+[bf]$/ || $1 == "b" && $2 ~ /^[A-Za-z_]/ || $1 ~ /\.cold(\.[0-9]+)?:$/) { found = 1; exit }
            }
        }
        END { print found ? "a jump" : "none" }' "$object.s"
}

rm -f "$object".{failed,again,read,assembled,messages*}
[ -r "$source" ] || {
    other=$(find "${source%/*}" -maxdepth 1 -iname "${source##*/}*" -type f -print -quit 2> /dev/null) || true
    [ -z "$other" ] || end_with "$(said 'lab %s has no file %s' "$lab" "$source")" "$(said 'there is %s: rename it' "$other")"
    end_with "$(said 'lab %s has no file %s' "$lab" "$source")" "$(said 'make start LAB=%s creates a fresh one' "$lab")"
}
[ "$(stat -Lc %s "$source")" -le $((256 << 10)) ] || end_with "$(said 'lab %s is larger than %s KB (%s)' "$lab" 256 "$source")" "$(say 'a lab is a few lines')"
# A byte order mark, or a zero byte in the first character, which is ASCII in C.
[[ ! $(head -c 2 -- "$source" | od -An -tx1) =~ ^\ (ff\ fe|fe\ ff|00\ ..|..\ 00)$ ]] ||
    end_with "$(said 'lab %s is in UTF-16 (%s)' "$lab" "$source")" "$(say 'convert it with iconv -f utf-16 -t utf-8, or save it as UTF-8')"
list_folders
installed=()
[ -z "${ENCLOSE:-}" ] || list_installed "$CC" as
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
    # If the compiler stopped while reading, the file may not be text. Then only one of its messages is
    # kept: the one about a limit, or the lab's first error, with its line. After its last allowed error,
    # the lab's errors are kept.
    grep -q ' -fmax-errors=' "$object.messages" && most=10 || most=1
    [ -s "$object.read" ] || { { [ -z "$limit" ] && grep -m "$most" -A 2 -aE "^$source:[0-9]+(:[0-9]+)?: .*error: " "$object.messages" | grep -aE "^$source:|^ *[0-9]* \| " || tail -n 1 "$object.messages"; } > "$object.raw" && mv "$object.raw" "$object.messages"; }
    end_with "$(said 'lab %s does not compile (%s)' "$lab" "$source")" "$(say "start with the compiler's first error")" "$object.messages"
fi
check_files
jump=$(tail_call) || jump=
[ -n "$jump" ] || too_large
[ "$jump" = none ] || refuse "$(said 'lab %s jumps into another function, or to an address that it computes (%s)' "$lab" "$source")" \
    "$(say 'call functions, and leave out goto * and the attributes optimize and musttail')"
list_object
check_sections
check_names
# What is not UTF-8 is left out: a terminal may take such a byte for a control character.
[ ! -s "$object.messages" ] || head -c 100000 <(show_messages) | iconv -c -f UTF-8 -t UTF-8 >&2 || true

hide_all_but_exports
rm -f "$object".{s,raw,read,assembled,messages*}
