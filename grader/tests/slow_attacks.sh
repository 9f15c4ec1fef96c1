#!/usr/bin/env bash
# Labs that attack their grader: see attacks.bash. In a sandbox and without one; as root also on behalf of an ordinary user.
# shellcheck source=grader/tests/attacks.bash
. "$(dirname "$0")/attacks.bash"
users=("")
[ "$(id -u)" != 0 ] || users+=(65533)
builds
builds_slowly
for user in "${users[@]}"; do
    go_as "$user"
    for WAY in on off; do
        echo "# as user $("${who[@]}" id -u), sandbox $WAY"
        if [ "$WAY" = on ]; then
            if ! has_sandbox; then
                echo "skip - attacks in a sandbox: $(sed -n 's/^error: //p' out)"
                continue
            fi
            walls
            stays_inside
        fi
        signals
        processes
        files
        memory
        endings
        endings_slowly
        interrupted
    done
done
finish
