#!/usr/bin/env bash
# grade-one.sh BUILD LAB AREA SEED SANDBOX [CASES]: compiles, links and judges one student's lab in
# its own folder. AREA/labs holds the student's files; AREA gets the object, the runner, report.txt
# and verdict.json. The runtime's objects are those of BUILD.
set -euo pipefail
exec < /dev/null > "$3/errors" 2>&1
build=$1 lab=$2 area=$3 seed=$4 sandbox=$5 cases=${6:-}
# shellcheck source=/dev/null # made by make
. "$build/generated/grading.sh"
number=$(printf %02d "$lab")
variable() {
    local name=$1_$lab
    printf '%s' "${!name}"
}

runner=$area/$number-student object=$area/student/$lab.o
mkdir -p "$area/student"
grader/compile-lab.sh "$lab" "$area/labs/$(variable FILE)" "$object" "$(variable EXPORTS)" > "$area/warnings" 2>&1 || [ -s "$object.failed" ] || common/base/disk.sh "$area"
# The compiler's messages name the file as the student knows it.
[ ! -e "$object.failed" ] || sed -i "s,$area/labs/,labs/,g" "$object.failed"
# shellcheck disable=SC2046 # a list of files
grader/link-runner.sh "$lab" "$runner" "$object" $(variable OBJECTS) || common/base/disk.sh "$area"
# The limit keeps one student from delaying the others. An honest lab takes less than a hundredth of
# it.
exec timeout -k 10 30m "$build/grade" --lab "$lab" --author student --runners "$area" --labs "$area/labs" --seed "$seed" --short-lived \
    ${sandbox:+--sandbox "$sandbox"} ${cases:+--cases "$cases"} --format json --out "$area/verdict.json" > "$area/report.txt"
