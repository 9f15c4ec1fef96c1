#!/bin/sh
# Downloads and verifies real data. Keeps existing files, and resumes an interrupted download.
#   download.sh [FOLDER]   (default: the folder of this script)
# ONLY=reviews, the default: the IMDb reviews, as imdb/train.csv and imdb/test.csv, and the
# vocabulary of bert-base-uncased. ONLY=stories: 21,990 TinyStories (19 MB: those held out for
# validation; the others take 1.9 GB) and the tokenizers of GPT-2 and LLaMA 2.
# IMDB_URL, IMDB_MD5, VOCABULARY_URL, VOCABULARY_SHA256 and STORIES may give other files of the same
# format, and their checksums.
set -u

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
. "$here/../common/base/say.sh"
imdb_url=${IMDB_URL:-https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz}
imdb_md5=${IMDB_MD5:-7c2ac02c03563afcf9b574c7e56c153a}
vocabulary_url=${VOCABULARY_URL:-https://huggingface.co/google-bert/bert-base-uncased/resolve/main/vocab.txt}
vocabulary_sha256=${VOCABULARY_SHA256:-07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3}
# Each line has a file, its checksum and its address.
gpt2=https://openaipublic.blob.core.windows.net/gpt-2/encodings/main
stories=${STORIES:-}
[ -n "$stories" ] || stories="
tinystories/TinyStories-valid.txt 94e431816c4cce81ff71e4408ff8d3bda9a42e8d2663986697c3954288cb38b4 https://huggingface.co/datasets/roneneldan/TinyStories/resolve/main/TinyStories-valid.txt
gpt2/encoder.json 196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783 $gpt2/encoder.json
gpt2/vocab.bpe 1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5 $gpt2/vocab.bpe
llama2/tokenizer.model 9e556afd44213b6bd1be2b850ebbbd98f5481437a8021afaf58ee7fb1818d347 https://raw.githubusercontent.com/karpathy/llama2.c/master/tokenizer.model
"

has_sum() { # program, sum, file
    [ -f "$3" ] && [ "$("$1" "$3" | cut -d ' ' -f 1)" = "$2" ]
}

resume() { # url, file
    code=$(curl --fail --location --silent --show-error --retry 3 -C - -w '%{http_code}' -o "$2" "$1")
    case $?:$code in
    0:*) ;;
    33:* | 36:* | *:416) # the partial file is too long, or the server does not support ranges
        rm -f "$2"
        give_up "$(say 'the download cannot be continued')" \
            "$(say 'run the command again: the download starts from the beginning')" "$1"
        ;;
    *) give_up "$(say 'the download failed')" \
        "$(say 'check the network and run the command again: the download resumes where it stopped')" "$1" ;;
    esac
}

fetch() { # url, file, program, sum
    if has_sum "$3" "$4" "$2"; then
        tell 'already there: %s' "$2"
        return
    fi
    command -v curl >/dev/null || give_up "$(say 'curl is not installed')" \
        "$(said 'install it (apt install curl), or save the file as %s' "$2")" "$1"
    mkdir -p "$(dirname "$2")" || give_up "$(say 'the folder cannot be created')" \
        "$(say 'name a writable folder')" "$(dirname "$2")"
    tell 'downloading %s' "$1"
    # If an earlier run was interrupted between download and renaming, no bytes are left to request.
    has_sum "$3" "$4" "$2.part" || resume "$1" "$2.part"
    if ! has_sum "$3" "$4" "$2.part"; then
        rm -f "$2.part"
        give_up "$(said 'the download does not have the checksum %s' "$4")" \
            "$(say 'run it again; if that does not help, the file was changed at its source')" "$1"
    fi
    mv "$2.part" "$2" || give_up "$(say 'the file cannot be renamed')" \
        "$(say "check the folder's permissions")" "$2"
}

fetch_reviews() {
    fetch "$vocabulary_url" "$folder/bert-base-uncased/vocab.txt" sha256sum "$vocabulary_sha256"
    if [ -f "$folder/imdb/train.csv" ] && [ -f "$folder/imdb/test.csv" ]; then
        tell 'already there: %s and test.csv' "$folder/imdb/train.csv"
    else
        fetch "$imdb_url" "$folder/imdb/aclImdb_v1.tar.gz" md5sum "$imdb_md5"
        python3 -EsB "$here/archive_to_csv.py" "$folder/imdb/aclImdb_v1.tar.gz" "$folder/imdb" || exit 2
    fi
}

fetch_stories() {
    # shellcheck disable=SC2086 # words
    set -- $stories
    while [ $# -ge 3 ]; do
        fetch "$3" "$folder/$1" sha256sum "$2"
        shift 3
    done
}

case ${ONLY:-reviews} in
reviews) fetch_reviews ;;
stories) fetch_stories ;;
*) give_up "$(say 'there is no such data set')" "$(say 'ONLY=reviews, or ONLY=stories')" "$ONLY" ;;
esac
