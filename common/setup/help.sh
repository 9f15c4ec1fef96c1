#!/usr/bin/env bash
# help.sh: what make help says, in the reader's language; the "sentence" that is looked up is the name of the file.
set -euo pipefail
source "$(dirname "$0")/../base/say.sh"
file=$(say 'common/setup/help.txt')
[ -r "$file" ] || file=common/setup/help.txt
cat "$file"
