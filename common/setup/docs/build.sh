#!/usr/bin/env bash
# build.sh BUILD [short]   makes BUILD/docs, the reference as a site (make docs); short: without
#                          graphs of calls and includes
# build.sh --check BUILD   only looks for missing comments and parameters in headers (a few seconds)
# build.sh --lacks         prints the missing programs that the site needs. Without those that draw
#                          formulas, the site shows formulas as LaTeX source.
# build.sh --headers       prints the headers that the site documents
#
# A symbol without a comment, or any Doxygen warning, is an error. The site gets its name only when
# it is complete.
set -euo pipefail
cd -- "${BASH_SOURCE[0]%/*}/../../.."
export LC_ALL=C.UTF-8 LANGUAGE=en
source common/base/say.sh
here=common/setup/docs

needed=(doxygen dot tred)
formulas_need=(latex dvips gs pdf2svg)

# lacks PROGRAM...: prints those that are missing here.
lacks() {
    local name
    for name; do type -P "$name" > /dev/null || echo "$name"; done
}

need_programs() {
    local missing
    missing=$(lacks "${needed[@]}")
    [[ -z $missing ]] || give_up "the reference needs ${missing//$'\n'/, }" \
        'common/setup/setup.sh docs installs what it needs'
}

# Prints the documented headers: all except those of tests and benchmarks, those that would tell
# students which wrong answers the judge knows, and CUDA C++ (.cuh), which is private to the cuda
# backend.
headers() {
    find common grader -name '*.h' -not -path '*/tests/*' -not -path '*/bench/*' -not -path '*/mutants/*' -not -path '*/accepts/*' \
        -not -path grader/judge/diagnose/evidence.h \
        -not -path 'grader/labs/*/*' | sort
}

# Prints the sources that Doxygen reads for call graphs only. If several sources define a function,
# prints the one that a training run uses (the kernels of the cpu backend). Leaves out layers that
# stand in for labs, because students write the labs' functions; sources about wrong answers; and
# the gradebook, because some of its functions have the same names as functions of the judge.
sources() {
    find common grader/{judge,labs,runner} -name '*.c' -not -path '*/tests/*' -not -path '*/bench/*' \
        -not -path 'common/backend/reference/*' -not -path 'common/model/serial/*' -not -path '*/suspects.c' -not -path '*/wrong_operations.c' -not -path '*/evidence*.c' | sort
}

# The texts that become pages. A link to any other text becomes plain text.
pages() {
    echo {,labs/*/,grader/,slides/,common/,common/*/}README.md labs/GLOSSARY.md
}

# Draws a graph of the folders and their includes, without edges that follow from others.
draw_folders() {
    local folder other
    {
        echo 'digraph folders { node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11]; edge [arrowsize=0.7];'
        sed -n 's/.*@defgroup \([a-z]*\) [a-z]*: .*/\1/p' $here/pages/groups.dox | while read -r folder; do
            [[ -d common/$folder ]] || continue
            printf '%s [URL="\\ref %s"];\n' "$folder" "$folder"
            find "common/$folder" -name '*.[ch]' -not -path '*/tests/*' -not -path '*/bench/*' -exec grep -ho '#include "[a-z]*/' {} + |
                sort -u | while IFS='"/' read -r _ other; do [[ $other == "$folder" ]] || echo "$folder -> $other;"; done
        done
        echo '}'
    } > "$work/folders.all"
    tred "$work/folders.all" > "$work/folders.dot" 2> "$work/folders.err"
    [[ ! -s $work/folders.err ]] || give_up 'folders include each other in a circle' \
        "$(head -1 "$work/folders.err")"
}

# Writes what Doxygen reads in place of each header, source and text. Doxygen filters a file several
# times, so its filter only prints what one run of filter.py has written.
filter_files() {
    export DOCS_READ=$work/read
    rm -rf "$DOCS_READ"
    { pages && find common grader -name '*.[ch]' -not -path '*/tests/*'; } | xargs $here/filter.py "$DOCS_READ"
}

