#!/usr/bin/env bash
# figures.sh BUILD COMMAND...: draws the slides' figures for the labs' pages, with this command
# (make figures). If it cannot, says so in one line: the pages then have no figures.
set -euo pipefail
cd -- "${BASH_SOURCE[0]%/*}/../../.."
build=$1 log=$1/docs-work/figures.log why=
mkdir -p "${log%/*}"
missing=$(slides/build.sh --lacks figures)
if [[ -n $missing ]]; then
    why="there is no ${missing//$'\n'/, } (common/setup/setup.sh docs)"
elif ! "${@:2}" > "$log" 2>&1; then
    why="they could not be drawn, see $log"
fi
if [[ -n $why ]]; then
    rm -f "$build/slides/figures/list.tsv"
    echo "the labs' pages have no figures: $why" >&2
fi
