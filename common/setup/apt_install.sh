#!/usr/bin/env bash
# apt_install.sh [REQUIRED...] -- [OPTIONAL...]   (as root; setup.sh calls it once, through sudo if
# necessary)
#
# Each package is a name or name/alternative/...: the script installs the first one that apt knows.
# It fetches package lists only if there are none, a required package is unknown, or an installation
# fails. It never fails because of optional packages.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../base/say.sh"

updated=no
log=$(mktemp "${TMPDIR:-/tmp}/balise-setup.XXXXXX")
trap 'rm -f "$log"' EXIT

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1 </dev/null
}

update() {
    [[ $updated == no ]] || return 1
    updated=yes
    tell 'setup: fetching package lists (apt-get update)'
    apt update || tell 'setup: apt-get update did not reach every server' >&2
}

# choose PACKAGE/ALTERNATIVE...: the first name that apt can install.
choose() {
    local name
    for name in ${1//\// }; do
        if [[ $(LC_ALL=C apt-cache policy "$name" 2>/dev/null) == *'Candidate: '[^\(]* ]]; then
            printf '%s\n' "$name"
            return 0
        fi
    done
    return 1
}

no_lists() {
    ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null
}

update_if_needed() {
    local wanted
    if no_lists; then
        update || true
        return
    fi
    for wanted; do
        if ! choose "$wanted" >/dev/null; then
            update || true
            return
        fi
    done
}

show_log() {
    tail -n 15 "$log" | sed 's/^/    /' >&2
}

install_required() {
    local wanted name names=() status=0
    for wanted; do
        if name=$(choose "$wanted"); then
            names+=("$name")
        else
            printf '%s%s\n' "$(say 'error: ')" "$(said 'apt has no package %s' "${wanted//\//$(say ' or ')}")" >&2
            status=1
        fi
    done
    ((${#names[@]})) || return "$status"
    tell 'setup: installing %s (this may take a minute)' "${names[*]}"
    if ! apt install --no-install-recommends "${names[@]}" &&
        ! { update && apt install --no-install-recommends "${names[@]}"; }; then
        printf '%s%s\n' "$(say 'error: ')" "$(say 'apt-get install failed; its last lines:')" >&2
        show_log
        status=1
    fi
    return "$status"
}

# Installs the packages together or, if that fails, one by one, so that one does not prevent another.
install_optional() {
    local wanted name names=()
    for wanted; do
        if name=$(choose "$wanted"); then names+=("$name"); fi
    done
    ((${#names[@]})) || return 0
    tell 'setup: installing %s (optional)' "${names[*]}"
    apt install --no-install-recommends "${names[@]}" ||
        for name in "${names[@]}"; do apt install --no-install-recommends "$name" || true; done
}

# Writes a file that keeps packages from starting their services: the kit starts those that it
# needs.
leave_services_alone() {
    local policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}
    [[ ! -e $policy && -w ${policy%/*} ]] || return 0
    # shellcheck disable=SC2064 # expands the current names
    trap "rm -f '$log' '$policy'" EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
}

main() {
    local required=() status=0
    while (($#)) && [[ $1 != -- ]]; do
        required+=("$1")
        shift
    done
    shift || true
    leave_services_alone
    update_if_needed "${required[@]}"
    ((${#required[@]} == 0)) || install_required "${required[@]}" || status=2
    install_optional "$@"
    return "$status"
}

main "$@"
