#!/usr/bin/env bash
# link-runner.sh LAB OUT OBJECTS...: links the program that runs a lab's cases. On failure OUT is
# empty, and OUT.failed says why, for the judge to report. If the disk is full, this script fails.
set -euo pipefail
lab=$1 out=$2
shift 2
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "${0%/*}/../common/base/say.sh"
# shellcheck source-path=SCRIPTDIR source=../common/base/disk.sh
source "${0%/*}/../common/base/disk.sh"
# shellcheck source-path=SCRIPTDIR source=limits.sh
source "${0%/*}/limits.sh"

# Replaces the runner by a rename, because a judge may be starting the old one.
put() {
    mv -f "$out.new" "$out"
}

leave_empty() {
    : > "$out.new"
    put
    # A slow machine may have been the reason of a limit: make links it again next time.
    [ -z "${limit:-}" ] || touch -d @0 "$out" "$out.again"
    exit 0
}

# guarded OBJECT COPY: redirects calls that would end the runner or take memory to the runner's
# guard. A reference lab takes memory as it likes; it moves out of the labs' section, so that messages
# name the student's lines.
guarded() {
    local options=() name names='new_layer exit _exit _Exit quick_exit abort'
    case $1 in
    */"$lab.o" | */student/*)
        names+=' malloc calloc realloc reallocarray aligned_alloc memalign valloc posix_memalign strdup strndup
            asprintf vasprintf __asprintf_chk __vasprintf_chk free'
        ;;
    *) options+=(--rename-section balise_labs=balise_reference) ;;
    esac
    for name in $names; do
        options+=("--redefine-sym=$name=graded_$name")
    done
    bounded objcopy "${options[@]}" "$1" "$2"
}

# keep_guarded OBJECT: makes the guarded copy of a reference lab, OBJECT.guarded, unless it is there
# and up to date. All runners that build on the lab share it.
keep_guarded() {
    local copy=$1.guarded
    [[ ! $copy -nt $1 || ! $copy -nt $0 ]] || return 0
    if ! guarded "$1" "$copy.$$"; then
        rm -f "$copy.$$"
        return 1
    fi
    mv -f "$copy.$$" "$copy"
}

# first_three: the first three lines in alphabetical order, each once.
first_three() {
    local lines
    mapfile -t lines
    [ ${#lines[@]} = 0 ] || printf '%s\n' "${lines[@]}" | sort -u | sed -n 1,3p
}

# variables: reads the symbols of an object; the names of the lab's static and file-scope variables,
# which keep their values between calls. Removes the numbers that compilers append to the names of
# static variables in functions.
variables() {
    sed -nE '/ __\S*$/d; s/^[0-9a-f]+ .{5} . (\.t?(bss|data)\S*|\*COM\*)\t[0-9a-f]+ (\.\w+ )?([^. ]*)(\.[0-9]+)?$/\4/p' | first_three
}

# writable_bytes OBJECT: the bytes of its variables. `size` counts those of a section as code that has
# only the flag T.
writable_bytes() {
    local bytes=0 size
    while read -r size; do
        bytes=$((bytes + 16#$size))
    done < <(bounded readelf -SW "$1" | awk 'sub(/^ *\[ *[1-9][0-9]*\] /, "") && $(NF - 3) ~ /[WT]/ { print $(NF - 5) }')
    echo "$bytes"
}

# labs: fields of grader/labs.mk, one line per lab: number, labs that it builds on, functions. With
# an argument, also a line "lent": the functions of other labs that this lab may call.
labs() {
    sed -nE -e ':joined' -e '/\\$/{N; s/\\\n *//; b joined' -e '}' -e "s/^LENT_${1:-none} = /lent /p" \
        -e 's/^..call add_lab,([0-9]+),[^,]*,([^,]*),[^,]*,(.*)\)$/\1,\2, \3 /p' "${0%/*}/labs.mk"
}

# foreign_calls: reads the symbols of an object; prints the functions that the lab calls although it
# does not build on their lab, as lines "NAME LAB". The linker would find many of them in the
# library, which has its own versions for training before those labs. A pair NAME_forward,
# NAME_backward makes the kit's operation NAME, too.
foreign_calls() {
    { labs "$lab" && cat; } | awk -v lab="$lab" '
        /^lent / { lent = $0 " "; next }
        /^[0-9]+,/ { split($0, fields, ","); needs[fields[1]] = " " fields[2] " " fields[1] " "; functions[++count] = $0; next }
        !/ \*UND\*/ { next }
        !ready {
            ready = 1
            for (i = 1; i <= count; i++) {
                split(functions[i], fields, ",")
                exports = split(fields[3], names, " ")
                for (j = 1; j <= exports; j++) {
                    add(names[j], fields[1])
                    if (sub(/_forward$/, "", names[j]) && index(fields[3], " " names[j] "_backward ")) add(names[j], fields[1])
                }
            }
        }
        $NF in owner && !($NF in ours) { print $NF, owner[$NF] }
        function add(name, of) {
            if (index(needs[lab], " " of " ") || index(lent, " " name " ")) ours[name]
            else if (!(name in owner)) owner[name] = of
        }' | first_three
}

# tell_foreign "NAME LAB"...: says that the lab must do without these functions.
tell_foreign() {
    local needs call
    needs=$(labs | sed -n "s/^$lab,\([^,]*\),.*/\1/p")
    for call in "$@"; do
        if [[ $needs == *" "* ]]; then
            tell 'lab %s builds only on labs %s, but calls %s, which lab %s defines' "$lab" "${needs// /, }" "${call% *}" "${call#* }"
        elif [ -n "$needs" ]; then
            tell 'lab %s builds only on lab %s, but calls %s, which lab %s defines' "$lab" "$needs" "${call% *}" "${call#* }"
        else
            tell 'lab %s builds on no other lab, but calls %s, which lab %s defines' "$lab" "${call% *}" "${call#* }"
        fi
    done
    printf '%s%s\n' "$(say '  HINT: ')" "$(say 'common/balise.h declares the functions of every lab, but a lab must do without those of labs that it does not build on')"
}

