#!/bin/sh
# build/tokenize on the committed vocabulary, and on input that it must reject.
set -u
vocabulary=$ROOT/data/reviews/vocab.txt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

id() { # token
    awk -v token="$1" '$0 == token { print NR - 1 }' "$vocabulary"
}

check() { # sentence, expected, actual
    if [ "$2" = "$3" ]; then
        echo "ok - $1"
    else
        printf 'not ok - %s\n    expected: %s\n    got:      %s\n' "$1" "$2" "$3"
    fi
}

tokenize() {
    "$BUILD/tokenize" --vocab "$vocabulary" "$@" 2>"$folder/errors"
}

refused() { # sentence, words of the error, arguments; tokenize reads the standard input
    sentence=$1 pattern=$2
    shift 2
    "$BUILD/tokenize" "$@" >"$folder/output" 2>"$folder/errors"
    status=$?
    if [ $status -eq 2 ] && grep -q "^error: " "$folder/errors" && grep -q "^  HINT: " "$folder/errors" &&
        grep -q -e "$pattern" "$folder/errors"; then
        echo "ok - $sentence"
    else
        echo "not ok - $sentence"
        echo "    exit status $status, expected 2 and an error with '$pattern' and a HINT"
        sed 's/^/    /' "$folder/errors"
    fi
}

cls=$(id '[CLS]') sep=$(id '[SEP]') film=$(id film) stop=$(id .)
check "a line becomes its ids with [CLS] and [SEP]" "$cls $film $stop $sep" "$(echo 'Film.' | tokenize)"
check "a word beyond the vocabulary becomes pieces" "$cls $(id z) $(id '##z') $(id '##x') $sep" \
    "$(echo 'zzx' | tokenize)"
check "an empty line becomes [CLS] and [SEP]" "$cls $sep
$cls $sep
$cls $film $sep" "$(printf '\n\nfilm' | tokenize)"
check "--seq truncates, and keeps [SEP]" "$cls $film $film $sep" "$(echo 'film film film film' | tokenize --seq 4)"
check "the default is 512 ids" 512 "$(awk 'BEGIN { for (i = 0; i < 900; i++) printf "film " }' | tokenize | wc -w)"
check "no input gives no output" 0 "$(tokenize </dev/null | wc -c)"
check "carriage returns and zero bytes change nothing" "$cls $film $sep" "$(printf 'fi\0lm\r\n' | tokenize)"

for kind in gpt2 llama; do
    text=$(printf 'Once upon a time,\n  Zo\303\251 was \342\200\234sad\342\200\235.')
    ids=$(printf '%s' "$text" | "$BUILD/tokenize" --vocab "$ROOT/data/stories/$kind" --text)
    check "--text gives one line of ids, and --decode the text of stories/$kind" "1 $text" \
        "$(echo "$ids" | wc -l) $(echo "$ids" | "$BUILD/tokenize" --vocab "$ROOT/data/stories/$kind" --decode)"
done
check "--text has no begin and end, and no limit" "600" \
    "$(awk 'BEGIN { for (i = 0; i < 600; i++) print "film" }' | tokenize --text | wc -w)"
for ids in 1x -1 99999999999999999999 "5 $(wc -l <"$vocabulary")"; do
    echo "$ids" >"$folder/ids"
    refused "--decode refuses '$ids'" "is not an id" --vocab "$vocabulary" --decode <"$folder/ids"
done
printf '5 6\0 7' >"$folder/zero"
refused "--decode refuses a zero byte" "a zero byte at byte 4" --vocab "$vocabulary" --decode <"$folder/zero"
for two in '--text --decode' '--seq=9 --text' '--decode --seq=9'; do
    # shellcheck disable=SC2086
    refused "$two is refused" "cannot be combined" --vocab "$vocabulary" $two </dev/null
done
printf 'a\nb\351' >"$folder/latin1"
refused "--text names the invalid byte" "byte 0xE9 at byte 2 of the line" --vocab "$vocabulary" --text <"$folder/latin1"
awk 'BEGIN { printf "a "; for (i = 0; i < 1048577; i++) printf "b" }' >"$folder/long"
for how in --text --seq=4; do
    refused "SentencePiece refuses a long word with $how" "must encode 1048577 bytes of the text at once" \
        --vocab "$ROOT/data/stories/llama" "$how" <"$folder/long"
    check "BERT's tokenizer takes a long word with $how" "1" "$(tokenize "$how" <"$folder/long" | wc -l)"
done

refused "--vocab is needed" "--vocab is missing" </dev/null
refused "an unknown option is refused" "unknown option '--vocabulary-file'" --vocabulary-file x </dev/null
refused "a value is needed" "--vocab needs a value" --vocab </dev/null
refused "a stray argument is refused" "'films.txt'" --vocab "$vocabulary" films.txt </dev/null
for seq in 1 0 2000000 -3 abc 12x '' 99999999999999999999; do
    refused "--seq '$seq' is refused" "SEQ cannot be '$seq'" --vocab "$vocabulary" --seq "$seq" </dev/null
done
refused "a missing vocabulary is refused" "at $folder/none.txt" --vocab "$folder/none.txt" </dev/null
grep -v -F '[UNK]' "$vocabulary" >"$folder/vocab.txt"
refused "a vocabulary without [UNK] is refused" "no \[UNK\]" --vocab "$folder/vocab.txt" </dev/null
printf 'film\ncaf\351\n' | refused "invalid UTF-8 is refused with its line" "line 2" --vocab "$vocabulary"
check "the lines before an invalid one are printed" "$cls $film $sep" "$(cat "$folder/output")"
if [ -w /dev/full ]; then
    echo film | "$BUILD/tokenize" --vocab "$vocabulary" >/dev/full 2>"$folder/errors"
    check "output that cannot be written is an error" "2 1" "$? $(grep -c 'could not be written completely' "$folder/errors")"
else
    echo "skip - output that cannot be written is an error: there is no /dev/full"
fi
