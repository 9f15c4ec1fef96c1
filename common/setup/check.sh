#!/usr/bin/env bash
# check.sh: prints in one line why a make command cannot begin, or nothing if it can. The Makefile
# passes variables: CURDIR, GOALS, SET (the names on the command line), EMPTY (those without a
# value), STRAY (the names in the environment), DOLLAR (those whose value make would expand), LABS,
# HANDOUT, BUILD, CC, MPI_LIBS, NVCC, NCCL and the settings.
# check.sh --unknown NAME...: prints the names that are not settings.
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit
source common/base/say.sh
source common/setup/settings.sh

# make builds the catalogues only after these messages, so this script builds them.
make_catalogues() {
    local file folder
    case ${LC_ALL:-${LC_MESSAGES:-${LANG:-}}} in
    C | POSIX) return ;;
    '' | C.*) [[ -n ${LANGUAGE:-} ]] || return ;;
    esac
    [[ ! -d $TEXTDOMAINDIR ]] || return
    for file in common/po/*.po; do
        folder=$TEXTDOMAINDIR/$(basename "$file" .po)/LC_MESSAGES
        mkdir -p "$folder" && msgfmt -o "$folder/$TEXTDOMAIN.mo" "$file" || return
    done 2> /dev/null
    ln -s /usr/lib/locale/C.utf8 "$TEXTDOMAINDIR/messages.utf8"
}

lacks() {
    stop_make "$1" "$(say 'make setup installs what is missing; make doctor lists it')"
}

# goal NAME...: is one of these requested?
goal() {
    local name
    for name; do [[ " ${GOALS:-all} " != *" $name "* ]] || return 0; done
    return 1
}

# Removes the build if another handout was unpacked over this one. The new sources may be older than
# the files built from the earlier ones, so make would not rebuild these.
forget_other_handout() {
    mkdir -p "$BUILD" 2> /dev/null && ! cmp -s grader/kit.sums "$BUILD/kit.sums" || return
    (cd "$BUILD" && rm -rf float double labs runners generated locale libbalise*.a grade hand-in train stacks checked)
    cp grader/kit.sums "$BUILD/kit.sums"
}

check_handout() {
    local name
    [[ -z $SOLUTION && " $STACK " != *" solutions "* ]] || stop_make "$(say 'the handout contains no solutions')" \
        "$(say 'make grade grades your labs; make train STACK=mine trains them')"
    for name in test test-slow test-grader test-slurm lint handout gradebook board layouts bench model gpu-report slides figures docs; do
        ! goal "$name" || stop_make "$(said 'make %s is not part of the handout' "$name")" "$(say 'make help lists the commands')"
    done
}

# The makefiles name files below the kit's own folder.
check_folder() {
    [[ $CURDIR -ef . ]] || stop_make "$(said 'make was started in %s, which is not the folder of the kit' "$CURDIR")" "$(said "make -C '%s', instead of make -f" "$(pwd)")"
}

# Below these limits, compilers, linkers and MPI crash, or fail without naming the limit.
check_limits() {
    local most memory
    most=$(ulimit -s) memory=$(ulimit -v)
    [[ $most == unlimited || $most -ge 1024 ]] ||
        stop_make "$(said 'ulimit -s is %s: compilers and MPI need a stack of %s kB' "$most" 1024)" "$(said 'raise the limit: ulimit -%s %s' s 8192)"
    goal grade trace tape report measure debug watch gradebook board || return 0
    [[ $memory == unlimited || $memory -ge 1000000 ]] ||
        stop_make "$(said 'ulimit -%s is %s: a rank needs %s kB of address space to start' v "$memory" 1000000)" "$(said 'raise the limit: ulimit -%s %s' v 1000000)"
}

# Checks compiler, MPI, folder and disk, because one sentence is clearer than the compiler's first
# error. Skips these checks for commands that work on a bare machine.
check_machine() {
    local name free bare=yes
    for name in ${GOALS:-all}; do
        [[ " clean setup doctor demo test test-slow test-slurm data start lint slides figures docs " == *" $name "* ]] || bare=
    done
    [[ -z $bare ]] || return
    type -P "${CC%% *}" > /dev/null || lacks "$(said 'there is no compiler, %s' "${CC%% *}")"
    [[ -n $MPI_LIBS ]] || lacks "$(say 'MPI is not installed')"
    [[ $BUILD != *[!A-Za-z0-9_./+@-]* ]] || stop_make "$(said "BUILD='%s' has a character that make or a shell would interpret" "$BUILD")" \
        "$(say 'use letters, digits and - _ . / + @, or unset BUILD for the default, build')"
    { mkdir -p "$BUILD" && [[ -w $BUILD ]]; } 2> /dev/null || stop_make "$(said 'the folder %s is not writable' "$BUILD")" \
        "$(say 'work on a copy of the kit in a folder of your own; df . shows a full disk')"
    free=$(stat -f -c '%a*%S' "$BUILD" 2> /dev/null) # bytes
    ((${free:-1 << 20} >= 1 << 20)) || stop_make "$(said 'the disk of the folder %s is full' "$BUILD")" \
        "$(said 'free some space; df %s shows how much there is' "$BUILD")"
    [[ ! -e $BUILD/.full ]] || rm -f "$BUILD/.full" # a message of the last make
    [[ -z ${TMPDIR:-} || -d $TMPDIR && -w $TMPDIR ]] || stop_make "$(said "TMPDIR='%s' is not a writable folder" "$TMPDIR")" \
        "$(say 'unset TMPDIR, or create that folder')"
    check_limits
}

# make clean removes BUILD, which may come from the environment, so it must be a folder that make has
# built in.
check_clean() {
    ! goal clean || [[ ! -e $BUILD || -e $BUILD/.lock ]] || compgen -G "$BUILD/locale/*/LC_MESSAGES/$TEXTDOMAIN.mo" > /dev/null ||
        stop_make "$(said 'make clean would remove %s, where make has built nothing' "$BUILD")" \
            "$(say 'BUILD names the folder in which make builds: unset it for the default, build')"
}

