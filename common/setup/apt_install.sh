#!/usr/bin/env bash
# apt_install.sh [REQUIRED...] -- [OPTIONAL...]   (as root; setup.sh calls it once, through sudo if
# necessary)
#
# Each package is a name or name/alternative/...: the script installs the first one that apt knows.
# It asks apt once for all names, because each question takes a third of a second. It fetches package
# lists only if there are none, a required package is unknown, or an installation fails. It never
# fails because of optional packages.
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

# ask_apt: sets `known` to the names of packages that apt can install.
ask_apt() {
    local names="${required[*]} ${optional[*]}"
    # shellcheck disable=SC2086 # one word per name
    known=$(LC_ALL=C apt-cache policy ${names//\// } 2>/dev/null |
        awk '/^[^ ]/ { name = $1 } /^  Candidate: [^(]/ { print name }')
}

# choose PACKAGE/ALTERNATIVE...: the first name that apt can install.
choose() {
    local name
    for name in ${1//\// }; do
        if [[ $'\n'$known == *$'\n'"$name:"* ]]; then
            printf '%s\n' "$name"
            return 0
        fi
    done
    return 1
}

is_current() {
    local wanted
    compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || return
    for wanted in "${required[@]}"; do choose "$wanted" >/dev/null || return; done
}

fail() { # fail SENTENCE
    printf '%s%s\n' "$(say 'error: ')" "$1" >&2
    status=2
}

install() { apt install --no-install-recommends "$@"; }

# Installs everything in one run of apt. If that fails, the required packages, after an update, and
# then each optional one alone, so that it does not prevent another.
install_all() {
    local wanted name needed=() useful=()
    for wanted in "${required[@]}"; do
        if name=$(choose "$wanted"); then needed+=("$name"); else fail "$(said 'apt has no package %s' "${wanted//\//$(say ' or ')}")"; fi
    done
    for wanted in "${optional[@]}"; do
        if name=$(choose "$wanted"); then useful+=("$name"); fi
    done
    set -- "${needed[@]}" "${useful[@]}"
    (($#)) || return 0
    tell 'setup: installing %s (this may take a minute)' "$*"
    install "$@" && return
    if ((${#needed[@]})) && ! { update && install "${needed[@]}"; }; then
        fail "$(say 'apt-get install failed; its last lines:')"
        tail -n 15 "$log" | sed 's/^/    /' >&2
    fi
    for name in "${useful[@]}"; do install "$name" || true; done
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

required=() optional=() known='' status=0
while [[ ${1:---} != -- ]]; do
    required+=("$1")
    shift
done
optional=("${@:2}")
leave_services_alone
ask_apt
is_current || { update && ask_apt; } || true
install_all
exit "$status"
