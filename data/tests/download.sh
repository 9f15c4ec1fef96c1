#!/bin/sh
# data/download.sh on an archive and a vocabulary in the same formats as the real ones, over
# file://.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out

check() { # sentence, expected, actual
    if [ "$2" = "$3" ]; then
        echo "ok - $1"
    else
        printf 'not ok - %s\n    expected: %s\n    got:      %s\n' "$1" "$2" "$3"
        sed 's/^/    /' "$folder/log"
    fi
}

make_archive() { # as text, the numbers of the reviews sort differently
    (
        cd "$folder" && mkdir -p aclImdb/train/unsup
        for split in train test; do
            mkdir -p aclImdb/$split/pos aclImdb/$split/neg
            for number in 0 2 10; do
                printf 'Good "%s", fine: caf\303\251<br />%s' $split $number >aclImdb/$split/pos/${number}_9.txt
                printf 'bad %s %s' $split $number >aclImdb/$split/neg/${number}_1.txt
            done
        done
        printf 'no label' >aclImdb/train/unsup/0_0.txt
        printf 'http://example.org' >aclImdb/train/urls_pos.txt
        tar czf archive.tar.gz aclImdb
    )
    printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n' >"$folder/vocab.txt"
}

download() { # leaves the exit status in $status
    IMDB_URL=file://$folder/archive.tar.gz IMDB_MD5=$md5 VOCABULARY_URL=file://$folder/vocab.txt \
        VOCABULARY_SHA256=$sha256 "$ROOT/data/download.sh" "$out" >"$folder/log" 2>&1
    status=$?
}

csv_of() { # split
    printf 'review,label\n'
    for number in 0 2 10; do
        printf 'bad %s %s,0\n"Good ""%s"", fine: caf\303\251<br />%s",1\n' "$1" "$number" "$1" "$number"
    done
}

if ! command -v curl >/dev/null; then
    echo "skip - data/download.sh: curl is not installed"
    exit 0
fi
make_archive
md5=$(md5sum "$folder/archive.tar.gz" | cut -d ' ' -f 1)
sha256=$(sha256sum "$folder/vocab.txt" | cut -d ' ' -f 1)

download
check "the archive and the vocabulary are downloaded" 0 $status
check "the training reviews are in order, without the unlabelled ones" "$(csv_of train)" "$(cat "$out/imdb/train.csv")"
check "the test reviews are in order" "$(csv_of test)" "$(cat "$out/imdb/test.csv")"
check "the vocabulary is unchanged" "$(cat "$folder/vocab.txt")" "$(cat "$out/bert-base-uncased/vocab.txt")"

# Each line of the list has a file's path, checksum and address.
stories="s/a.txt $sha256 file://$folder/vocab.txt
t/b.json $md5 file://$folder/archive.tar.gz"
ONLY=stories STORIES=$stories "$ROOT/data/download.sh" "$folder/texts" >"$folder/log" 2>&1
check "ONLY=stories downloads only what its list has, and checks each sum" "2 1 s/a.txt" \
    "$? $(grep -c 'HINT: ' "$folder/log") $(cd "$folder/texts" && find . -type f -printf '%P')"
stories="s/a.txt $sha256 file:///nowhere
t/b.json $(sha256sum "$folder/archive.tar.gz" | cut -d ' ' -f 1) file://$folder/archive.tar.gz"
ONLY=stories STORIES=$stories "$ROOT/data/download.sh" "$folder/texts" >"$folder/log" 2>&1
check "a download that fails keeps the files that are there" "0 1" "$? $(grep -c downloading "$folder/log")"
ONLY=songs "$ROOT/data/download.sh" "$folder/texts" >"$folder/log" 2>&1
check "an unknown ONLY ends with status 2 and a HINT" "2 1" "$? $(grep -c 'HINT: ONLY=reviews' "$folder/log")"

mv "$folder/archive.tar.gz" "$folder/away"
download
check "a second run downloads nothing" "0 0" "$status $(grep -c downloading "$folder/log")"
mv "$folder/away" "$folder/archive.tar.gz"

rm -r "$out/imdb"
mkdir "$out/imdb"
head -c 300 "$folder/archive.tar.gz" >"$out/imdb/aclImdb_v1.tar.gz.part"
# If the first bytes were fetched again, this damage would be repaired and the checksum would match.
printf X | dd of="$out/imdb/aclImdb_v1.tar.gz.part" bs=1 seek=100 conv=notrunc 2>/dev/null
download
check "an interrupted download resumes where it stopped" "2 1" "$status $(grep -c checksum "$folder/log")"
check "a file with a wrong checksum is not kept" "" "$(ls "$out/imdb")"
head -c 300 "$folder/archive.tar.gz" >"$out/imdb/aclImdb_v1.tar.gz.part"
download
check "a download that resumes after correct bytes is correct" "0 $(csv_of test | md5sum)" \
    "$status $(md5sum <"$out/imdb/test.csv")"

rm -r "$out/imdb"
mkdir "$out/imdb"
cat "$folder/archive.tar.gz" "$folder/archive.tar.gz" >"$out/imdb/aclImdb_v1.tar.gz.part"
download
download
check "a partial file that is too long is removed, and the next run works" 0 $status

rm -r "$out"
sha256=0000
download
check "a vocabulary with a wrong checksum ends with status 2, a HINT and no file" "2 1 0" \
    "$status $(grep -c HINT "$folder/log") $(find "$out" -type f | wc -l)"
sha256=$(sha256sum "$folder/vocab.txt" | cut -d ' ' -f 1)

rm "$folder/archive.tar.gz"
download
check "a missing archive ends with status 2 and one HINT" "2 1" "$status $(grep -c HINT "$folder/log")"

printf 'no archive' >"$folder/archive.tar.gz"
md5=$(md5sum "$folder/archive.tar.gz" | cut -d ' ' -f 1)
download
check "an archive that cannot be read ends with status 2, one HINT and no CSV" "2 1 0 0" \
    "$status $(grep -c HINT "$folder/log") $(grep -c Traceback "$folder/log") $(find "$out" -name '*.csv*' | wc -l)"

mkdir "$folder/programs"
for program in sh dirname cut mkdir sha256sum md5sum; do
    ln -s "$(command -v $program)" "$folder/programs/$program"
done
rm -r "$out"
PATH=$folder/programs "$ROOT/data/download.sh" "$out" >"$folder/log" 2>&1
status=$?
check "without curl, it ends with status 2 and says how to get curl" "2 1" "$status $(grep -c 'HINT: .*apt install curl' "$folder/log")"
