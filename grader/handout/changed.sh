#!/usr/bin/env bash
# changed.sh: are the kit's files as they were handed out? Prints a line about any that are not;
# this does not affect the verdict.
[ -r grader/kit.sums ] || exit 0
changed=$(sha256sum -c --quiet grader/kit.sums 2> /dev/null | sed 's/: FAILED.*//' | sed -n 1,3p | tr '\n' ' ')
[ -z "$changed" ] && exit
# shellcheck source-path=SCRIPTDIR source=../../common/base/say.sh
source "$(dirname "$0")/../../common/base/say.sh"
{
    tell 'note: the kit differs from the handout: %s' "$changed"
    tell_in_columns "$(say '  HINT: ')$(say 'your instructor grades with the original kit; unpack it again beside this folder, and copy your labs into it')"
} >&2
