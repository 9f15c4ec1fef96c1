#!/usr/bin/env bash
# grade-one.sh BUILD LAB AREA SEED SANDBOX CASES [LABS]: compiles, links and judges one student's
# lab in its own folder. AREA/labs holds the student's files; AREA gets the object, the runner,
# report.txt and verdict.json. The runtime's objects come from BUILD. CASES may be empty. With LABS,
# the lab is linked with the student's own LABS instead of the reference, and trains instead of
# being judged.
set -euo pipefail
exec < /dev/null > "$3/errors" 2>&1
build=$1 lab=$2 area=$3 seed=$4 sandbox=$5 cases=$6 labs=${7:-}
# shellcheck source=/dev/null # made by make
. "$build/generated/grading.sh"
number=$(printf %02d "$lab")
variable() { # NAME LAB
    local name=$1_$2
    printf '%s' "${!name}"
}
compile() { # LAB
    local object=$area/student/$1.o
    grader/compile-lab.sh "$1" "$area/labs/$(variable FILE "$1")" "$object" "$(variable EXPORTS "$1")" > "$area/warnings" 2>&1 || [ -s "$object.failed" ] || common/base/disk.sh "$area"
    # The compiler's messages name the file as the student knows it.
    [ ! -e "$object.failed" ] || sed -i "s,$area/labs/,labs/,g" "$object.failed"
}

runner=$area/$number-student objects=$(variable OBJECTS "$lab") judged=(--short-lived ${cases:+--cases "$cases"})
mkdir -p "$area/student"
ln -sf "$PWD/$build/runners/idle" "$area/idle"
ln -sfn "$PWD/common" "$area/common" # for #include "../../common/balise.h", as editors write it
compile "$lab"
for own in $labs; do
    compile "$own"
    objects=${objects//"$build/labs/solution/$own.o"/$area/student/$own.o}
    judged=(--throughput)
done
# shellcheck disable=SC2086 # a list of files
grader/link-runner.sh "$lab" "$runner" "$area/student/$lab.o" $objects || common/base/disk.sh "$area"
# A limit ended a build: a slow machine may have been the reason (gradebook/jobs.c).
for file in "$area"/student/*.again "$runner.again"; do
    [ ! -e "$file" ] || touch "$area/again"
done
# The limit keeps one student from delaying the others. An honest lab takes less than a hundredth of
# it.
exec timeout -k 10 30m "$build/grade" --lab "$lab" --author student --runners "$area" --labs "$area/labs" --seed "$seed" \
    --sandbox "$sandbox" "${judged[@]}" --format json --out "$area/verdict.json" > "$area/report.txt"
