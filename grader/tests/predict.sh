#!/usr/bin/env bash
# make predict and make measure: each lab's number equals the formula of its text; progress, hand-in
# and gradebook show both numbers.
# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree predict
unset STACK SEED LAB IS

run() { # run COMMAND...: writes its output to the file out, sets $status
    "$@" > out 2>&1
    status=$?
}
one_error() { # one_error WORDS COMMAND...
    run "${@:2}"
    [ "$status" = 2 ] && [ "$(grep -c '^error: ' out)" = 1 ] && [ "$(grep -c 'HINT: ' out)" = 1 ] && says "$1"
}
make --silent build/generated/labs.json > out 2>&1

# ---- the numbers, by hand from the sizes in the question

declare -A by_hand=(
    [1]=$((4 * 2 * 2 * (4 - 1) * 8 * 16 * 96))                     # f backward and g forward are all-reduces
    [2]=$((3 * 32 * 40 * 96 / 4))                                  # y, dx, dW
    [3]=$((4 * (4 - 1) * 64 * 48))                                 # the solution gathers columns
    [4]=$((4 * 2 * 64 * 24 * 24 / 4 + 2 * 2 * 64 * 64 * 24 / 4))   # q, k, v, output; scores, weighted sums
    [5]=$((4 * ((4 - 1) * 32 * (80 + 48) + 2 * (4 - 1) * 32 * (24 + 80))))
    [6]=$((4 * (2 * (4 - 1) * 32 * 48 + 2 * (4 - 1) * 32 * 24)))
    [7]=$((4 * (12 * 16 * 16 / 4 + 4 * 16)))                       # the norms are whole
    [8]=$((4 + 5 + 6 + 7))
    [9]=$((4 * 3 * 2 * 2 * (2 - 1) * 4 * 8 * 50))                  # three groups
    [10]=$((1 + 3 + 5 + 7))
    [11]=$((4 * 2 * (4 - 1) * 20000))
    [12]=$((4 * 2 * (3 - 1) * 2 * 16 * 24))                        # two boundaries, both directions
    [13]=$((4 + 3 + 2 + 1))                                        # min(m, p - k) on stage k
    [14]=$((5 + 7))                                                # rank 5 is in stage 1, which has ranks 4 to 7
    [15]=$((4 * 2 * (5 - 1) * 1000 / 5))                           # one rank
    [16]=$((4 * 2 * 2 * 2 * (4 - 1) * (10000 + 2)))                # two averages in two dp groups; the rows are a double
    [17]=$((4 * (4 - 1) * (2 * 10000 + 2 * 2 * 2)))                # two halves; two sums of a double
    [18]=$((4 * 10 * 2 * 16 * 24))                                 # ten gathers and reduce-scatters over two ranks
    [19]=$((2 * 3 * 2 * 16 * 24 * 4))                              # the inputs of three blocks, whole on both ranks
    [20]=$((4 * (2 * (4 - 1) * 32 * 80 + 2 * 2 * (4 - 1) * 32 * 24))) # gather and scatter, f and g
    [21]=$((4 * 3 * 2 * (4 - 1) * 64))                             # maximum, sum, target
)
labs=$(python3 -c 'import json; print(*[lab["number"] for lab in json.load(open("build/generated/labs.json"))])')
measures_by_hand() { # measures_by_hand LAB
    run make --silent measure LAB="$1" SOLUTION=1
    [ "$status" = 0 ] && grep -qE "^The reference: ${by_hand[$1]}( [a-z]+)?$" out
}
for lab in $labs; do
    check "lab $lab: make measure counts the formula's number for the reference" measures_by_hand "$lab"
done
check "measuring the reference stores no number" [ ! -e build/verdicts/predictions.json ]
by_rows() { # each row of the table is on one rank
    python3 "$ROOT/grader/tests/answer.py" 03-own_range > "$(lab_file 3)"
    run make --silent measure LAB=3
    [ "$status" = 0 ] && says "measured: $((2 * by_hand[3])) bytes" && make --silent reset LAB=3 > out 2>&1
}
check "lab 3, split by rows: twice the number of a split by columns" by_rows

