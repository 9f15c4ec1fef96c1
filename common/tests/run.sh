#!/usr/bin/env bash
# run.sh fast|slow|gpu [NAME]: runs the tests whose path contains NAME, three at a time, plus those
# that mostly wait. With gpu, runs those that can run on a GPU with BACKEND, two at a time. Reports
# a line per test with its seconds and CPU seconds, details of failures, and the reason for each
# skip. The end repeats the failures and lists the ten slowest tests. The output of each test stays
# in $BUILD/tests/log, the report in $BUILD/tests/summary.txt.
#
# A test that fails runs once more, alone, after the others. If it fails again, it is a failure; if
# it passes, it is flaky, and the end shows both outputs. Exit status: 0 if no test failed and at
# most two are flaky.
#
# A test is a script or a program (build/tests/<path of its source>). Programs run plain and with
# sanitizers; tests of kernels run with sanitizers only if slow tests run. *_ranksN run under
# mpirun. Programs in ON_GPU and OVER_NCCL also run on the emulated GPU, with sanitizers only if
# slow or GPU tests run. On a real GPU (BACKEND=cuda), the compute-sanitizer tools in SANITIZER
# check the first launches of the kernel tests; SANITIZER=all checks all launches, SANITIZER=off
# none. Scripts and programs print `ok - ...`, `not ok - ...` and `skip - sentence: reason`; a
# program ends with its plan, 1..N. A test that dies, prints nothing or prints a Python traceback
# has failed.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=list.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/list.sh"
speed=${1:-fast} name=${2:-}
: "${ROOT:=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)}" "${BUILD:=$ROOT/build}"
export ROOT BUILD
[[ $speed == gpu ]] || unset BACKEND # each test chooses its own
cd -- "$ROOT" || exit 2
logs=$BUILD/tests/log
# A time limit per test in seconds: far more than any test needs, even on a busy machine.
if [[ $speed == slow ]]; then limit=3600; else limit=1800; fi
export CK_TIMEOUT_MULTIPLIER=4

# The environment may force slow kernels, which tests must not inherit.
unset OPENBLAS_CORETYPE
export OMP_WAIT_POLICY=passive
# Messages are in English, whatever the user's language. A test of another language sets it itself.
unset LANGUAGE LC_ALL LC_MESSAGES
export LANG=C.UTF-8
# A request for more memory than exists returns NULL, as it does without sanitizers.
export ASAN_OPTIONS=allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# What the judge has computed for one test, it reads in others.
export BALISE_EXPECTED=$BUILD/tests/expected
# Waiting ranks yield the core to the tests that run beside them.
source common/comm/open_mpi.sh
open_mpi root here yield

tools='memcheck racecheck initcheck synccheck' first_launches=400
case ${SANITIZER:-} in
'') ;;
all) first_launches=0 ;; # no limit
off) tools= ;;
*) tools=$SANITIZER ;;
esac
for tool in $tools; do
    [[ $tool =~ ^(mem|race|init|sync)check$ ]] || {
        printf "error: SANITIZER cannot be '%s'\n  HINT: memcheck, racecheck, initcheck, synccheck, several of them, all or off\n" "$SANITIZER" >&2
        exit 2
    }
done

# under_sanitizer TOOL PROGRAM: the exit status is 9 if the tool finds something.
under_sanitizer() {
    type -P compute-sanitizer > /dev/null || {
        echo "skip - what $1 finds in kernels: there is no compute-sanitizer"
        return 0
    }
    CK_FORK=no timeout -k 5 "$limit" compute-sanitizer --tool "$1" --error-exitcode 9 --launch-count "$first_launches" "$2"
}

