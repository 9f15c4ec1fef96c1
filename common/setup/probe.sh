# shellcheck shell=bash
# Reads `packages` and finds what this machine has of it. Sourced by setup.sh and doctor.sh.

setup_folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

# One entry a line of `packages` that was asked for. Bash hands back no arrays, so these are the answer.
group=() package=() probe=() purpose=() cluster=()
declare -A optional # package -> 1
declare -A found    # single probe -> 1

# read_packages GROUP...: fills the arrays with the lines of these groups.
read_packages() {
    local wanted=" $* " line_group line_package line_probe rest
    while read -r line_group line_package line_probe rest; do
        [[ -n $line_group && $line_group != '#'* && $wanted == *" ${line_group%\?} "* ]] || continue
        group+=("${line_group%\?}")
        package+=("$line_package")
        probe+=("$line_probe")
        purpose+=("${rest%%  (*}")
        rest=${rest#*  (}
        cluster+=("${rest%)}")
        if [[ $line_group == *\? ]]; then optional[$line_package]=1; fi
    done <"$setup_folder/packages"
}

# names_of KIND: NAME of every KIND:NAME among the probes, one a line.
names_of() {
    local kind=$1 probes single
    for probes in "${probe[@]}"; do
        for single in ${probes//,/ }; do
            if [[ $single == "$kind":* ]]; then printf '%s\n' "${single#*:}"; fi
        done
    done
}

find_commands() {
    local name
    for name; do
        if type -P "$name" >/dev/null; then found[cmd:$name]=1; fi
    done
}

find_files() {
    local pattern
    for pattern; do
        if compgen -G "$pattern" >/dev/null; then found[file:$pattern]=1; fi
    done
}

# One run of the preprocessor answers for all headers; mpicc's also knows where mpi.h is.
find_headers() {
    local compiler=mpicc name
    (($#)) || return 0
    type -P mpicc >/dev/null || compiler=gcc
    while read -r name; do
        name=${name//\"/}
        if [[ -n $name ]]; then found[header:$name]=1; fi
    done < <(for name; do printf '#if __has_include(<%s>)\n"%s"\n#endif\n' "$name" "$name"; done |
        "$compiler" -E -P -x c - 2>/dev/null)
}

find_pkgs() {
    local name
    (($#)) && type -P pkg-config >/dev/null || return 0
    for name; do
        if pkg-config --exists "$name"; then found[pkg:$name]=1; fi
    done
}

# Finds modules without importing them: torch alone takes seconds.
find_python_modules() {
    local name
    (($#)) && [[ -x /usr/bin/python3 ]] || return 0
    while read -r name; do
        found[py:$name]=1
    done < <(/usr/bin/python3 -I -c '
import importlib.util, sys
for name in sys.argv[1:]:
    if importlib.util.find_spec(name):
        print(name)' "$@" 2>/dev/null)
}

find_clang_runtimes() {
    local name folder
    (($#)) && type -P clang >/dev/null || return 0
    folder=$(clang -print-runtime-dir 2>/dev/null) || return 0
    for name; do
        if [[ $name == omp.h ]]; then
            if clang -fopenmp -fsyntax-only -include omp.h -x c /dev/null 2>/dev/null; then found[clang:$name]=1; fi
        elif compgen -G "$folder/libclang_rt.$name*" >/dev/null; then found[clang:$name]=1; fi
    done
}

# probe_all: looks for everything that read_packages found. May be called again after an installation.
probe_all() {
    local names
    hash -r
    found=()
    mapfile -t names < <(names_of cmd) && find_commands "${names[@]}"
    mapfile -t names < <(names_of file) && find_files "${names[@]}"
    mapfile -t names < <(names_of header) && find_headers "${names[@]}"
    mapfile -t names < <(names_of pkg) && find_pkgs "${names[@]}"
    mapfile -t names < <(names_of py) && find_python_modules "${names[@]}"
    mapfile -t names < <(names_of clang) && find_clang_runtimes "${names[@]}"
}

# is_present INDEX: do all probes of that line hold?
is_present() {
    local single
    for single in ${probe[$1]//,/ }; do
        [[ -n ${found[$single]:-} ]] || return 1
    done
}

# missing required|optional: the indices of what is not there, one a line.
missing() {
    local i kind
    for i in "${!package[@]}"; do
        kind=${optional[${package[i]}]:+optional}
        if [[ ${kind:-required} == "$1" ]] && ! is_present "$i"; then printf '%s\n' "$i"; fi
    done
}

# cluster_line INDEX...: one `module load` line for these, each module once; nothing where no module gives them.
cluster_line() {
    local i module line=''
    for i; do
        [[ ${cluster[i]} == 'module load '* ]] || continue
        module=${cluster[i]#module load }
        if [[ "$line " != *" $module "* ]]; then line+=" $module"; fi
    done
    if [[ -n $line ]]; then printf 'module load%s\n' "$line"; fi
}
