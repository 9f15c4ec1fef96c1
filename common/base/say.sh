# shellcheck shell=bash
# Sourced by scripts that print messages. `say SENTENCE` prints it in the reader's language (see
# common/base/language.h), or in English without gettext. common/po/words.mk makes the locale.
say() {
    local asked=${LC_ALL:-${LC_MESSAGES:-${LANG:-}}} languages=${LANGUAGE:-}
    case $asked in C | POSIX) languages=en ;; esac
    LOCPATH=${TEXTDOMAINDIR:-} LC_ALL=messages.UTF-8 LANGUAGE=${languages:-$asked} gettext "$1" 2> /dev/null || printf '%s' "$1"
}

# padded COLUMNS TEXT: prints the text, padded with blanks to this width. printf counts bytes, and
# an accented letter has two.
padded() {
    local LC_ALL=C.UTF-8
    printf '%s%*s' "$2" $(($1 > ${#2} ? $1 - ${#2} : 0)) ''
}

# said FORMAT ARGUMENTS...: prints a message in the reader's language.
said() {
    local format
    format=$(say "$1")
    shift
    # shellcheck disable=SC2059 # the format is a sentence
    printf "$format" "$@"
}

# tell FORMAT ARGUMENTS...: the same, as a line.
tell() {
    printf '%s\n' "$(said "$@")" 2> /dev/null || output_is_lost
}

# tell_in_columns LINE: prints a line on stderr. On a terminal, it is broken between words to fit 80
# columns.
tell_in_columns() {
    local LC_ALL=C.UTF-8 rest=$1 head
    while [ -t 2 ] && ((${#rest} > 80)); do
        head=${rest:0:81}
        [[ ${head:4} == *' '* ]] || break
        printf '%s\n' "${head% *}"
        rest="    ${rest#"${head% *} "}"
    done
    printf '%s\n' "$rest"
} >&2

# complain SENTENCE HINT [WHERE]: prints an error on stderr. give_up takes the same arguments and
# also ends the script.
complain() {
    tell_in_columns "$(say 'error: ')$1"
    [ -z "${3:-}" ] || tell '  at %s' "$3"
    tell_in_columns "$(say '  HINT: ')$2"
} >&2
give_up() {
    complain "$@"
    exit 2
}

# output_is_lost: ends the script because its output could not be written.
output_is_lost() {
    give_up "$(say 'the output could not be written completely')" "$(say 'free some space, then run the command again')"
}

# stop_make SENTENCE HINT: prints an error on stderr, and on stdout the words with which make's
# $(error) ends; then ends the script.
stop_make() {
    complain "$1" "$2"
    say 'see the error above'
    exit
}
