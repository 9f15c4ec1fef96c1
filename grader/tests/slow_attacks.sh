#!/usr/bin/env bash
# Labs that attack their grader (see attacks.bash), with a sandbox and without one; if root runs the
# test, also as an ordinary user. Does not repeat what attacks.sh does.
# shellcheck source=grader/tests/attacks.bash
. "$(dirname "$0")/attacks.bash"
users=("")
[ "$(id -u)" != 0 ] || users+=(65533)
builds_slowly
for user in "${users[@]}"; do
    go_as "$user"
    for WAY in on off; do
        echo "# as user $("${who[@]}" id -u), sandbox $WAY"
        if [ "$WAY" = on ] && ! has_sandbox; then
            echo "skip - attacks in a sandbox: $(sed -n 's/^error: //p' out)"
            continue
        fi
        case $user$WAY in
        on) rest=(itself spawning processes files) ;;
        off) rest=(signals memory endings) ;;
        *on) rest=(walls stays_inside itself spawning signals processes files memory endings interrupted) ;;
        *) rest=(itself spawning signals processes files memory endings interrupted) ;;
        esac
        for attacks in "${rest[@]}"; do "$attacks"; done
        endings_slowly
    done
done
finish
