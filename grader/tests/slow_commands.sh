#!/usr/bin/env bash
# Runs every command of the READMEs and of the labs' texts as a student who has solved the labs
# would; training in a short form. Names the test for each command that another test runs.
# shellcheck disable=SC2016,SC2317 # $EDITOR occurs in the texts; functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
make_tree commands
unset STACK SEED LAB
cp "$ROOT/README.md" .
solve() {
    cp -rp "$ROOT"/solutions/. labs/
}
solve
make --silent grade > out 2>&1 # make solution needs a verdict

SHORT=(LAYERS=4 HIDDEN_DIM=64 HEADS=4 SEQ=16 BATCH_SIZE=48 STEPS=1 EPOCHS=1)

# elsewhere COMMAND: the test that runs it, or nothing.
elsewhere() {
    case $1 in
    *ON=slurm* | 'make sbatch'* | 'make test-slurm'*) echo common/train/tests/slow_slurm_train.py ;;
    *BACKEND=cuda* | 'make gpu-report'*) echo common/backend/tests/slow_cuda_toolkit.sh ;;
    'make watch '*) echo grader/tests/loop.sh ;;
    'make debug '*) echo grader/tests/debug.sh ;;
    'make gradebook '*) echo grader/tests/gradebook.sh ;;
    'make board '*) echo grader/tests/board.sh ;;
    'make handout'*) echo grader/tests/handout.sh ;;
    *SAN=1*) echo grader/tests/sanitizers.sh ;;
    'make setup'*) echo common/setup/tests/setup_with_fake_apt.sh ;;
    'make doctor'*) echo common/setup/tests/doctor_sees_what_is_missing.sh ;;
    'make data ONLY=stories') echo data/tests/download.sh ;;
    'make demo' | 'make data') echo common/setup/tests/slow_bare_machine.sh ;;
    'make slides'*) echo slides/tests/slow_slides.sh ;;
    'make plot'*) echo common/train/tests/plot.py ;;
    'make run '*) echo common/train/tests/own_program.sh ;;
    'make train'*AMP=bf16*) echo common/train/tests/amp.py ;; # not every processor has bf16
    'make layouts'*) echo common/train/tests/layouts.py ;;
    'make train'*MODEL=hf:* | 'make train'*MODEL=build/* | *' --hf') echo common/pretrained/tests/slow_transformers.py ;;
    'make train'*TASK=mlm*DATA=*) echo common/train/tests/slow_masked_language.py ;;
    'make story '*MODEL=stories260K.bin*) echo common/story/tests/story.py ;;
    'make story '*MODEL=build/llama*) echo grader/tests/slow_course.sh ;;
    *DATA=data/imdb*) echo common/train/tests/slow_real_reviews.py ;;
    'make test'* | 'make lint' | 'make bench'* | 'make model'*) echo common/tests/run.sh ;;
    esac
}
commands_of() { # commands_of FILE
    sed -nE 's/^    ((make|less|\$\{EDITOR:-nano\}|build\/[a-z]+) ?.*)$/\1/p' "$1" | sed -E 's/ +# .*//; s/ +$//'
}

runs() { # runs COMMAND
    case $1 in
    'less '* | '${EDITOR:-nano} '*) [ -r "${1#* }" ] ;;
    'make train'*EVERY=*) bash -c "$1 ${SHORT[*]} EVERY=1" > out 2>&1 ;;
    'make train'*) bash -c "$1 ${SHORT[*]}" > out 2>&1 ;;
    'make start '* | 'make reset '*) bash -c "$1" > out 2>&1 && solve ;;
    *OUT=/*) bash -c "$1 OUT=build/out" > out 2>&1 && [ -s build/out ] ;;
    *) bash -c "$1" > out 2>&1 ;;
    esac
}
is_there() { # does the test that `elsewhere` names exist?
    ls "$ROOT"/"${1%.*}"* > /dev/null 2>&1
}

declare -A seen
for file in README.md "$ROOT"/common/README.md "$ROOT"/common/*/README.md "$ROOT"/slides/README.md "$ROOT"/grader/README.md "$ROOT"/grader/handout/README.md "$ROOT"/CONTRIBUTING.md "$ROOT"/labs/*/README.md; do
    while read -r command; do
        [ -z "${seen[$command]:-}" ] || continue
        seen[$command]=1
        by=$(elsewhere "$command")
        if [ -n "$by" ]; then
            check "the test that runs '$command' exists: $by" is_there "$by"
        else
            check "'$command' succeeds" runs "$command"
        fi
    done < <(commands_of "$file")
done
enough() {
    [ "${#seen[@]}" -ge 60 ]
}
check "the texts have at least 60 commands" enough
finish