# run_doxygen NAME SETTING...: runs Doxygen with additional settings. Its warnings are in
# $work/NAME.warnings.
run_doxygen() {
    # shellcheck disable=SC2016 # the filter's shell expands it
    local name=$1 filter='=show() { cat \"$DOCS_READ$1\"; }; show'
    shift
    {
        cat $here/Doxyfile
        echo "FILTER_PATTERNS = \"*.h$filter\" \"*.c$filter\" \"*README.md$filter\""
        printf '%s\n' "OUTPUT_DIRECTORY = $work/$name" "WARN_LOGFILE = $work/$name.warnings" "DOTFILE_DIRS = $work" "$@"
    } > "$work/$name.doxyfile"
    rm -rf "${work:?}/$name"
    mkdir "$work/$name"
    # If TeX lacks newunicodechar.sty, it finds our empty one: no formula has a character that needs
    # it.
    TEXINPUTS=":$PWD/$here/tex:" doxygen "$work/$name.doxyfile" > "$work/$name.log" 2>&1 ||
        give_up "Doxygen ended early: $(tail -1 "$work/$name.log")" \
            "see $work/$name.log and $work/$name.warnings"
    sed -i "s#^$PWD/##" "$work/$name.warnings"
}

must_say_what_they_are() {
    local header
    header=$(headers | xargs grep -LxF -m 1 '/** @file' | head -1)
    [[ -z $header ]] || give_up "$header does not say what it is" \
        'a header begins with /** @file and, on the next line, what it is about' "$header:1"
}

# Rejects two types of the same name: programs that are never linked together could have them, and
# Doxygen would merge them.
must_have_names_of_their_own() {
    local name both
    name=$(headers | xargs sed -nE 's/^\} ([A-Z][A-Za-z]*);$/\1/p; s/^struct ([A-Z][A-Za-z]*) \{/\1/p' | sort | uniq -d | head -1)
    [[ -n $name ]] || return 0
    both=$(headers | xargs grep -nE "^\} $name;|^struct $name \{" | cut -d: -f1,2 | paste -sd ' ')
    give_up "two headers have a type named $name" \
        'give one of them another name: the reference would mix them up' "${both/ /, }"
}

must_all_have_comments() {
    local bare place
    run_doxygen xml "INPUT = $(headers | tr '\n' ' ')" 'EXTRACT_ALL = YES' 'HAVE_DOT = NO' 'CALL_GRAPH = NO' 'GENERATE_HTML = NO' 'GENERATE_XML = YES' \
        'XML_PROGRAMLISTING = NO'
    if ! bare=$($here/undocumented.py "$work/xml/xml" 2> "$work/symbols"); then
        printf '%s\n' "$bare" | sed 's/: /: no comment says what this is: /' >&2
        place=${bare%%: *}
        give_up "${bare%%$'\n'*} has no comment" \
            'each symbol of a header says what it is: shapes, units, its owner, errors' "$place"
    fi
}

must_not_warn() { # NAME
    local first
    [[ -s $work/$1.warnings ]] || return 0
    head -20 "$work/$1.warnings" >&2
    first=$(grep -m 1 -E '^[^ ]+:[0-9]+: ' "$work/$1.warnings" || head -1 "$work/$1.warnings")
    give_up "Doxygen: ${first##*: warning: }" "all that it says: $work/$1.warnings" \
        "$(grep -oE '^[^ :]+:[0-9]+' <<< "$first" || true)"
}

# Adds to the pages what a screen reader needs and Doxygen 1.9.4 leaves out: the language, the parts
# of a page, its heading, and names of elements without text.
make_readable_aloud() { # FOLDER
    find "$1" -maxdepth 1 -name '*.html' -exec sed -i -E -e '0,/<html /s//<html lang="en" /' \
        -e 's#</div><!-- top -->#&<main>#; s#<!-- start footer part -->#</main><footer>#; s#</address>#&</footer>#' \
        -e 's#<div id="titlearea"#& role="banner"#; s#<div id="main-nav"#& role="navigation" aria-label="Site"#; s#<div id="nav-path"#& role="navigation" aria-label="Path"#' \
        -e 's#<div class="title"#& role="heading" aria-level="1"#' \
        -e 's#<div class="center">(<iframe)#<div class="center" tabindex="0">\1#' \
        -e 's#<iframe scrolling#<iframe title="drawing" scrolling#; s#<iframe src#<iframe title="search results" src#' \
        -e 's#<((pre|div) class="(fragment|dotgraph)"|table class="markdownTable")#& tabindex="0"#g' \
        -e 's#<th class="(markdownTableHead[A-Za-z]*)"></th>#<td class="\1"></td>#g' {} +
    sed -i -e 's#^<div class="contents">#<div class="header"><div class="headertitle"><div class="title" role="heading" aria-level="1">Names</div></div></div>\n&#' \
        -e 's#\(</\?\)h3>#\1h2>#g' "$1"/globals*.html
    sed -i -e 's/id="MSearchField"/& aria-label="Search"/g; s/<div class="sm sm-dox">/<div class="sm sm-dox" role="navigation" aria-label="Menu">/' "$1/menu.js"
}

