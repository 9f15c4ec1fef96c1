#!/usr/bin/env bash
# setup.sh [core|demo|data|test|slurm|docs ...]   (make setup; default: core)
#
# Installs the missing packages of these groups of `packages`, with apt: as root, or through sudo,
# which asks for a password at most once. On other systems, prints the missing packages and how to
# load them on a cluster. If nothing is missing, prints nothing.
# Exit status: 0 if all required packages are installed, 2 if one is still missing.
set -euo pipefail

source "$(dirname -- "${BASH_SOURCE[0]}")/../base/say.sh"
source "$(dirname -- "${BASH_SOURCE[0]}")/probe.sh"

required=() wanted=()

hint() {
    printf '%s%s\n' "$(say '  HINT: ')" "$1"
}

find_missing() {
    probe_all
    mapfile -t required < <(missing required)
    mapfile -t wanted < <(missing optional)
}

check_groups() {
    local name
    for name; do
        [[ $name == @(core|demo|data|test|slurm|docs) ]] && continue
        {
            printf '%s%s\n' "$(say 'error: ')" "$(said "there is no group of packages named '%s'" "$name")"
            hint "$(say 'core (the labs, and the default), demo (make demo), data (make data), test (make test), slurm (make test-slurm) or docs')"
        } >&2
        exit 2
    done
}

# Prints how packages can be installed here: root, sudo (without a password), ask (sudo on a
# terminal, once), no-root or no-apt. For optional packages alone, sudo never asks for a password.
way_to_install() {
    if ! type -P apt-get >/dev/null; then
        echo no-apt
    elif [[ $(id -u) == 0 ]]; then
        echo root
    elif ! type -P sudo >/dev/null; then
        echo no-root
    elif sudo -n true 2>/dev/null; then
        echo sudo
    elif ((${#required[@]})) && [[ -t 0 && -t 2 ]]; then
        echo ask
    else
        echo no-root
    fi
}

# Installs all in one command, so sudo asks for a password only once, whatever its time limit.
install_missing() {
    local i names=()
    for i in "${required[@]}"; do names+=("${package[i]}"); done
    names+=(--)
    for i in "${wanted[@]}"; do names+=("${package[i]}"); done
    case $1 in
    root) bash "$setup_folder/apt_install.sh" "${names[@]}" ;;
    sudo) sudo -n bash "$setup_folder/apt_install.sh" "${names[@]}" ;;
    ask)
        tell 'setup: packages are missing (%d); sudo may ask for your password, once (press Ctrl-C to cancel)' ${#required[@]}
        sudo bash "$setup_folder/apt_install.sh" "${names[@]}"
        ;;
    esac
}

say_missing() {
    local i
    for i; do
        printf '  %-23s %s\n' "${package[i]%%/*}" "$(said '%s (on a cluster: %s)' "$(say "${purpose[i]}")" "$(say "${cluster[i]}")")"
    done
}

say_optional() {
    local i
    for i in "${wanted[@]}"; do
        tell 'setup: %s is not available (optional: %s); whatever needs it is skipped' "${package[i]%%/*}" "$(say "${purpose[i]}")"
    done
}

hint_on_apt() {
    local i names=()
    for i in "${required[@]}"; do names+=("${package[i]%%/*}"); done
    case $1 in
    no-apt) hint "$(say "install them with this system's own package manager; Debian's names are above")" ;;
    no-root) hint "$(said 'as root: apt-get install --no-install-recommends %s' "${names[*]}")" ;;
    *) hint "$(say 'see the error above: is the network up, and does /etc/apt name a server that answers?')" ;;
    esac
}

hint_on_cluster() {
    local line
    line=$(cluster_line "${required[@]}")
    if [[ -n $line ]]; then hint "$(said 'on a cluster: %s (names vary: module avail)' "$line")"; fi
    hint "$(say "packages that no module provides: build them with --prefix=\$HOME/.local; then export CPATH, LIBRARY_PATH, LD_LIBRARY_PATH and PKG_CONFIG_PATH")"
}

say_why_not() {
    local count=${#required[@]}
    say 'error: '
    case $1 in
    no-apt) said 'packages are missing (%d), and this system has no apt-get:' "$count" ;;
    no-root) said 'packages are missing (%d), but you are not root and sudo does not work here:' "$count" ;;
    *) said 'packages are still missing after the installation (%d):' "$count" ;;
    esac
    echo
    say_missing "${required[@]}"
    hint_on_apt "$1"
    hint_on_cluster
}

main() {
    local way
    check_groups "$@"
    read_packages "$@"
    find_missing
    ((${#required[@]} + ${#wanted[@]})) || return 0
    way=$(way_to_install)
    if [[ $way != no-* ]]; then
        install_missing "$way" || true # find_missing then checks what is still missing
        find_missing
    fi
    say_optional
    ((${#required[@]})) || return 0
    say_why_not "$way" >&2
    exit 2
}

main "${@:-core}"
