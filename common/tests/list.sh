# shellcheck shell=bash
# Sourced by run.sh; uses its settings ($speed, $name, $tools). Which tests there are, how each is
# run, and in which order they start.

is_slow() {
    [[ ${1##*/} =~ ^(test_)?slow_ ]]
}

# list_tests: one line per test: how it is run, and its path.
list_tests() {
    local path
    if [[ $speed == gpu ]]; then
        list_gpu_tests
        return
    fi
    for path in common/tests/* common/*/tests/* grader/tests/* data/tests/* slides/tests/*; do
        [[ $path == *"$name"* && $path != common/tests/run.sh ]] || continue
        if is_slow "$path"; then
            [[ $speed == slow ]] || continue
        elif [[ $speed == slow ]]; then
            [[ $path != common/backend/tests/test_*.c ]] || echo "sanitized ${path%.c}"
            [[ $path != */test_*.c ]] || list_on_gpu emulated "$path" -sanitized # the slowest way
            continue
        fi
        case $path in
        */test_*.c)
            echo "program ${path%.c}"
            is_slow "$path" || [[ $path == common/backend/* ]] || echo "sanitized ${path%.c}"
            list_on_gpu emulated "$path"
            ;;
        *.sh | *.py)
            [[ ! -x $path ]] || echo "script $path"
            # these run with sanitizers too: most of them test bad input to the kit's programs
            [[ $path != common/data/tests/test_* && $path != common/train/tests/bad_input* ]] || echo "sanitized-script $path"
            ;;
        esac
    done
}

# list_on_gpu BACKEND PATH [-sanitized]: lists the ways to run a test program on this backend.
list_on_gpu() {
    local on
    for on in "$1" "$1-nccl"; do
        if [[ $on == *-nccl ]]; then [[ " ${OVER_NCCL:-} " == *" $2 "* ]] || continue; else [[ " ${ON_GPU:-} " == *" $2 "* ]] || continue; fi
        echo "$on${3:-} ${2%.c}"
    done
}

list_gpu_tests() {
    local path tool
    for path in $ON_GPU; do
        [[ $path == *"$name"* ]] || continue
        list_on_gpu "$BACKEND" "$path"
        [[ $BACKEND != emulated || ${SANITIZER:-} == off ]] || list_on_gpu emulated "$path" -sanitized
    done
    for path in common/*/tests/on_gpu.* grader/tests/*on_gpu.*; do
        [[ $path != *"$name"* ]] || echo "script $path"
    done
    [[ $BACKEND == cuda ]] || return 0
    for tool in $tools; do
        for path in $ON_GPU; do
            [[ $path != */test_kernels_* || $path != *"$name"* ]] || echo "cuda-$tool ${path%.c}"
        done
    done
}

# The longest tests, roughly from the longest to the shortest (CONTRIBUTING.md lists their seconds).
# They start before all others, so no core is idle at the end. cuda_toolkit, docs and gpu_report
# build in $BUILD for minutes. Only one make at a time may build there, so these three start apart
# from each other, after the tests of Slurm.
longest_first=(
    grader/tests/slow_mutants.sh common/train/tests/slow_slurm_{refused,train,grade}.py grader/tests/slow_attacks.sh
    common/data/tests/slow_real_tokenizers.py common/tests/slow_sources_clang_tidy.sh grader/tests/slow_course.sh
    common/train/tests/slow_real_reviews.py grader/tests/slow_commands.sh common/backend/tests/slow_cuda_toolkit.sh
    common/setup/tests/slow_bare_machine.sh common/setup/tests/slow_docs.sh grader/tests/slow_on_gpu.sh
    common/train/tests/slow_layouts.py slides/tests/slow_slides.sh common/backend/tests/slow_gpu_report.sh
    common/train/tests/slow_emulated_gpu_lacks.py grader/tests/slow_gradebook.sh
    common/backend/tests/test_kernels_attention common/backend/tests/test_kernels_causal
    grader/tests/handout.sh common/train/tests/on_gpu.py grader/tests/attacks.sh grader/tests/gradebook.sh grader/tests/course.sh
    grader/tests/local_cases.sh grader/tests/report.sh grader/tests/mutants_red.sh grader/tests/mutants_sample.sh
    common/train/tests/layouts.py grader/tests/formats.sh grader/tests/endings.sh grader/tests/loop.sh
    common/setup/tests/doctor_sees_what_is_missing.sh common/train/tests/checkpoint.py grader/tests/on_gpu.sh grader/tests/skeletons.sh
)
in_order() { # the tests in the order in which they start: the longest, then scripts, then programs
    list_tests | awk -v longest="${longest_first[*]}" 'BEGIN { count = split(longest, paths, " "); for (i = 1; i <= count; i++) place[paths[i]] = i }
        { print ($2 in place ? place[$2] : $1 ~ /script$/ ? 1000 : 2000), $0 }' | sort -s -n -k 1,1 | cut -d ' ' -f 2-
}