# Lets the search find "lab 6", "all-reduce" and the terms of the glossary: a blank, "-" and "_" are
# the same, and each term leads to its row.
make_words_findable() { # FOLDER
    local term names file
    while IFS= read -r term; do
        names+="['$(tr '[:upper:] -' '[:lower:]__' <<< "$term" | sed 's/[^a-z0-9]/_5f/g')_0',['$term',['../labs_glossary.html#:~:text=${term// /%20}',1,'term']]],"$'\n'
    done < <(sed -n '/^|---/,$s/^| \([^|]*[^| ]\) *| .*/\1/p' labs/GLOSSARY.md | sed 's/ ([^)]*)//; s/[,;] \| and /\n/g')
    for file in "$1"/search/all_*.js; do
        term=$(sed -n "3s/^  \\['\\(.\\).*/\\1/p" "$file")
        { head -2 "$file" && sed -n "/^\\['$term/p" <<< "$names" && tail -n +3 "$file"; } > "$file.new"
        mv "$file.new" "$file"
    done
    sed -i "s/_20\|_2d/_5f/g" "$1"/search/*_*.js
    sed -i '/^function convertToId/,/{/s/{/{ search = search.replace(\/[ -]\/g, "_");/' "$1/search/search.js"
}

main() {
    local settings=() read only='' no_formulas
    case $1 in
    --check) only=1 && shift ;;
    --lacks) lacks "${needed[@]}" "${formulas_need[@]}" && return ;;
    --headers) headers && return ;;
    esac
    [[ -z $only ]] || needed=(doxygen)
    need_programs
    build=$(realpath -m "$1")
    work=$build/docs-work
    mkdir -p "$work"
    must_say_what_they_are
    must_have_names_of_their_own
    DOCS_TYPES=$(headers | xargs sed -nE 's/^(typedef )?(struct|enum) ([A-Z][A-Za-z]*)[ ;].*/\3/p' | sort -u | tr '\n' ' ')
    DOCS_FUNCTIONS=$(headers | xargs sed -nE 's/^([A-Za-z_][A-Za-z_0-9 ]*[ *]+)([a-z_][a-z_0-9]*)\(.*/\2/p' | sort -u | tr '\n' ' ')
    DOCS_PAGES=$(pages)
    DOCS_FIGURES=$build/slides/figures/list.tsv
    no_formulas=$(lacks "${formulas_need[@]}")
    DOCS_FORMULAS=${no_formulas:+as LaTeX}
    export DOCS_TYPES DOCS_FUNCTIONS DOCS_PAGES DOCS_FIGURES DOCS_FORMULAS
    filter_files
    must_all_have_comments
    [[ -z $only ]] || { must_not_warn xml && return; }
    draw_folders
    read=$(sources)
    [[ ${2:-} != short ]] || read='' settings=('CALL_GRAPH = NO' 'INCLUDE_GRAPH = NO' 'INCLUDED_BY_GRAPH = NO' 'REFERENCED_BY_RELATION = NO')
    [[ ! -e $DOCS_FIGURES ]] || settings+=("HTML_EXTRA_FILES = $(cut -f2 "$DOCS_FIGURES" | sed "s#.*#${DOCS_FIGURES%/*}/&.svg#" | tr '\n' ' ')")
    run_doxygen site "INPUT = $here/pages/main.md $here/pages/labs.md $here/pages/a_call.md $here/pages/groups.dox $(pages) $(headers | tr '\n' ' ') ${read//$'\n'/ }" \
        "${settings[@]}"
    must_not_warn site
    # "More..." becomes "…". A parameter with the name of a function must not link to the function.
    find "$work/site/html" -maxdepth 1 -name '*.html' -exec sed -i -E -e 's#>More\.\.\.</a>#>…</a>#g' \
        -e '/class="memItemRight"/s#([a-z_0-9>] \*?)<a class="el" href="[^"]*">([a-z_]+)</a>([],)[])#\1\2\3#g' {} +
    make_readable_aloud "$work/site/html"
    make_words_findable "$work/site/html"
    # Search results are in an iframe with its own style sheet.
    cat $here/style.css >> "$work/site/html/search/search.css"
    rm -rf "$build/docs.old"
    [[ ! -e $build/docs ]] || mv "$build/docs" "$build/docs.old"
    mv "$work/site/html" "$build/docs"
    rm -rf "$build/docs.old"
    echo "$1/docs/index.html: $(cat "$work/symbols") symbols, $(find "$build/docs" -name '*.html' -not -path '*/search/*' | wc -l) pages${no_formulas:+; formulas are LaTeX: there is no ${no_formulas//$'\n'/, }}"
}

main "$@"
