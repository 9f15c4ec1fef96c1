#!/usr/bin/env bash
# The README's first command on bare machines: minimal Debians, made by debootstrap, with make and
# this kit. On a Debian other than this machine's, also the tests that depend most on its versions,
# or with BARE_FULL=1 all of `make test`. BARE_SUITES are the Debians, for instance "sid";
# BARE_MIRROR selects another server than apt's.
#
# Everything runs in its own namespaces. When their first process dies, the kernel ends all others
# and undoes the mounts, so nothing stays behind, however this script ends.
set -euo pipefail

root=${ROOT:-$(git -C "$(dirname -- "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)}
suite=''
kit=/srv/balise
work='' child='' failures=0 status=0
tests=(common/comm/tests/open_mpi common/train/tests/run_and_stop grader/tests/endings common/tests/french)

skip() {
    echo "skip - the kit on a bare machine: $1"
    exit 0
}

# verdict SENTENCE: prints the result of the last command, whose output is in $work/said.
verdict() {
    if ((status == 0)); then
        echo "ok - $suite: $1"
    else
        echo "not ok - $suite: $1"
        echo "    exit status $status; its last lines:"
        tail -n 25 "$work/said" | sed 's/^/    | /'
        failures=$((failures + 1))
    fi
}

# unshare itself ignores signals. Its child is the first process of the namespaces: if it dies, all
# others end.
end_namespaces() {
    local first
    first=$(cat "/proc/$child/task/$child/children" 2>/dev/null || true)
    # shellcheck disable=SC2086 # one process id, or nothing
    kill -KILL ${first:-$child} 2>/dev/null || true
    wait "$child" 2>/dev/null || true
}

clean_up() {
    trap '' INT TERM HUP
    if [[ -n $child ]]; then end_namespaces; fi
    if [[ -n $work ]]; then rm -rf --one-file-system -- "$work"; fi
}

debian_mirror() {
    local release uri
    if [[ -n ${BARE_MIRROR:-} ]]; then
        echo "$BARE_MIRROR"
        return
    fi
    # shellcheck disable=SC2016 # apt-get expands them
    while read -r release uri; do
        if [[ $release == "$suite" && $uri == http* ]]; then
            echo "$uri"
            return
        fi
    done < <(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null)
    echo http://deb.debian.org/debian
}

apart=(unshare --mount --pid --uts --ipc --fork --kill-child=KILL --propagation private)

# apart COMMAND...: runs it in new namespaces, in the background, so this script handles
# signals at once. Sets status.
apart() {
    status=0
    "${apart[@]}" "$@" >"$work/said" 2>&1 </dev/null &
    child=$!
    wait "$child" || status=$?
    child=''
}

# in_machine USER COMMAND: runs it in the bare machine, in the kit's folder, with a clean
# environment. In a chroot, nobody could make namespaces, so there would be no sandbox.
in_machine() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    apart sh -euc '
        hostname bare
        mount --bind "$1" "$1"
        cd "$1"
        mount -t proc proc proc
        mount -t sysfs -o ro sysfs sys
        mkdir -p dev/shm dev/pts old
        mount -t tmpfs -o mode=1777 shm dev/shm
        mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
        ln -sf pts/ptmx dev/ptmx
        pivot_root . old
        umount -l /old
        exec /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            LANG=C.UTF-8 ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            setpriv --reuid "$2" --regid "$2" --clear-groups sh -c "cd $3 && export HOME=$4 && $5"
    ' sh "$work/machine" "$1" "$kit" "$([[ $1 == 0 ]] && echo /root || echo /tmp)" "$2"
}

check_that_it_can_run() {
    [[ $(id -u) == 0 ]] || skip 'debootstrap needs root'
    type -P debootstrap >/dev/null || skip 'debootstrap is not installed (apt-get install debootstrap)'
    "${apart[@]}" true 2>/dev/null || skip 'namespaces cannot be made here'
    git -c safe.directory='*' -C "$root" rev-parse --git-dir >/dev/null 2>&1 || skip 'this is not a git work tree'
}

