#!/usr/bin/env bash
# build.sh BUILD     makes BUILD/slides/balise.pdf, balise-notes.pdf, and in French balise.fr.pdf and
#                    balise-notes.fr.pdf (make slides)
# build.sh --figures BUILD  makes BUILD/slides/figures/NAME.svg of each figure that has an
#                    alternative text, and list.tsv: lab, name, alternative text (make figures)
# build.sh --lacks [figures]  prints what is missing for the slides, or for the figures
#
# Every LaTeX warning is an error: overfull boxes, missing references and fonts, characters that a
# font lacks. The files get their names only when they are complete.
set -euo pipefail
cd -- "${BASH_SOURCE[0]%/*}/.."
export LC_ALL=C.UTF-8 LANGUAGE=en
source common/base/say.sh
most_passes=4

# The programs and files that the slides need and that are missing; lacks figures: that the figures
# need.
lacks() {
    local name
    for name in pdflatex afm2tfm kpsewhich ${1:+pdf2svg}; do type -P "$name" > /dev/null || echo "$name"; done
    type -P kpsewhich > /dev/null || return 0
    for name in beamer.cls tikz.sty listings.sty booktabs.sty lmodern.sty tgheros.sty qhvri.afm; do
        kpsewhich "$name" > /dev/null || echo "$name"
    done
}

need_latex() { # [figures]
    local missing
    missing=$(lacks "$@")
    [[ -z $missing ]] || give_up "the ${1:-slides} need LaTeX, which lacks ${missing//$'\n'/ }" \
        'common/setup/setup.sh docs installs it; on a cluster: module load texlive'
}

pass() { # NAME FIRST-LINE
    (
        cd "$folder/$1"
        max_print_line=10000 TEXINPUTS=".:$OLDPWD/slides:$folder:" TFMFONTS="$folder:" ENCFONTS="$folder:" pdflatex -interaction=nonstopmode -halt-on-error -file-line-error \
            -no-shell-escape -jobname="$1" "$2" > stdout.txt 2>&1
    )
}

# make_greek: makes greek.tfm and greek.enc, the letters of the slides' font that style.tex names. TeX
# Gyre has them in no encoding of its own.
make_greek() {
    local none
    mapfile -t none < <(printf '/.notdef%.0s\n' {5..256})
    printf '%s\n' '/Greek [' /alpha /beta /eta /minus "${none[@]}" '] def' > "$folder/greek.enc"
    afm2tfm "$(kpsewhich qhvri.afm)" -T "$folder/greek.enc" "$folder/greek.tfm" > /dev/null
}

# The first error in a log, as LaTeX reports it: file:line: message.
say_error() { # LOG
    local line
    line=$(grep -a -m 1 -E '^[^ :]+:[0-9]+: |^! ' "$1" || true)
    if [[ $line =~ ^([^:]+:[0-9]+):\ (.*)$ ]]; then
        give_up "LaTeX: ${BASH_REMATCH[2]}" "the whole log: $1" \
            "slides/${BASH_REMATCH[1]##*/slides/}"
    fi
    give_up "LaTeX: ${line:-it printed no error}" "the whole log: $1"
}

# What must not appear in the last pass's log, with its chapter.
warnings() { # LOG
    awk '/^@slides/ { where = substr($0, 2) }
        /^(Over|Under)full \\[hv]box|Warning: |^Missing character|pdfTeX warning/ { print where ": " $0 }' "$1"
}

# What a pass leaves for the next one; the notes leave the slides' titles.
left_behind() { # NAME
    cat "$folder/$1/$1".{aux,nav,out,titles} 2> /dev/null | sha256sum || true
}

# A pass that fails may have read what a killed build left: it runs again without these files.
compile() { # NAME FIRST-LINE
    local i before
    mkdir -p "$folder/$1"
    for ((i = 0; i < most_passes; i++)); do
        before=$(left_behind "$1")
        pass "$1" "$2" || { rm -f "$folder/$1/$1".{aux,nav,out,titles} && pass "$1" "$2"; } || return 1
        [[ $(left_behind "$1") != "$before" ]] || return 0
    done
}

accept() { # NAME
    local log=$folder/$1/$1.log found
    found=$(warnings "$log")
    if [[ -n $found ]]; then
        printf '%s\n' "$found" | head -20 >&2
        give_up "LaTeX printed warnings about the slides" \
            "the lines above name the lines of a chapter; the whole log: $log"
    fi
}

# Compiles the slides and the notes of a language at the same time.
slides_and_notes() { # LANG, empty for English
    local name status=0 jobs=()
    compile "balise$1" "\\def\\lang{$1}\\input{balise.tex}" &
    jobs+=($!)
    compile "balise-notes$1" "\\def\\lang{$1}\\def\\WithNotes{}\\input{balise.tex}" &
    jobs+=($!)
    for name in "${jobs[@]}"; do wait "$name" || status=1; done
    if ((status)); then
        for name in "balise$1" "balise-notes$1"; do
            ! grep -a -q -E '^[^ :]+:[0-9]+: |^! |Emergency stop' "$folder/$name/$name.log" || say_error "$folder/$name/$name.log"
        done
        give_up 'pdflatex did not run' "see $folder/balise$1/stdout.txt"
    fi
    accept "balise$1"
    accept "balise-notes$1"
}

# Draws the figures as pages of one document, and each page as an SVG. Renames the list last, so it
# exists only if all figures do.
draw_figures() {
    local name number=0
    rm -f "$folder"/{*.svg,list.tsv}
    BUILD=$build /usr/bin/python3 -B slides/compute.py "$folder"
    /usr/bin/python3 -B slides/figures.py "$folder"
    make_greek
    compile figures '\def\lang{}\def\FiguresOnly{}\input{balise.tex}' || say_error "$folder/figures/figures.log"
    accept figures
    pdf2svg "$folder/figures/figures.pdf" "$folder/figures/%d.svg" all
    while IFS=$'\t' read -r _ name _; do
        mv "$folder/figures/$((++number)).svg" "$folder/$name.svg"
    done < "$folder/list.new"
    mv "$folder/list.new" "$folder/list.tsv"
}

main() {
    local lang name decks=()
    case $1 in
    --lacks) lacks "${@:2}" && return ;;
    --figures)
        need_latex figures
        build=$(realpath -m "$2")
        folder=$build/slides/figures
        mkdir -p "$folder"
        export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0} FORCE_SOURCE_DATE=1
        draw_figures
        return
        ;;
    esac
    need_latex
    build=$(realpath -m "$1")
    folder=$build/slides
    echo 'making the slides, in English and in French: this takes about two minutes'
    mkdir -p "$folder"
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0} FORCE_SOURCE_DATE=1
    BUILD=$build /usr/bin/python3 -B slides/compute.py "$folder" grader/start
    make_greek
    for lang in '' .fr; do
        slides_and_notes "$lang"
        decks+=("balise$lang" "balise-notes$lang")
    done
    for name in "${decks[@]}"; do mv "$folder/$name/$name.pdf" "$folder/$name.pdf"; done
    sed -n 's/^Output written on .* (\([0-9]* pages\).*/\1/p' "$folder/balise/balise.log" | sed "s#^#$1/slides/balise.pdf, balise-notes.pdf, and .fr.pdf: #"
}

main "$@"
