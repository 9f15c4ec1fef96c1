#!/usr/bin/env bash
# link-runner.sh LAB OUT OBJECTS...: links the program that runs a lab's cases. On failure OUT is
# empty, and OUT.failed says why, for the judge to report.
set -euo pipefail
lab=$1 out=$2
shift 2
# shellcheck source-path=SCRIPTDIR source=../common/base/say.sh
source "${0%/*}/../common/base/say.sh"

leave_empty() {
    : > "$out"
    exit 0
}

# guarded OBJECT COPY: a lab's calls that would end the runner or take all memory lead to the runner's guard. The line of a
# message is the student's: code of a reference lab is no lab's code here.
guarded() {
    local options=() name
    for name in malloc calloc realloc reallocarray aligned_alloc memalign valloc posix_memalign strdup strndup asprintf vasprintf \
        free exit _exit _Exit quick_exit abort; do
        options+=("--redefine-sym=$name=graded_$name")
    done
    case $1 in
    */"$lab.o" | */student/*) ;;
    *) options+=(--rename-section balise_labs=balise_reference) ;;
    esac
    objcopy "${options[@]}" "$1" "$2"
}

rm -f "$out.failed"
parts=() copies=()
for object in "$@"; do
    if [ -e "$object.failed" ]; then
        cp "$object.failed" "$out.failed"
        leave_empty
    fi
    case $object in
    */labs/* | */student/*)
        copy=$out.${object##*/}
        guarded "$object" "$copy"
        parts+=("$copy")
        copies+=("$copy")
        ;;
    *) parts+=("$object") ;;
    esac
done
scenario=scenario_$(printf %02d "$lab")
# shellcheck disable=SC2086 # flags are words
if ! "$CC" $LDFLAGS -Wl,-u,protocol_stamp,-u,"$scenario" -Wl,--defsym=lab_scenario="$scenario" -Wl,--start-group "${parts[@]}" -Wl,--end-group -o "$out" $LDLIBS 2> "$out.messages"; then
    missing=$(sed -n "s/.*undefined reference to [\`']\([^']*\)'.*/\1/p" "$out.messages" | sort -u | head -3 | tr '\n' ' ')
    {
        tell 'lab %s calls an undefined function: %s' "$lab" "${missing:-$(say 'see below')}"
        printf '%s%s\n' "$(say '  HINT: ')" "$(say 'common/balise.h declares every function that a lab is written in')"
        [ -n "$missing" ] || head -5 "$out.messages"
    } > "$out.failed"
    rm -f "${copies[@]}"
    leave_empty
fi
rm -f "$out.messages" "${copies[@]}"