# nearest WORD: the word of the input that is most similar to WORD.
nearest() {
    python3 -I -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1], sys.stdin.read().split(), 1))' "$1"
}

# A goal is a command, a name in .PHONY or a file.
check_goals() {
    local name meant hint
    shopt -s nullglob
    for name in $GOALS; do
        [[ $name != */* && $name != *.* && ! -e $name ]] || continue
        # shellcheck disable=SC2046 # a list of files
        awk -v goal="$name" '/^\.PHONY:/ { for (i = 2; i <= NF; i++) found = found || $i == goal } END { exit !found }' $(makefiles) || {
            meant=$(commands | nearest "$name")
            hint=$(say 'make help lists the commands')
            [[ -z $meant ]] || hint=$(said 'did you mean make %s? make help lists the commands' "$meant")
            stop_make "$(said 'there is no command make %s' "$name")" "$hint"
        }
    done
}

makefiles() {
    printf '%s\n' Makefile {grader,slides}/*.mk common/*/*.mk {grader,common,slides}/*/*.mk common/*/*/*.mk
}

# Prints the names that are not settings.
unknown_settings() {
    local name known
    known=" $(settings | paste -sd ' ') "
    for name; do
        case $name in
        # settings of tests, of the environment and of site.mk
        BALISE_* | BARE_* | REAL_DATA | LANG | LANGUAGE | LC_* | SETUP | OMPI_* | PRTE_* | PMIX_* | UCX_* | NCCL_* | CUDA_* | OMP_* | OPENBLAS_* | TMPDIR | PATH) ;;
        *) [[ $known == *" $name "* ]] || echo "$name" ;;
        esac
    done
}

check_names() {
    local wrong meant hint
    # shellcheck disable=SC2086 # names are words
    read -r wrong < <(unknown_settings $SET) || return
    meant=$(settings | nearest "${wrong^^}")
    hint=$(say 'make help and its topics list the settings; they are in capitals')
    [[ -z $meant ]] || hint=$(said 'did you mean %s? %s describes it' "$meant" "$(on_topic "$meant")")
    stop_make "$(said 'there is no setting %s' "$wrong")" "$hint"
}

# takers NAME COMMANDS: the commands among these that have this setting, as a list in a sentence.
takers() {
    local command
    for command in $2; do
        [[ " $(settings_of "$command" | paste -sd ' ') " != *" $1 "* ]] || echo "$command"
    done | paste -sd ',' | sed 's/,/, /g'
}

# Rejects a setting that the commands would ignore, if the settings of each command are known.
check_taken() {
    local name known all taken=' '
    known=$(commands | grep -vE '^(setup|demo|clean|help|data|gpu-report|test.*)$' | paste -sd ' ')
    for name in ${GOALS:-all}; do
        [[ " $known " == *" $name "* ]] || return
        taken+="$(settings_of "$name" | paste -sd ' ') "
    done
    taken+="$(settings_of every | paste -sd ' ') ON " all=$(settings | paste -sd ' ')
    [[ -z $ON ]] || taken+="$(settings_of doctor | paste -sd ' ') "
    for name in $SET; do
        [[ " $taken " != *" $name "* && " $all " == *" $name "* ]] || continue
        stop_make "$(said 'make %s has no setting %s' "${GOALS%% *}" "$name")" \
            "$(said 'leave it out; the commands that take it: %s' "$(takers "$name" "$known")")"
    done
}

# Names the settings that come from the environment: a variable of another program may have the same
# name. JOBS and the settings that describe the machine belong in the environment; the settings of a
# job are not read from there.
tell_stray() {
    local name names='' taken=' '
    for name in $GOALS; do taken+="$(settings_of "$name" | paste -sd ' ') "; done
    for name in $STRAY; do
        case $name in JOBS | BACKEND | TRANSPORT | CUDA | NAME | PARTITION | ACCOUNT | TIME | QOS | CONSTRAINT | GPUS | NODES | CPUS | START) continue ;; esac
        [[ $taken != *" $name "* ]] || names+=${names:+, }$name
    done
    [[ -z $names ]] || tell 'from the environment, not from the command line: %s' "$names" >&2
}

# Rejects settings of the training without a value, which would silently take their default. TEST=
# is allowed: it means no test set.
check_empty() {
    local name
    goal train sbatch || return
    for name in $EMPTY; do
        [[ "$(options_of train | paste -sd ' ') " != *"=$name "* ]] ||
            stop_make "$(said '%s is empty' "$name")" "$(said 'give it a value, or leave %s out for the default' "$name")"
    done
}

check_dollar() {
    [[ -z $DOLLAR ]] || stop_make "$(said 'make expands the $ in %s' "${DOLLAR%% *}")" "$(say 'write $$ for a dollar sign')"
}

# Checks the switches that make itself reads: any value would turn them on. Programs check their
# own.
check_values() {
    local name
    for name in AGAIN ASK INDEPENDENT NAMES REPORT SAN SOLUTION; do
        [[ ${!name} == @(|1) ]] || stop_make "$(said "%s cannot be '%s'" "$name" "${!name}")" "$(said '%s=1 turns it on; without %s it is off' "$name" "$name")"
    done
    [[ -z $PART || -z $LAB || " $SET " != *' PART '* || " $SET " != *' LAB '* ]] || ! goal grade ||
        stop_make "$(say 'LAB and PART are both given')" "$(say 'LAB grades one lab, PART all labs of a part: leave one out')"
}

# Rejects a lab file that is not a regular file: a FIFO or a device has no end, a folder no
# contents.
check_lab_files() {
    local file number why
    goal grade runners trace tape report measure debug watch hint solution progress predict reset start hand-in ||
        { [[ $STACK == mine ]] && goal train sbatch story run; } || return
    [[ -z $SOLUTION ]] || return
    for file in $LAB_FILES; do
        [[ -e $file && ! -f $file ]] || continue
        number=${file#labs/} number=${number#0} number=${number%%-*}
        [[ -d $file ]] && why=$(say 'it is a folder') || why=$(say 'it is not a file')
        stop_make "$(said 'lab %s cannot be read from %s: %s' "$number" "$file" "$why")" \
            "$(said 'move it away; make start LAB=%s then creates a fresh file' "$number")"
    done
}

# Suggests a lab for a name that no lab has. Programs report numbers that no lab has.
check_lab() {
    local meant hint
    [[ $LAB == [A-Za-z]* && " $LABS " != *" $LAB "* ]] || return
    meant=$(grader/stack.py nearest "$LAB")
    hint=$(said 'the labs are: %s' "$LABS")
    [[ -z $meant ]] || hint=$(said 'did you mean LAB=%s? the labs are: %s' "$meant" "$LABS")
    stop_make "$(said "there is no lab '%s'" "$LAB")" "$hint"
}

check_stack() {
    case $STACK in
    '' | mine | solutions) ;;
    serial)
        ! goal grade trace tape report measure debug watch || stop_make "$(say "a lab cannot be graded on STACK='serial'")" \
            "$(say 'STACK=mine grades it on your own earlier labs; without STACK, on the reference')"
        ;;
    *)
        ! goal train sbatch story run || stop_make "$(said "there is no stack '%s'" "$STACK")" "$(say 'STACK=solutions, STACK=mine or STACK=serial')"
        ! goal grade trace tape report measure debug watch || stop_make "$(said "there is no stack '%s'" "$STACK")" \
            "$(say 'STACK=mine grades it on your own earlier labs; without STACK, on the reference')"
        ;;
    esac
    [[ -z $UPTO || " $LABS " == *" $UPTO "* && $UPTO != *' '* ]] || stop_make "$(said "UPTO cannot be '%s'" "$UPTO")" \
        "$(said 'it must be the number of a lab: %s' "$LABS")"
}

# gpu_obstacle: prints why no program can use a GPU here: no driver, or no GPU that the driver
# shows.
gpu_obstacle() {
    python3 -I -c '
import ctypes
try:
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
except OSError:
    print("no driver")
else:
    NO_DEVICE = 100
    if driver.cuInit(0) == NO_DEVICE or driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and not count.value:
        print("no GPU")'
}

# Reports a missing GPU before make compiles the kernels, which takes minutes. If they are compiled
# already, the programs report it. Skips this check for jobs, which run on other machines.
check_gpu() {
    local why
    [[ $BACKEND == cuda && -z $ON ]] && ! compgen -G "$BUILD/libbalise-cuda*.a" > /dev/null || return
    goal grade train story run bench model trace tape report measure debug watch test test-slow || return
    case $(gpu_obstacle) in
    'no driver') why=$(say 'BACKEND=cuda: this machine has no NVIDIA driver') ;;
    'no GPU')
        why=$(say 'there is no GPU')
        if [[ -z ${CUDA_VISIBLE_DEVICES+set} ]]; then
            why=$(said 'BACKEND=cuda: %s' "$why")
        else
            why=$(said "BACKEND=cuda: %s (CUDA_VISIBLE_DEVICES='%s' hides those that it does not name)" "$why" "$CUDA_VISIBLE_DEVICES")
        fi
        ;;
    *) return ;;
    esac
    stop_make "$why" "$(say 'make doctor shows what this machine has; BACKEND=cpu computes without a GPU')"
}

check_backend() {
    case $BACKEND in
    cpu | cuda | emulated) ;;
    *) stop_make "$(said "there is no backend '%s'" "$BACKEND")" "$(say 'BACKEND=cpu or BACKEND=cuda')" ;;
    esac
    [[ $BACKEND != cuda || -n $NVCC ]] || ! goal grade train story run bench model trace measure runners test test-slow ||
        stop_make "$(say 'BACKEND=cuda needs the CUDA Toolkit, but there is no nvcc')" \
            "$(say 'install it, or say where it is: CUDA=/usr/local/cuda; BACKEND=cpu does not need it')"
    case $TRANSPORT in
    mpi) return ;;
    nccl) ;;
    *) stop_make "$(said "there is no transport '%s'" "$TRANSPORT")" "$(say 'TRANSPORT=mpi or, with BACKEND=cuda, TRANSPORT=nccl')" ;;
    esac
    [[ $BACKEND != cpu ]] || stop_make "$(say 'NCCL works on GPU memory only')" "$(say 'BACKEND=cuda TRANSPORT=nccl, or TRANSPORT=mpi')"
    [[ -z $NVCC || -n $NCCL ]] || stop_make "$(say 'TRANSPORT=nccl needs NCCL 2.18 or later, and there is no nccl.h')" \
        "$(say 'install it (libnccl-dev), or TRANSPORT=mpi')"
    ! goal grade trace measure || stop_make "$(say 'the grader observes MPI calls')" \
        "$(say 'make grade BACKEND=cuda; TRANSPORT=nccl is for make train')"
}

check_cluster() {
    [[ " $SET " != *' SITE '* || -e $SITE ]] || stop_make "$(said "there is no file '%s'" "$SITE")" \
        "$(say 'SITE names a file like common/slurm/site-example.mk')"
    case $ON in
    '') ;;
    slurm)
        [[ ${GOALS:-all} == grade ]] || stop_make "$(say 'ON works with make grade only')" \
            "$(say 'make grade ON=slurm; make sbatch trains on a cluster')"
        [[ -z $LAB || " $LABS " == *" $LAB "* && $LAB != *" "* ]] || stop_make "$(said "there is no lab '%s'" "$LAB")" "$(said 'the labs are: %s' "$LABS")"
        ;;
    *) stop_make "$(said "make grade cannot run on '%s'" "$ON")" "$(say 'make grade ON=slurm, or without ON on this machine')" ;;
    esac
}

if [[ ${1:-} == --unknown ]]; then
    unknown_settings "${@:2}"
    exit
fi
make_catalogues
check_folder
check_dollar
[[ ${GOALS%% *} != help ]] || exit 0
[[ -z $HANDOUT ]] || { check_handout && forget_other_handout; }
[[ ${MAKELEVEL:-0} != 0 ]] || check_goals
check_machine
check_clean
[[ ${MAKELEVEL:-0} != 0 ]] || { check_names; check_taken; tell_stray; check_empty; check_values; }
check_lab
check_stack
check_lab_files
check_backend
check_cluster
check_gpu
building=(prebuild)
[[ ${MAKELEVEL:-0} != 0 ]] || building+=(grade train watch debug trace tape report measure build)
[[ -e $BUILD/libbalise.a ]] || ! goal "${building[@]}" ||
    tell 'building the kit, once: this takes half a minute' >&2
