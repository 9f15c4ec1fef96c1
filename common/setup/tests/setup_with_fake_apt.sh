#!/usr/bin/env bash
# setup.sh on machines that lack something, with a fake package manager, sudo, id and list of
# packages; slow_bare_machine.sh uses the real ones.
set -euo pipefail

root=${ROOT:-$(git -C "$(dirname -- "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source-path=SCRIPTDIR source=verdict.bash
source "$root/common/setup/tests/verdict.bash"

# A copy of setup with its own list: alpha and beta are needed, gamma may be missing.
setup=$work/setup
mkdir "$setup" "$work/base"
cp "$root"/common/setup/{setup,probe,apt_install}.sh "$setup"
cp "$root"/common/base/say.sh "$work/base"
cat >"$setup/packages" <<'END'
core   alpha                 cmd:alpha              does the first thing  (module load alphamod)
core   beta-new/beta-old     cmd:beta,cmd:betac     does the second thing  (module load betamod)
test   delta                 cmd:delta              tests  (spack load delta)
test?  gamma                 cmd:gamma              compares  (module load gammamod)
END

# The system's commands, without those that are faked.
mkdir "$work/system"
for folder in /bin /usr/bin; do ln -sf "$folder"/* "$work/system/"; done
rm -f "$work"/system/{apt-get,apt-cache,sudo,id}

# new_machine COMMAND...: makes a PATH with the system's commands and COMMAND..., an apt that knows
# all four packages, and no sudo.
new_machine() {
    local name
    machine=$work/machine
    rm -rf "$machine"
    mkdir -p "$machine/bin"
    for name; do fake "$name" 'exit 0'; done
    echo 'alpha beta-new beta-old delta gamma' >"$machine/known"
    fake apt-cache "for name in \"\${@:2}\"; do
        if grep -qw -- \"\$name\" $machine/known; then printf '%s:\n  Candidate: 1.0\n' \"\$name\"; fi
    done"
    write_fake_apt_get
    user 0
}

fake() {
    rm -f "$machine/bin/$1"
    printf '#!/bin/bash\n%s\n' "$2" >"$machine/bin/$1"
    chmod +x "$machine/bin/$1"
}

user() {
    fake id "echo $1"
}

# Writes a fake apt-get, which records its arguments and installs packages: a package is a command
# of the same name, and beta-* is two commands.
write_fake_apt_get() {
    fake apt-get "
echo \"\$*\" >>$machine/asked
[[ -x $machine/policy-rc.d ]] && echo \"services: \$($machine/policy-rc.d; echo \$?)\" >>$machine/asked
[[ \" \$* \" == *' update '* ]] && { cat $machine/after-update >>$machine/known 2>/dev/null; exit 0; }
[[ -e $machine/broken ]] && { echo 'E: Unable to fetch some archives'; exit 100; }
for word; do
    case \$word in
    alpha | delta | gamma) ln -sf /bin/true $machine/bin/\$word ;;
    beta-*) ln -sf /bin/true $machine/bin/beta; ln -sf /bin/true $machine/bin/betac ;;
    esac
done"
}

run_setup() {
    status=0
    PATH=$machine/bin:$work/system POLICY_RC_D=$machine/policy-rc.d bash "$setup/setup.sh" "$@" >"$work/said" 2>&1 </dev/null || status=$?
}

run_setup_on_terminal() {
    status=0
    PATH=$machine/bin:$work/system script -qec "bash $setup/setup.sh" "$work/typescript" >"$work/said" 2>&1 </dev/null || status=$?
}

asked() {
    cat "$machine/asked" 2>/dev/null || true
}

expect_status() {
    [[ $status == "$1" ]] || wrong "exit status $status, not $1"
}

expect_said() {
    local text
    for text; do
        grep -qF -- "$text" "$work/said" || wrong "does not say: $text"
    done
}

expect_asked() {
    [[ $(asked) == *"$1"* ]] || wrong "apt-get was not asked for: $1"
}

expect_not_asked() {
    [[ $(asked) != *"$1"* ]] || wrong "apt-get was asked for: $1"
}

wrong() {
    reasons+=("$1")
}

new_machine alpha beta betac
run_setup core
expect_status 0
[[ ! -s $work/said ]] || wrong 'is not silent'
[[ -z $(asked) ]] || wrong 'asked apt-get'
verdict 'nothing missing: setup is silent, and asks apt nothing'

new_machine alpha
run_setup
expect_status 0
expect_asked '--no-install-recommends beta-new'
expect_not_asked beta-old
expect_not_asked alpha
expect_not_asked gamma
verdict 'as root, the missing packages of the groups are installed, and nothing else'

new_machine
run_setup
expect_asked 'services: 101'
[[ ! -e $machine/policy-rc.d ]] || wrong 'services stay forbidden afterwards'
printf '#!/bin/sh\nexit 7\n' >"$machine/policy-rc.d"
rm "$machine/bin/alpha"
run_setup
[[ $(cat "$machine/policy-rc.d") == *'exit 7' ]] || wrong "the machine's own policy is not left alone"
verdict 'no service of a package is started'

new_machine
echo 'alpha beta-old' >"$machine/known"
run_setup
expect_status 0
expect_asked 'alpha beta-old'
verdict 'if a package has another name, the alternative is installed'

new_machine
: >"$machine/known"
echo 'alpha beta-new' >"$machine/after-update"
run_setup
expect_status 0
expect_asked update
expect_asked 'alpha beta-new'
verdict 'package lists are fetched when a required package is unknown'

new_machine alpha beta betac delta
: >"$machine/known"
run_setup core test
expect_status 0
expect_said 'gamma is not available (optional: compares)'
verdict 'an unavailable optional package is reported, and setup succeeds'

new_machine
: >"$machine/known"
run_setup
expect_status 2
expect_said 'apt has no package alpha' 'apt has no package beta-new or beta-old' 'HINT'
verdict 'a required package that apt does not know is an error that names it'

new_machine
: >"$machine/broken"
run_setup
expect_status 2
expect_said 'apt-get install failed' 'Unable to fetch some archives' 'HINT: see the error above'
verdict 'after a failed installation, the output of apt is shown'

new_machine
user 1000
run_setup core test
expect_status 2
expect_said 'packages are missing (3)' 'alpha' 'does the first thing' 'beta-new' 'delta' \
    'apt-get install --no-install-recommends alpha beta-new delta' 'HINT: on a cluster: module load alphamod betamod'
expect_not_asked install
verdict 'without root and sudo, each missing package is named, with the line that loads the modules'

new_machine alpha
user 1000
fake sudo "[[ \$1 == -n ]] || exit 1; shift; exec \"\$@\""
run_setup
expect_status 0
expect_asked beta-new
verdict 'sudo that needs no password is used'

new_machine alpha
user 1000
fake sudo "echo \"\$*\" >>$machine/sudo; exit 1"
run_setup
expect_status 2
expect_said 'sudo does not work here'
[[ $(cat "$machine/sudo") == '-n true' ]] || wrong 'sudo could have asked for a password without a terminal'
verdict 'sudo that needs a password is not used without a terminal'

new_machine alpha
user 1000
fake sudo "[[ \$1 == -n ]] && exit 1; echo asks >>$machine/sudo; exec \"\$@\""
run_setup_on_terminal
expect_status 0
expect_asked beta-new
[[ $(cat "$machine/sudo" 2>/dev/null) == asks ]] || wrong 'sudo did not ask exactly once'
verdict 'on a terminal, sudo asks once'

new_machine alpha
rm "$machine/bin/apt-get" "$machine/bin/apt-cache"
run_setup
expect_status 2
expect_said 'no apt-get' 'beta-new' "own package manager" 'module load betamod'
verdict 'on a system without apt, the names are printed, also for root'

new_machine
run_setup kore
expect_status 2
expect_said "no group of packages named 'kore'" 'HINT: core'
verdict 'a group that does not exist is an error'

new_machine
cat >>"$setup/packages" <<'END'
core?  epsilon               cmd:epsilon            does the first thing faster  (module load epsilonmod)
core?? zeta                  cmd:zeta               does a third thing  (module load zetamod)
END
echo 'epsilon zeta' >>"$machine/known"
run_setup demo
expect_status 0
expect_asked 'alpha beta-new epsilon'
expect_not_asked zeta
verdict 'make demo installs what it needs, and leaves the rest'
run_setup
expect_status 0
expect_asked zeta
verdict 'make setup installs the rest, too'

((failures == 0))