# called_by_lab: those of the names, one per line, that the lab's object file refers to. The kit's
# own object files may refer to a library that this machine lacks.
called_by_lab() {
    awk 'NR == FNR { if (/ \*UND\*/) called[$NF]; next } $0 in called' "$out.symbols" - 2> /dev/null || true
}

# compile-lab.sh has refused most causes. The others are a name that matches a pattern of
# lab-calls.txt but is not defined, a variable declared with a wrong type, and a link that exceeds a
# limit.
tell_failed() { # STATUS
    if over_limit "$1" "$out.messages"; then
        tell 'lab %s does not link: the linker was stopped, because it needed more time, memory or disk than a lab may use' "$lab"
        printf '%s%s\n' "$(say '  HINT: ')" "$(say 'a lab has a few functions and small tables')"
    elif [ -z "$undefined" ]; then
        tell 'lab %s does not link' "$lab"
        printf '%s%s\n' "$(say '  HINT: ')" "$(say "start with the linker's first error")"
        head -5 "$out.messages" | sed 's/^/  /'
    else
        tell 'lab %s calls an undefined function: %s' "$lab" "${undefined//$'\n'/ }"
        printf '%s%s\n' "$(say '  HINT: ')" "$(say 'common/balise.h declares every function of the kit that a lab may call')"
    fi
}

# is_whole: can each of the kit's parts, and every member of an archive's index, be read to its end,
# and has the linker no complaint about such a file itself?
is_whole() {
    local part problem
    for part in "${parts[@]}"; do
        case " ${copies[*]} " in
        *" $part "*) ;;
        *) problem=$(bounded nm -s "$part" 2>&1 > /dev/null) && [ -z "$problem" ] && ! grep -qF "error: $part: " "$out.messages" || return 1 ;;
        esac
    done
}

# cannot_link STATUS: says why the linker or objcopy failed, unless the disk is full, and ends.
cannot_link() {
    local full=
    # Messages about the lab name its object file, a copy, or a function that it calls.
    undefined=$(sed -n "s/.*undefined reference to [\`']\([^']*\)'.*/\1/p" "$out.messages" | called_by_lab | first_three)
    if [ -z "$undefined" ] && ! over_limit "$1" "$out.messages" && ! grep -qE "$(printf '%s|' "${copies[@]##*/}")collect2: fatal" "$out.messages" && ! is_whole; then
        tell 'error: the kit cannot be linked: a file that make has built is damaged' >&2
        printf '%s%s\n' "$(say '  HINT: ')" "$(say 'make clean, then the same command again')" >&2
        rm -f "${copies[@]}"
        exit 2
    fi
    if disk_is_full "${out%/*}" 1 || grep -qE '(No space left on device|Disk quota exceeded)$' "$out.messages"; then
        full=yes
    else
        tell_failed "$1" > "$out.failed"
    fi
    rm -f "${copies[@]}"
    [ -z "$full" ] || exit 2
    leave_empty
}

rm -f "$out".{failed,variables,again}
limit=
parts=() copies=() missing=() static_bytes=0
for object in "$@"; do
    case $object in
    */labs*/missing/*)
        missing+=("$(basename "$object" .o)")
        continue
        ;;
    esac
    if [ -e "$object.failed" ]; then
        cp "$object.failed" "$out.failed"
        leave_empty
    fi
    if [[ $object == */labs/* && $object != */"$lab.o" && $object != */student/* && -w ${object%/*} ]]; then
        keep_guarded "$object"
        parts+=("$object.guarded")
        continue
    fi
    case $object in
    */labs/* | */student/*)
        copy=$out.${object##*/}
        copies+=("$copy")
        guarded "$object" "$copy" 2> "$out.messages" || cannot_link "$?"
        if [[ $object == */"$lab.o" ]]; then
            # Not nm, which loads the linkers' plugins, and so takes ten times as long.
            copies+=("$out.symbols")
            bounded objdump -t "$object" > "$out.symbols" || true
            mapfile -t foreign < <(foreign_calls < "$out.symbols")
            if [ ${#foreign[@]} -gt 0 ]; then
                tell_foreign "${foreign[@]}" > "$out.failed"
                rm -f "${copies[@]}"
                leave_empty
            fi
            variables < "$out.symbols" > "$out.variables"
        fi
        [[ $LDFLAGS == *-fsanitize=* ]] || static_bytes=$((static_bytes + $(writable_bytes "$object"))) # sanitizers have tables
        parts+=("$copy")
        ;;
    *) parts+=("$object") ;;
    esac
done
if [ ${#missing[@]} -gt 0 ]; then
    "${0%/*}/stack.py" missing "${missing[@]}" > "$out.failed"
    leave_empty
fi
scenario=scenario_$(printf %02d "$lab")
starts=$(sed -n "s/^STARTS_$lab = /-Wl,--wrap=/p" "${0%/*}/labs.mk") # grader/runner/recorder.c
# shellcheck disable=SC2086 # flags are words
bounded "$CC" $LDFLAGS $starts -Wl,-u,protocol_stamp,-u,"$scenario" -Wl,--defsym=lab_scenario="$scenario",--defsym=lab_variables="$static_bytes" -Wl,--start-group "${parts[@]}" -Wl,--end-group -o "$out.new" $LDLIBS 2> "$out.messages" && status=0 || status=$?
[ "$status" = 0 ] || cannot_link "$status"
rm -f "$out.messages" "${copies[@]}"
put
