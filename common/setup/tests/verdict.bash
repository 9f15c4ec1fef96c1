# shellcheck shell=bash
# Sourced by tests of what a program says: the file said in the folder $work.

failures=0 reasons=()

# verdict SENTENCE: prints the result of the test that ends here, which failed if there are reasons.
verdict() {
    if ((${#reasons[@]} == 0)); then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '    %s\n' "${reasons[@]}"
        sed 's/^/    | /' "$work/said"
        failures=$((failures + 1))
    fi
    reasons=()
}
