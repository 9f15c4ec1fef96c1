#!/usr/bin/env bash
# The list of packages is well formed, and its probes find the packages that are installed here.
set -euo pipefail

root=${ROOT:-$(git -C "$(dirname -- "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)}
failures=0

# verdict SENTENCE DETAIL: prints the result of a test, which fails if DETAIL is not empty.
verdict() {
    if [[ -z $2 ]]; then
        echo "ok - $1"
    else
        printf 'not ok - %s\n    %s\n' "$1" "${2//$'\n'/$'\n'    }"
        failures=$((failures + 1))
    fi
}

malformed() {
    local name='[a-z0-9][a-z0-9.+-]+' probe='(cmd|header|lib|py|clang|file):[^ ,]+'
    grep -nvE -e '^(#.*)?$' \
        -e "^(core|data|test|slurm|docs)\?{0,2}  *$name(/$name)*  +$probe(,$probe)*  +[^ (][^(]{0,35}  \([^()]{1,40}\)\$" \
        "$root/common/setup/packages" || true
}

twice() {
    awk '/^[a-z]/ { print $2 }' "$root/common/setup/packages" | tr / '\n' | sort | uniq -d
}

# overlooked: packages that are installed according to dpkg, but whose probe fails.
overlooked() {
    source "$root/common/setup/probe.sh"
    local i
    read_packages core data test slurm docs
    probe_all
    for i in "${!package[@]}"; do
        if dpkg-query -W -f '${Status}' "${package[i]%%/*}" 2>/dev/null | grep -q ' installed' && ! is_present "$i"; then
            echo "${package[i]} is installed, and ${probe[i]} does not find it"
        fi
    done
}

verdict 'each line has a group, packages, probes, a purpose and a way on clusters' "$(malformed)"
verdict 'no package is listed twice' "$(twice)"
if type -P dpkg-query >/dev/null; then
    verdict 'the probes find every package of the list that is installed' "$(overlooked)"
else
    echo 'skip - the probes find every package of the list that is installed: no dpkg to ask'
fi
((failures == 0))
