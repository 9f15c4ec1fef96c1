#!/usr/bin/env bash
# doctor.sh   (make doctor)
#
# Shows which of Balise's requirements this machine meets, whether MPI really starts, and what would
# slow things down: on one screen or, with ALL=1, with a row for each package and what it is for.
# Exit status: 0 if the labs can be done here, 2 if not.
set -euo pipefail

source "$(dirname -- "${BASH_SOURCE[0]}")/../train/ranks.sh"
source "$(dirname -- "${BASH_SOURCE[0]}")/probe.sh"
source "$setup_folder/../comm/open_mpi.sh"
source "$setup_folder/doctor_mpi.sh"
source "$setup_folder/doctor_machine.sh"
source "$setup_folder/doctor_slurm.sh"
source "$setup_folder/doctor_gpu.sh"

green='' red='' yellow='' plain=''
problems=() # the reasons why the labs cannot be done here
all=${ALL:-}
name_width=22 value_width=13 # of the table's first columns

use_colour() {
    if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
        green=$'\e[32m' red=$'\e[31m' yellow=$'\e[33m' plain=$'\e[0m'
    fi
}

mark() { # mark good|bad|absent|note|plain
    case $1 in
    good) printf '%s' "$green✓$plain" ;;
    bad) printf '%s' "$red✗$plain" ;;
    absent) printf '%s' "$yellow✗$plain" ;;
    note) printf '%s' "$yellow!$plain" ;;
    *) printf ' ' ;;
    esac
}

# row MARK NAME VALUE TEXT: a line of the table.
row() {
    local line
    line="$(padded "$name_width" "$2") $(padded "$value_width" "$3") $4"
    printf '  %s %s\n' "$(mark "$1")" "${line%"${line##*[! ]}"}"
}

# text_row MARK TEXT: a text in the table, wrapped to its width.
text_row() {
    fold -s -w 74 <<<"$2" | sed "s/ *$//; 1s/^/  $(mark "$1") /; 2,\$s/^/    /"
}

# title TEXT: begins a part of the table.
title() {
    [[ -z $all ]] || echo
    printf '%s\n' "$1"
}

# under TEXT: text below a row, wrapped to the width of the table.
under() {
    fold -s -w 72 <<<"$1" | sed 's/^/      /; s/ *$//'
}

hint() {
    under "$(say 'HINT: ')$1"
}

first_number() {
    if [[ $1 =~ [0-9]+(\.[0-9]+)+ ]]; then printf '%s' "${BASH_REMATCH[0]}"; fi
}

command_version() {
    local text
    case $1 in
    dot) text=$(timeout 5 dot -V 2>&1) ;;
    mpicc) text=$(timeout 5 mpicc --showme:version 2>&1) ;;
    *) text=$(timeout 5 "$1" --version 2>&1 </dev/null) ;;
    esac || true
    first_number "$text"
}

python_version_of() {
    /usr/bin/python3 -I -c '
import importlib.metadata, platform, sys
try:
    print(importlib.metadata.version(sys.argv[1]))
except importlib.metadata.PackageNotFoundError:
    print(platform.python_version())' "$1" 2>/dev/null || true
}

# packaged_version PACKAGE: the package manager's version, for programs that do not report one.
packaged_version() {
    local text
    type -P dpkg-query >/dev/null || return 0
    text=$(dpkg-query -W -f '${Version}\n' "$1" 2>/dev/null) || return 0
    first_number "${text#*:}"
}

# version_of INDEX: the version that the package's first probe reports.
version_of() {
    local first=${probe[$1]%%,*} version=''
    local name=${first#*:} known
    case $first in
    cmd:*) version=$(command_version "$name") ;;
    clang:*) version=$(command_version clang) ;;
    lib:*)
        known=${name##*:} name=${name%%:*}
        version=$({ pkg-config --modversion "$name" || pkg-config --modversion "lib$name" || pkg-config --modversion "$known"; } 2>/dev/null) || true
        ;;
    py:*) version=$(first_number "$(python_version_of "$name")") ;;
    file:*) if [[ -f $name && -x $name ]]; then version=$(command_version "$name"); fi ;;
    esac
    if [[ -z $version ]]; then version=$(packaged_version "${package[$1]%%/*}"); fi
    printf '%s' "${version:-$(say 'found')}"
}

how_to_get() {
    local target="make setup"
    if [[ ${group[$1]} != core ]]; then target="common/setup/setup.sh ${group[$1]}"; fi
    hint "$(said '%s; on a cluster: %s' "$target" "$(say "${cluster[$1]}")")"
}

