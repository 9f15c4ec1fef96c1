#!/usr/bin/env bash
# settings.sh: reads common/setup/settings, the table of make's commands and their settings, for
# check.sh, help.sh and the makefiles. It runs in the kit's folder.
#   settings.sh options COMMAND    the settings that its program has as options: tp=TP max-predictions=MAX_PREDICTIONS ...
#   settings.sh texts              the texts of the table, one a line

settings_table=common/setup/settings

# rows TOPIC: the rows of make help TOPIC, as INDENT, what is written, and its text; tabs in between.
# TOPIC may be all.
rows() {
    awk -v asked="$1" '
        function end() {
            if (begun && left text != "") { printf "%s%s\t%s\t%s\n", gap, indent, left, text; gap = ""; shown = 1 }
            else if (begun && shown) gap = "0\t\t\n"
            begun = 0
        }
        /^#/ || /^[+-] / { next }
        /^== / { end(); topic = $2; gap = ""; next }
        asked != "all" && topic != asked { next }
        { body = $0; sub(/^ +/, "", body) }
        /^     / { text = text (text == "" ? "" : " ") body; next }
        { end(); begun = 1; indent = 0; left = ""; text = body }
        /^ / || /^make / || /^build\// {
            indent = /^ / ? 7 : 2
            at = index(body "  ", "  "); left = substr(body, 1, at - 1)
            text = substr(body, at); sub(/^ +/, "", text)
        }
        END { end() }' "$settings_table"
}

# The commands that the help names.
commands() {
    grep -v '^[#+-]' "$settings_table" | grep -oE '\bmake [a-z-]+' | cut -d ' ' -f 2 | sort -u
}

# The names of all settings.
settings() {
    grep -v '^#' "$settings_table" | grep -oE '\b[A-Z_]+=' | tr -d = | sort -u
}

# settings_of COMMAND: the names of its settings, besides those of every command.
settings_of() {
    local word
    # shellcheck disable=SC2013 # words
    for word in $(awk -v name="$1" '
        function show(names) { gsub(/[^A-Z_=]/, " ", names); gsub(/=/, "= ", names); for (i = split(names, word); i > 0; i--) if (word[i] ~ /=$/) print word[i] }
        /^#/ { next }
        /^[+] / { colon = index($0, ":"); of = " " substr($0, 3, colon - 3) " " }
        /^[+] / && index(of, " " name " ") { print substr($0, colon + 1) }
        /^[^ ]/ || /^$/ { mine = /^make / && $2 == name }
        mine { show($0) }' "$settings_table"); do
        case $word in *=) echo "${word%=}" ;; *) settings_of "$word" ;; esac
    done
}

# options_of COMMAND: its settings that are options of its program.
options_of() {
    local name not_options
    not_options=" $(sed -n 's/^- //p' "$settings_table") $(settings_of every | paste -sd ' ') "
    for name in $(settings_of "$1" | sort -u); do
        [[ $not_options == *" $name "* ]] || printf '%s=%s\n' "$(tr A-Z_ a-z- <<< "$name")" "$name"
    done
}

# on_topic SETTING: the command that prints the part of the help with this setting.
on_topic() {
    awk -v name="(^|[^A-Z_])$1=" '/^#/ || /^[+-] / { next } /^== / { topic = " " $2 } $0 ~ name { print "make help" topic; exit }' "$settings_table"
}

case ${BASH_SOURCE[0]}:$0:${1-} in
"$0:$0:options") options_of "$2" | paste -sd ' ' ;;
"$0:$0:texts") rows all | cut -f 3 | grep . ;;
esac