boxes() {
    python3 - "${!by_hand[@]}" -- "${by_hand[@]}" > out << 'PYTHON'
import gettext, glob, json, os, re, sys
cut = sys.argv.index("--")
numbers = dict(zip(map(int, sys.argv[1:cut]), sys.argv[cut + 1:]))
french = gettext.translation("balise", "build/locale", ["fr"]) if glob.glob("build/locale/fr/*/*.mo") else None
plain = lambda text: " ".join(text.replace("`", "").replace("\n>", "\n").split())
wrong = []
for lab in json.load(open("build/generated/labs.json")):
    n = lab["number"]
    for path, title in ((f"labs/{lab['folder']}/README.md", "Predict, then measure."), (f"labs/{lab['folder']}/README.fr.md", "Prédisez, puis mesurez.")):
        found = re.findall(r"^> \*\*" + title + r"\*\*(?:.*\n>)*.*\n", open(path).read(), re.M)
        if len(found) != 1:
            wrong.append(f"{path}: {len(found)} boxes")
            continue
        box, asked = plain(found[0]), lab["question"] if path.endswith("/README.md") else french.gettext(lab["question"]) if french else ""
        if asked not in box:
            wrong.append(f"{path}: its question differs from the one in grader/labs: {asked}")
        if found[0].count("\n") > 8:
            wrong.append(f"{path}: more than 8 lines")
        if set(re.findall(r"LAB=(\d+)", box)) != {str(n)} or not re.search(rf"make predict LAB={n} IS=\d+", box) or f"make measure LAB={n}" not in box:
            wrong.append(f"{path}: its commands")
        if re.search(rf"\b{numbers[n]}\b", re.sub(r"(?<=\d)[ ,](?=\d{3})", "", box)):
            wrong.append(f"{path}: it tells the number")
for path in ("solutions/README.md", "solutions/README.fr.md"):
    text = re.sub(r"(?<=\d)[ ,](?=\d{3})", "", open(path).read())
    wrong += [f"{path}: not the number of lab {n}" for n, number in numbers.items() if not re.search(rf"^\| {n} \| {number}\b", text, re.M)]
print("\n".join(wrong))
sys.exit(bool(wrong))
PYTHON
}
check "each text has one box, with the record's question, its own commands and no answer; the notes have the answer" boxes

# ---- a student's day

check "a missing LAB is one error" one_error "LAB is missing" make --silent predict IS=1
check "an unknown lab is one error" one_error "there is no lab '42'" make --silent predict LAB=42 IS=1
check "make measure refuses a lab that does not exist" one_error "there is no lab '42'" make --silent measure LAB=42
check "without a number, the question is printed" one_error "How many bytes do the ranks send in all" make --silent predict LAB=6
narrow() { # narrow COMMAND...: no line is longer than 80 columns
    COLUMNS=80 run "$@"
    awk 'length > 80 { exit 1 }' out
}
check "an error of make predict fits 80 columns" narrow make --silent predict LAB=6
check "also about a number that is none" narrow make --silent predict LAB=20 IS=4,8
for word in abc 48,000 nan inf -5 1e999 "4 8" 0x10 "1';"; do
    check "IS=$word is refused" one_error "'$word' is not a number" make --silent predict LAB=6 IS="$word"
done
check "a refused number is not stored" grep -qx '{}' build/verdicts/predictions.json
six=$(lab_file 6)
check "a lab that is not started is not measured" one_error "make grade LAB=6" make --silent measure LAB=6
check "a lab whose start file works is not measured" one_error "make grade LAB=5" make --silent measure LAB=5
copy_solution 6
sed -i 's/gelu(linear(x, layer->up))/linear(x, layer->up)/' "$six"
check "a lab that is wrong is not measured" one_error "make grade LAB=6" make --silent measure LAB=6
echo 'no C' >> "$six"
check "a lab that does not build is not measured" one_error "does not build" make --silent measure LAB=6

predicted() { # predicted WORDS ARGUMENTS...
    run make --silent predict "${@:2}"
    [ "$status" = 0 ] && says "$1"
}
shown() { # shown WORDS: by make progress
    run make --silent progress
    [ "$status" = 0 ] && says "$1"
}
check "a prediction is stored" predicted "predicted: 48000 bytes; measured: -" LAB=6 IS=4.8e4
check "make progress shows it" shown "predicted: 48000 bytes; measured: -"
copy_solution 6
measured() { # measured WORDS ARGUMENTS...
    run make --silent measure "${@:2}"
    [ "$status" = 0 ] && says "$1"
}
check "make measure shows both numbers" measured "predicted: 48000 bytes; measured: 55296 bytes" LAB=6
check "make measure shows the ratio of the numbers, and where to look" says 'measured / predicted = 1.15: the box "Predict, then measure" in labs/06-colrow-pair/README.md'
check "in 80 columns, no word of it is broken" eval 'COLUMNS=80 run make --silent measure LAB=6 && ! grep -qE ".{81}" out'
check "make progress shows both numbers" shown "predicted: 48000 bytes; measured: 55296 bytes"
check "a prediction after measuring is marked" predicted "predicted after measuring: 55000 bytes; measured: 55296 bytes" LAB=6 IS=55000
check "a prediction says which earlier one it replaces" says "This replaces your earlier prediction: 48000 bytes."
check "make progress marks it, too" shown "predicted after measuring: 55000 bytes; measured: 55296 bytes"
check "a prediction within one per cent is right" measured "The prediction is right, to within 1%." LAB=6
copy_solution 8
check "measuring without a prediction is possible" measured "predicted: -; measured: 22" LAB=8
stack_of_mine() {
    copy_solution 1
    run make --silent measure LAB=6 STACK=mine
    [ "$status" = 0 ] && says "measured: 55296 bytes"
}
check "on the student's own labs, the number is the same" stack_of_mine

