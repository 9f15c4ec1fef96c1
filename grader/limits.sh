# shellcheck shell=bash
# Sourced by compile-lab.sh, link-runner.sh and link-train.sh: the limits of whatever reads a lab
# (the compiler, the assembler, readelf, objcopy, the linker).
for limit in '-t 10' '-v 1500000' '-f 400000' '-c 0'; do
    # shellcheck disable=SC2086 # an option and its value
    ulimit $limit 2> /dev/null || true # it may be lower already
done

# bounded COMMAND...: runs it with a time limit. An honest lab takes a moment.
bounded() {
    timeout -k 5 "${COMPILE_SECONDS:-40}" "$@" < /dev/null
}

# over_limit STATUS FILE...: did a limit end the command with this status and these messages? Sets
# `limit`: time, memory, size, or nothing. Messages about the lab's text begin with file:line.
over_limit() {
    limit=
    if [[ $1 =~ ^(124|137|152)$ ]] || said_by_a_tool '(Killed|CPU time limit exceeded) signal terminated program|terminated with signal (9|24) ' "${@:2}"; then
        limit=time
    elif said_by_a_tool '([Oo]ut of memory|memory exhausted|[Cc]annot allocate memory)' "${@:2}"; then
        limit=memory
    elif [ "$1" = 153 ] || said_by_a_tool 'File size limit exceeded|File too large' "${@:2}"; then
        limit=size
    fi
    [ -n "$limit" ]
}
said_by_a_tool() { # PATTERN FILE...
    grep -hsvE '^[^ ]*:[0-9]+(:[0-9]+)?: ' "${@:2}" | grep -qE "$1"
}
