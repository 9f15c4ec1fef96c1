#!/bin/sh
# The committed reviews and stories are those that data/generate*.py write, and the committed
# vocabularies can spell all of them.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

verdict() { # sentence, exit status, file with detail
    if [ "$2" -eq 0 ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        head -5 "$3" | sed 's/^/    /'
    fi
}

python3 "$ROOT/data/generate.py" "$folder/reviews" >"$folder/log" 2>&1 &&
    diff -r "$ROOT/data/reviews" "$folder/reviews" >>"$folder/log" 2>&1
verdict "generate.py reproduces the committed reviews byte for byte" $? "$folder/log"

unknown=$(awk '$0 == "[UNK]" { print NR - 1 }' "$ROOT/data/reviews/vocab.txt")
cat "$ROOT/data/reviews/train.csv" "$ROOT/data/reviews/test.csv" |
    "$BUILD/tokenize" --vocab "$ROOT/data/reviews/vocab.txt" >"$folder/ids" 2>"$folder/log"
test $? -eq 0 && test -s "$folder/ids" && ! grep -n -w "$unknown" "$folder/ids" >>"$folder/log"
verdict "the vocabulary spells every generated word" $? "$folder/log"

python3 "$ROOT/data/generate_stories.py" "$folder/stories" >"$folder/log" 2>&1 &&
    diff -r "$ROOT/data/stories" "$folder/stories" >>"$folder/log" 2>&1
verdict "generate_stories.py reproduces the committed stories and tokenizers byte for byte" $? "$folder/log"

for tokenizer in gpt2 llama; do
    "$BUILD/tokenize" --vocab "$ROOT/data/stories/$tokenizer" --text <"$ROOT/data/stories/train.txt" >"$folder/ids" &&
        "$BUILD/tokenize" --vocab "$ROOT/data/stories/$tokenizer" --decode <"$folder/ids" |
        cmp - "$ROOT/data/stories/train.txt" >"$folder/log" 2>&1
    verdict "the stories come back from the ids of stories/$tokenizer" $? "$folder/log"
done

du -cb "$ROOT/data/reviews"/* "$ROOT/data/stories"/* | awk 'END { print; exit !($1 < 1000000) }' >"$folder/log"
verdict "the committed data stay below 1 MB" $? "$folder/log"