# launch KIND PATH: runs a test in a subshell, so its environment does not affect later tests.
launch() (
    local program=$BUILD/tests/$2 ranks mpi
    # Each test has its own session folder, open to any user, because an mpirun that ends removes
    # the shared default, which another mpirun may be starting to use.
    mpi=$(mktemp -d /tmp/mpi.XXXXXX) && chmod 1777 "$mpi"
    open_mpi session="$mpi"
    trap 'rm -rf "$mpi"' EXIT
    # Tests of kernels wait for each kernel themselves. Other tests read results at once, so
    # launches must wait. NCCL needs one GPU per rank.
    case $1 in emulated* | cuda*) export CUDA_LAUNCH_BLOCKING=1 EMULATED_GPUS=4 ;; esac
    case $1/$2 in cuda*/common/backend/* | emulated/common/backend/*) export CUDA_LAUNCH_BLOCKING=0 ;; esac
    case $1 in
    script)
        timeout -k 5 "$limit" "./$2"
        return
        ;;
    sanitized-script)
        # A program that ends with an error frees nothing, so leaks do not count.
        BUILD=$BUILD/sanitized ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout -k 5 "$limit" "./$2"
        return
        ;;
    emulated | emulated-nccl) program=$BUILD/tests/$1/$2 ;;
    cuda | cuda-nccl)
        program=$BUILD/tests/$1/$2
        export CK_FORK=no # opening a GPU takes longer than a test
        ;;
    cuda-*)
        under_sanitizer "${1#cuda-}" "$BUILD/tests/cuda/$2"
        return
        ;;
    emulated-sanitized | emulated-nccl-sanitized)
        program=$BUILD/sanitized/tests/${1%-sanitized}/$2
        export CK_FORK=no
        ;;
    sanitized)
        # All tests of a program run in one process, so leaks are detected only once.
        program=$BUILD/sanitized/tests/$2
        export CK_FORK=no
        ;;
    esac
    if [[ $2 =~ _ranks([0-9])$ ]]; then
        ranks=${BASH_REMATCH[1]}
        open_mpi cores=1
        # Check must not fork where MPI runs. The suppressions of Open MPI's leaks match callers,
        # which requires slow unwinding.
        CK_FORK=no OMP_NUM_THREADS=1 ASAN_OPTIONS=$ASAN_OPTIONS:fast_unwind_on_malloc=0 \
            LSAN_OPTIONS=suppressions=$ROOT/common/tests/leaks.supp:print_suppressions=0 \
            timeout -k 5 "$limit" mpirun -n "$ranks" "$program"
    else
        CK_DEFAULT_TIMEOUT=120 timeout -k 5 "$limit" "$program"
    fi
)

# run_test KIND PATH: runs a test. Its output goes to a log; a file beside the log gets the numbers:
# passed, failed, skipped, status, seconds, CPU seconds.
run_test() {
    local log=$logs/$1/$2.log status failed plan TIMEFORMAT='%R %U %S'
    mkdir -p "${log%/*}"
    { time launch "$1" "$2" >"$log" 2>&1 </dev/null 9>&-; } 2>"$log.times"
    status=$?
    failed=$(grep -c '^not ok' "$log")
    passed=$(grep -c '^ok' "$log")
    skipped=$(grep -c '^skip' "$log")
    if [[ $1 == *script ]] || ((skipped && !passed)); then
        plan=$((passed + failed + skipped))
    else
        plan=$(sed -n 's/^1\.\.\([1-9][0-9]*\)$/\1/p' "$log")
        passed=$((passed - skipped)) # Check prints "ok" for a test that printed "skip" and returned
    fi
    ((failed)) || { ((status == 0)) && ((${plan:-0} != 0 && ${plan:-0} == passed + skipped)); } || failed=-1
    # A traceback is a failure even if the test has ended with status 0.
    ((failed)) || ! grep -q 'Traceback (most recent call last):' "$log" || failed=-1
    echo "$passed $failed $skipped $status $(awk 'END { printf "%.1f %.1f", $1, $2 + $3 }' "$log.times")" >"$log.part" &&
        mv "$log.part" "$log.result"
}

print_details() {
    local log=$logs/$1/$2.log
    if (($3 < 0)); then
        echo "    it ended with status $4 and no failed test; the end of what it printed:"
        { grep -m 6 -E 'runtime error:|ERROR: (Address|Leak)Sanitizer|^========= ' "$log"; tail -n 25 "$log"; } | sed 's/^/    | /'
    elif (($3 > 0)); then
        awk '/^(ok|skip|1\.\.)/ { inside = 0 } /^not ok/ { inside = 1 } inside { print "    " $0 }' "$log" | head -n 60
    fi
    grep '^skip' "$log" | sed 's/^/    /'
}

total_passed=0 total_failed=0 total_skipped=0 failures='' flaky='' flaky_tests=0 failed_once=() times=()
# report KIND PATH [again]: prints a test's result. A first failure does not count, because the test
# runs again.
report() {
    local passed failed skipped status seconds cpu mark=✓ title=$2 lines
    read -r passed failed skipped status seconds cpu <"$logs/$1/$2.log.result"
    case $1 in
    sanitized*) title+=' (sanitized)' ;;
    emulated) title+=' (emulated GPU)' ;;
    emulated-sanitized) title+=' (emulated GPU, sanitized)' ;;
    emulated-nccl) title+=' (emulated NCCL)' ;;
    emulated-nccl-sanitized) title+=' (emulated NCCL, sanitized)' ;;
    cuda) title+=' (GPU)' ;;
    cuda-*) title+=" (GPU, ${1#cuda-})" ;;
    esac
    ((failed == 0)) || mark=✗
    times+=("$(printf '%8s %8s  %s' "$seconds" "$cpu" "$title")")
    lines=$(
        printf '%s %-72s %4d passed%s%s  %6s s  %6s s CPU\n' "$mark" "$title" "$passed" \
            "$( ((failed == 0)) || echo ", $((failed < 0 ? 1 : failed)) failed")" \
            "$( ((skipped == 0)) || echo ", $skipped skipped")" "$seconds" "$cpu"
        print_details "$1" "$2" "$failed" "$status"
    )
    printf '%s\n' "$lines"
    if ((failed != 0)) && [[ ${3:-} != again ]]; then
        failed_once+=("$1 $2")
        printf '%s\n' "$lines" >"$logs/$1/$2.log.first"
        return
    fi
    total_passed=$((total_passed + passed)) total_failed=$((total_failed + (failed < 0 ? 1 : failed)))
    total_skipped=$((total_skipped + skipped))
    if ((failed != 0)); then
        failures+=$lines$'\n'
    elif [[ ${3:-} == again ]]; then
        flaky_tests=$((flaky_tests + 1))
        flaky+=$(cat "$logs/$1/$2.log.first" && echo "  run again:" && printf '%s\n' "$lines" && tail -n 25 "$logs/$1/$2.log" | sed 's/^/    | /')$'\n'
    fi
}

# Three tests on two cores, because even tests that compute wait now and then for ranks to start or
# end.
at_a_time=3
[[ $speed != gpu ]] || at_a_time=2
# Tests that need at most half a core. They run one after another, beside the others.
mostly_wait=(
    common/train/tests/slow_slurm_{train,grade,refused,doctor}.py common/train/tests/slow_emulated_gpu_lacks.py
    grader/tests/slow_{attacks,gradebook,late_rank}.sh grader/tests/{attacks,endings,at_once}.sh
    common/train/tests/sbatch_script.py common/train/tests/test_stall
)

# Runs $at_a_time tests at a time, plus those that mostly wait; reports each when it has ended.
run_side_by_side() {
    local running=() waiting=() test
    for test; do
        [[ " ${mostly_wait[*]} " != *" ${test#* } "* ]] || waiting+=("$test")
    done
    for test in "${waiting[@]}"; do
        # shellcheck disable=SC2086 # two words
        run_test $test
    done &
    for test; do
        [[ " ${mostly_wait[*]} " != *" ${test#* } "* ]] || continue
        # shellcheck disable=SC2086 # two words
        run_test $test &
        running+=("$test")
        while ((${#running[@]} == at_a_time)); do finish_any; done
    done
    while ((${#running[@]} + ${#waiting[@]})); do finish_any; done
}

# Waits until some test has ended; reports the ended ones and removes them from the arrays `running`
# and `waiting`.
finish_any() {
    local status=0
    wait -n || status=$?
    ((status != 127)) || left_alone
    report_ended running
    report_ended waiting
}

report_ended() {
    local -n among=$1
    local test left=()
    for test in "${among[@]}"; do
        if [[ -e $logs/${test/ //}.log.result ]]; then
            # shellcheck disable=SC2086 # two words
            report $test
        else
            left+=("$test")
        fi
    done
    among=("${left[@]}")
}

# Reports tests that left no result, because they were killed together with the subshell that ran
# them.
left_alone() {
    local test result
    for test in "${running[@]}" "${waiting[@]}"; do
        result=$logs/${test/ //}.log.result
        [[ -e $result ]] || echo '0 -1 0 137 0.0 0.0' >"$result"
    done
}

# Runs a failed test again. Its first output stays beside the second as *.log.1.
run_again() {
    local log=$logs/$1/$2.log
    mv "$log" "$log.1"
    rm "$log.result"
    run_test "$1" "$2"
    report "$1" "$2" again
}

main() {
    local tests test
    rm -rf "$logs" "$BALISE_EXPECTED"
    mkdir -p "$logs" "$BALISE_EXPECTED"
    mapfile -t tests < <(in_order)
    run_side_by_side "${tests[@]}"
    [[ ${#failed_once[@]} == 0 ]] || printf '\nWhat failed runs again, alone:\n'
    for test in "${failed_once[@]}"; do
        # shellcheck disable=SC2086 # two words
        run_again $test
    done
    ((flaky_tests <= 2)) || total_failed=$((total_failed + flaky_tests))
    [[ -z $flaky ]] || printf '\nFlaky, failed and then passed alone (a run with three or more is red):\n%s' "$flaky"
    [[ -z $failures ]] || printf '\nWhat failed:\n%s' "$failures"
    if ((${#times[@]} > 10)); then
        printf '\n seconds      CPU  the ten slowest tests\n'
        printf '%s\n' "${times[@]}" | sort -rn | head -n 10
    fi
    echo "$total_passed passed, $total_failed failed, $total_skipped skipped"
    ((total_failed == 0 && total_passed + total_skipped > 0))
}

# Each run deletes the logs of the previous one, so it locks the folder. Tests do not inherit the
# lock, because they may leave processes behind. On a file system without locks, two runs are not
# kept apart.
mkdir -p "$BUILD/tests"
exec 9>>"$BUILD/tests/.lock"
flock -E 75 -n 9
[[ $? != 75 ]] || {
    printf 'error: another run of the tests writes its logs to %s\n  HINT: wait for its end, or run these in another folder: BUILD=other\n' "$logs" >&2
    exit 2
}
main | tee "$BUILD/tests/summary.txt"
exit "${PIPESTATUS[0]}"
