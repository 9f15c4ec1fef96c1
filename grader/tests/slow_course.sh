#!/usr/bin/env bash
# The training runs in the texts of part 2, which take longer: pipelines, micro-batches, the grid,
# language models; and the story at the end of lab 21.
# shellcheck disable=SC2317,SC2094 # course.sh returns; story is a goal and a file
# shellcheck source=grader/tests/course.sh
RUNS="12 13 14 15 16 17 18 19 20 21" . "$(dirname "$0")/course.sh"

# command_of NAME END: the arguments of this make command in lab 21's text.
command_of() {
    sed -n "s|^    make $1 \\(.*$2\\)\$|\\1|p" labs/21-*/README.md
}
story() { # story SETTINGS...: the story of the text, in the file story
    eval "make --silent story $(command_of story STEPS=64) $*" > story 2> out
}
same_story() {
    mv story first && story NTASKS=1 TP=1 && diff first story > out
}
eval "train $(command_of train SAVE=build/llama)"
check "lab 21: the longer training run of the text ends" [ "$status" = 0 ]
check "its loss on the test stories equals the one in the text" grep -q "test loss 0\.72" out
check "the model writes a story that begins as it is asked" eval 'story && grep -q "^Once upon a time" story'
check "with one rank, it writes the same" same_story
finish
