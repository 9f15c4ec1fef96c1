#!/usr/bin/env bash
# changed.sh: are the files of the kit as they were handed out? A line says what is not; the verdict is not held up by it.
[ -r grader/kit.sums ] || exit 0
changed=$(sha256sum -c --quiet grader/kit.sums 2> /dev/null | sed 's/: FAILED.*//' | head -3 | tr '\n' ' ')
[ -z "$changed" ] || printf 'note: the kit is not as it was handed out: %s\n  HINT: your instructor grades with the kit as it was; unpack it again beside this folder, and copy your labs there\n' "$changed" >&2