# copy_kit: copies the files that a clone would have if everything were committed.
copy_kit() {
    mkdir -p "$work/machine$kit"
    git -c safe.directory='*' -C "$root" ls-files -z --cached --others --exclude-standard |
        (cd "$root" && while read -r -d '' file; do
            if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
        done) |
        tar -C "$root" --null --no-recursion -T - --mode=a+rX -c |
        tar -C "$work/machine$kit" --no-same-owner -x
}

make_machine() {
    local mirror
    mirror=$(debian_mirror)
    wget -q --spider --timeout=10 --tries=1 "${mirror%/}/dists/$suite/Release" 2>/dev/null ||
        skip "the Debian server $mirror does not answer"
    apart debootstrap --variant=minbase --include=make "$suite" "$work/machine" "$mirror"
    ((status == 0)) || return 0
    cp /etc/resolv.conf "$work/machine/etc/resolv.conf"
    cp -r /etc/apt/apt.conf.d "$work/machine/etc/apt/"
    echo '127.0.0.1 localhost bare' >"$work/machine/etc/hosts"
    printf '#!/bin/sh\nexit 101\n' >"$work/machine/usr/sbin/policy-rc.d"
    chmod +x "$work/machine/usr/sbin/policy-rc.d"
    copy_kit
}

# expect STATUS PATTERN...: sets status to 0 if the last command ended with STATUS and printed these
# patterns.
expect() {
    local wanted=$1 pattern
    shift
    if ((status == wanted)); then status=0; else return 0; fi
    for pattern; do
        if ! grep -q -- "$pattern" "$work/said"; then
            echo "(does not say: $pattern)" >>"$work/said"
            status=1
        fi
    done
}

# As a new user would: without root, then the README's command, from another folder.
try_machine() {
    local failed=$failures
    make_machine
    verdict 'debootstrap makes a bare machine'
    ((failures == failed)) || return 0

    in_machine 1000 'make setup'
    expect 2 'gcc .*compiles' 'libopenmpi-dev' 'not root' 'HINT: on a cluster: module load gcc'
    verdict 'without root, make setup names what is missing and how to get it on a cluster'

    SECONDS=0
    in_machine 0 "cd / && make -C $kit demo WERROR=1"
    expect 0 'Score: 100/100' 'the ranks ran in a sandbox' 'test accuracy 0.8' '^next: read labs/01'
    ! grep -q 'No such file' "$work/said" || status=1
    verdict "make demo installs what it needs, grades and trains, without a warning ($SECONDS s)"

    in_machine 0 'make setup && ! make setup | grep installing'
    expect 0 'setup: installing gdb gnuplot-nox zip' '^next: read labs/01'
    verdict 'make setup installs the rest, and then nothing more'

    in_machine 0 'make doctor'
    expect 0 'You can do the labs on this machine' 'MPI, 2 ranks .*communicate'
    verdict 'make doctor says that the labs can be done'

    in_machine 1000 'make doctor'
    expect 0 'You can do the labs on this machine' 'MPI, 2 ranks .*communicate'
    verdict 'make doctor says so to an ordinary user, too'

    if [[ -n ${BARE_GOLDEN:-} ]]; then
        cp "$BARE_GOLDEN" "$work/machine$kit/golden" 2>/dev/null || true
        in_machine 0 "GOLDEN=$kit/golden ROOT=$kit bash grader/tests/mutants.sh"
        [[ -e $BARE_GOLDEN ]] || cp "$work/machine$kit/golden" "$BARE_GOLDEN"
        verdict 'every wrong answer is caught and every right one accepted'
        sed -n '/^answers of which/,$p' "$work/said"
    elif [[ ${BARE_FULL:-0} == 1 ]]; then
        in_machine 0 'apt-get install -y git && git init -q && git add -A &&
            git -c user.name=n -c user.email=e commit -qm kit && make test WERROR=1'
        verdict "make test passes: $(tail -n 1 "$work/said")"
    elif [[ $suite != "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" ]]; then
        in_machine 0 "for test in ${tests[*]}; do ROOT=\$PWD common/tests/run.sh fast \$test || exit; done"
        verdict 'the tests that depend most on its versions pass'
    fi
}

check_that_it_can_run
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
work=$(mktemp -d /var/tmp/balise-bare.XXXXXX)
for suite in ${BARE_SUITES:-bookworm trixie}; do
    rm -rf --one-file-system "$work/machine"
    try_machine
done
((failures == 0))
