# shellcheck shell=bash
# Reads the list `packages`, and finds out which packages this machine has. Sourced by setup.sh and
# doctor.sh.

setup_folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

# read_packages fills these arrays, one entry per requested line of `packages`, because a Bash
# function cannot return an array.
group=() package=() probe=() purpose=() cluster=()
declare -A optional # package -> 1
declare -A found    # single probe -> 1

# read_packages GROUP...: fills the arrays with the lines of these groups. demo is core without what
# make demo leaves to make setup.
read_packages() {
    local wanted=" $* " line_group line_package line_probe rest
    while read -r line_group line_package line_probe rest; do
        [[ -n $line_group && $line_group != '#'* ]] || continue
        [[ $wanted == *" ${line_group%%\?*} "* || ($wanted == *' demo '* && $line_group == core?(\?)) ]] || continue
        group+=("${line_group%%\?*}")
        package+=("$line_package")
        probe+=("$line_probe")
        purpose+=("${rest%%  (*}")
        rest=${rest#*  (}
        cluster+=("${rest%)}")
        if [[ $line_group == *\? ]]; then optional[$line_package]=1; fi
    done <"$setup_folder/packages"
}

# program HEADER: prints a program that includes it.
program() {
    cat <<END
#include <$1>
int main(void) { return 0; }
END
}

# builds COMPILER FLAG...: does the program on standard input compile and link?
builds() {
    "$@" -DPCRE2_CODE_UNIT_WIDTH=8 -o /dev/null
}

# links LIBRARY HEADER [NAME]: can a program include the header and use the library, in C or in C++?
# The flags are the Makefile's: those of pkg-config if it is asked for NAME and knows it.
links() {
    local flags='' language
    [[ -z ${3:-} ]] || flags=$(pkg-config --cflags --libs "$3") || true
    [[ $flags == *-l* ]] || flags+=" -l$1"
    for language in c:gcc c++:g++; do
        # shellcheck disable=SC2086 # several flags
        program "$2" |
            builds "${language#*:}" -x "${language%:*}" - -Wl,--no-as-needed $flags && return
    done
}

# is_there KIND NAME: does this single probe succeed? It asks what the build needs, not what a
# package says of itself. mpicc compiles headers, because it knows where mpi.h is. Python modules
# are not imported, because importing torch takes seconds.
is_there() {
    local names
    case $1 in
    cmd) type -P "$2" ;;
    file) compgen -G "$2" ;;
    header) program "$2" | builds "$(type -P mpicc || echo gcc)" -fsyntax-only -x c - ;;
    lib)
        IFS=: read -ra names <<<"$2"
        links "${names[@]}"
        ;;
    py)
        /usr/bin/python3 -I -c 'import importlib.util, sys
sys.exit(not importlib.util.find_spec(sys.argv[1]))' "$2"
        ;;
    clang) program stddef.h | builds clang "$2" -x c - ;;
    esac
} >/dev/null 2>&1

# probe_all: probes everything that read_packages found. May be called again after an installation.
probe_all() {
    local single probes=${probe[*]}
    hash -r
    found=()
    while read -r single; do found[$single]=1; done < <(
        for single in ${probes//,/ }; do
            { ! is_there "${single%%:*}" "${single#*:}" || printf '%s\n' "$single"; } &
        done
        wait
    )
}

# is_present INDEX: do all probes of that line succeed?
is_present() {
    local single
    for single in ${probe[$1]//,/ }; do
        [[ -n ${found[$single]:-} ]] || return 1
    done
}

# missing required|optional: the indices of missing packages, one per line.
missing() {
    local i kind
    for i in "${!package[@]}"; do
        kind=${optional[${package[i]}]:+optional}
        if [[ ${kind:-required} == "$1" ]] && ! is_present "$i"; then printf '%s\n' "$i"; fi
    done
}

# cluster_line INDEX...: one `module load` line for these packages, with each module once; nothing
# if no module provides them.
cluster_line() {
    local i module line=''
    for i; do
        [[ ${cluster[i]} == 'module load '* ]] || continue
        module=${cluster[i]#module load }
        if [[ "$line " != *" $module "* ]]; then line+=" $module"; fi
    done
    if [[ -n $line ]]; then printf 'module load%s\n' "$line"; fi
}