dependency_row() {
    local i=$1 name=${package[$1]%%/*} use lacks
    use=$(say "${purpose[i]}") lacks=$(say 'missing')
    if is_present "$i"; then
        row good "$name" "${version[i]}" "$use"
    elif [[ ${group[i]} == core && -z ${optional[${package[i]}]:-} ]]; then
        row bad "$name" "$lacks" "$use"
        how_to_get "$i"
        problems+=("$name")
    else
        if [[ -n ${optional[${package[i]}]:-} ]]; then lacks=$(say 'missing (opt.)'); fi
        row absent "$name" "$lacks" "$use"
        how_to_get "$i"
    fi
}

# package_list GROUP: a group's packages in a few lines. Each missing package of the labs has a row.
package_list() {
    local i there=() lacking=() count=0 text
    for i in "${!package[@]}"; do
        if [[ ${group[i]} != "$1" ]]; then continue; fi
        count=$((count + 1))
        if ! is_present "$i"; then
            lacking+=("$i")
        elif [[ $1 == core ]]; then
            there+=("${package[i]%%/*} $(version_of "$i"),")
        else
            there+=("$i")
        fi
    done
    if [[ $1 == core ]]; then
        text=${there[*]}
        if ((${#there[@]})); then text_row good "${text%,}"; fi
        for i in "${lacking[@]}"; do dependency_row "$i"; done
    elif ((${#lacking[@]} == 0)); then
        text_row good "$(said 'all %d packages are installed' "$count")"
    elif ((${#there[@]} == 0)); then
        text_row absent "$(said 'none is installed; %s installs all %d' "common/setup/setup.sh $1" "$count")"
    else
        text_row absent "$(said 'missing packages (%d of %d): %s' ${#lacking[@]} "$count" \
            "$(for i in "${lacking[@]}"; do printf '%s\n' "${package[i]%%/*}"; done | paste -sd ' ')")"
        hint "common/setup/setup.sh $1"
    fi
}

# The columns of a table are as wide as its longest name and version, at least 22 and 13.
dependency_table() {
    if [[ -z $all ]]; then
        package_list "$1"
        return
    fi
    local i name name_width=22 value_width=13 version=()
    for i in "${!package[@]}"; do
        name=${package[i]%%/*}
        if [[ ${group[i]} != "$1" ]]; then continue; fi
        version[i]=''
        if is_present "$i"; then version[i]=$(version_of "$i"); fi
        if ((${#name} > name_width)); then name_width=${#name}; fi
        if ((${#version[i]} > value_width)); then value_width=${#version[i]}; fi
    done
    for i in "${!package[@]}"; do
        if [[ ${group[i]} == "$1" ]]; then dependency_row "$i"; fi
    done
}

verdict() {
    [[ -z $all ]] || echo
    if ((${#problems[@]})); then
        tell '%sYou cannot do the labs on this machine yet.%s Problems:' "$red" "$plain"
        fold -s -w 76 <<<"${problems[*]}" | sed 's/^/  /; s/ *$//'
        printf '%s%s\n' "$(say '  HINT: ')" "$(say 'make setup; then make doctor again')"
        exit 2
    fi
    printf '%s\n' "$green$(say 'You can do the labs on this machine.')$plain"
    [[ -n $all ]] || tell 'make doctor ALL=1 shows what each package is for, and more about GPUs'
}

main() {
    local folder
    [[ $all == @(|1) ]] || give_up "$(said "%s cannot be '%s'" ALL "$all")" "$(said '%s=1 turns it on; without %s it is off' ALL ALL)"
    [[ -z ${NTASKS:-} ]] || must_be_ranks "$NTASKS"
    use_colour
    folder=$(mktemp -d "${TMPDIR:-/tmp}/balise-doctor.XXXXXX")
    # shellcheck disable=SC2064 # expands the current name
    trap "rm -rf '$folder'" EXIT
    read_packages core test docs
    probe_all
    tell 'Needed for the labs'
    dependency_table core
    check_mpi "$folder"
    if [[ -d $setup_folder/tests ]]; then # not in the handout
        title "$(say 'For make test (not needed for the labs)')"
        dependency_table test
        title "$(say 'For the slides and the reference pages (optional)')"
        dependency_table docs
    fi
    title "$(said 'This machine: %.60s' "$(system_name), $(uname -m)")"
    machine_table
    environment_table
    gpu_table
    check_slurm "$folder"
    verdict
}

main "$@"
