#!/usr/bin/env bash
# run.sh runs executable files, so a test script that begins with #! but is not executable would
# never run.
set -uo pipefail
cd -- "${ROOT:?}" || exit 2
sentence="every test script that begins with #! is executable, so that it runs"
forgotten=
for path in common/{,*/}tests/*.{sh,py} {grader,data,slides}/tests/*.{sh,py}; do
    if [[ -f $path && ! -x $path && $(head -c 2 "$path") == '#!' ]]; then forgotten+=" $path"; fi
done
if [ -z "$forgotten" ]; then
    echo "ok - $sentence"
else
    printf 'not ok - %s\n    chmod +x%s\n' "$sentence" "$forgotten"
    exit 1
fi