# ---- what is kept

kept=build/verdicts/predictions.json
unharmed() { # unharmed FILE: as it was before
    cmp "$kept" before > out 2>&1
}
cp "$kept" before
ln -s /dev/full "$kept.new"
check "a full disk is one error" one_error "No space left" make --silent predict LAB=7 IS=1
check "and loses nothing" unharmed
rm -f "$kept.new"
mv build/verdicts verdicts && touch build/verdicts
check "a folder that cannot be written is one error" one_error "build/verdicts" make --silent predict LAB=7 IS=1
rm build/verdicts && mv verdicts build/verdicts
interrupted() {
    LAB=6 BUILD=build AUTHOR=student MEASURING="sleep 600" setsid env --default-signal=INT "$ROOT/grader/loop/measure.py" > out 2>&1 &
    local measuring=$!
    until pgrep -P "$measuring" -x sleep > /dev/null || ! kill -0 "$measuring" 2> /dev/null; do sleep 0.1; done
    kill -INT -- "-$measuring"
    wait "$measuring"
    [ $? = 130 ] && [ ! -s out ] && [ ! -e "$kept.new" ] && unharmed
}
check "Ctrl-C during a measurement leaves the stored numbers" interrupted
damaged() { # damaged CONTENT: is an error for each command that would replace it, and stays
    cp "$kept" whole && printf '%s' "$1" > "$kept" && cp "$kept" before &&
        one_error "$kept is damaged" make --silent predict LAB=7 IS=1 && unharmed &&
        one_error "$kept is damaged" make --silent reset LAB=7 && unharmed
    status=$?
    cp whole "$kept"
    return "$status"
}
for content in '{"6": {"predicted": 48000, "mea' '[1]' '{"six": {}}' '{"6": 48000}'; do
    check "stored numbers that are damaged are kept: $content" damaged "$content"
done
forgets_one() {
    make --silent reset LAB=8 > out 2>&1 && python3 -c 'import json; assert list(json.load(open("build/verdicts/predictions.json"))) == ["6"]'
}
check "reset forgets the numbers of its lab only" forgets_one

# ---- handed in

hand_in() { # hand_in NAME
    make --silent hand-in NAME="$1" OUT="handed/$1.tar.gz" > out 2>&1
}
predictions_of() { # predictions_of NAME NUMBERS: the student's column in the table
    python3 -c 'import csv, sys; sys.exit({row["student"]: row["predictions"] for row in csv.DictReader(open("grades.csv"))}[sys.argv[1]] != sys.argv[2])' "$1" "$2"
}
mkdir handed
find labs -name '*.c' ! -path "$six" -delete # the others are not handed in
make --silent predict LAB=7 IS=1e3 > out 2>&1
hand_in both
manifest_has_them() {
    tar xzOf handed/both.tar.gz manifest.json > out && python3 -c '
import json
told = json.load(open("out"))["predictions"]
assert told == {"6": {"predicted": 55000, "measured": 55296, "late": True}, "7": {"predicted": 1000, "late": False}}, told'
}
check "a hand-in carries the numbers" manifest_has_them
mkdir handed/odd && tar xzf handed/both.tar.gz -C handed/odd && python3 - << 'PYTHON'
import json
path = "handed/odd/manifest.json"
manifest = json.load(open(path))
manifest["name"], manifest["predictions"] = "odd", {"1": 5, "6": {"predicted": "=1+1", "measured": 1e300, "late": "\u001b[2J"}, "8": {}, "99": {"predicted": 1}}
json.dump(manifest, open(path, "w"))
PYTHON
echo '{' > "$kept"
hand_in broken
rm "$kept"
hand_in none
make --silent gradebook DIR=handed OUT=grades.csv SEED=5 JOBS=1 > out 2>&1
cp grades.csv out
check "the table has the predicted and the measured numbers" predictions_of both '6=55000/55296* 7=1000/'
check "the table has no numbers if nothing was predicted" predictions_of none ''
check "the table has no numbers if the student's file is broken" predictions_of broken ''
check "from an edited manifest, the table takes only numbers" predictions_of odd '6=/1e+300'
check "the points equal the lab's" [ "$(grep -c ',10,100,' grades.csv)" = 4 ]
report_has_them() {
    cp grades-reports/both.tar.gz.txt out
    says "Predicted/measured, by lab (*: predicted after measuring): 6=55000/55296* 7=1000/" && ! grep -q Predicted grades-reports/none.tar.gz.txt
}
check "a report has the numbers, if there are any" report_has_them
finish
