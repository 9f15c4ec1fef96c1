"""make bench ONLY=transformers: steps of a GPT-2 and of the course's LLaMA on one rank, in turns with
steps of Hugging Face's transformers, eager and compiled. make bench ONLY=story: the tokens per
second of make story, in turns with the library's generate. The kit and the library start from the
same weights, so losses and texts must agree."""
import functools
import os
import shutil
import subprocess
import time

import peers
import steps
import stories
from rows import _, either, give_up, has_failed, said, show
from turns import KIT, Figure, rows_of, take_turns

MODELS, HOWS = {"gpt2": "GPT-2", "llama": "LLaMA"}, ("eager", "compiled")
COUNT, PROMPT, LENGTH = 12, "Once upon a time", 192  # steps of a run; a prompt; tokens after it
LETTERS = 4000  # of the stories, more than a window
BEGIN = "1"  # LLaMA's token before a text
TAUGHT = 60  # the steps in which a model memorises one window


def with_transformers(pythons):
    """The Pythons that have transformers, by the versions of PyTorch and of transformers."""
    found = peers.with_module(pythons, "transformers", "it has no transformers",
                              "pip install transformers in its environment; one in build/venv-torch without it: delete that folder")
    return {f"PyTorch {version} with transformers {peers.version_of(python, module='transformers')[0]}": python for version, python in found.items()}


def wanted(part):
    """The models that this part of ONLY selects."""
    found = [kind for kind in MODELS if part in ("", kind)]
    return found or give_up(_("no model of transformers is called '{name}'").format(name=part), either("ONLY", (f"transformers/{kind}" for kind in MODELS)))


# ---- a step -----------------------------------------------------------------------------------------------------------


def of_library(python, start, how):
    return peers.run(python, "torch_transformers.py", 1, start[0], "step", start[1], stories.RATE, *stories.SIZES[-2:], COUNT, how)


def measure_steps(here):
    stories.write_vocabularies(here.work)
    pythons, cases = with_transformers(here.pythons), {}
    for kind in wanted(here.part):
        start = stories.write_start(here.build, here.work, stories.SIZES, COUNT, stories.ROWS, kind=kind, merged=("--hf",)) if pythons else ()
        cases[f"{MODELS[kind]} serial"] = {
            KIT: functools.partial(stories.train, here.build, here.work, "serial", stories.SIZES, COUNT, "--samples", stories.ROWS, kind=kind),
            **{f"{who} {how}": functools.partial(of_library, python, start, how) for who, python in pythons.items() for how in HOWS}}
    return stories.show_steps(f"a step beside transformers, {stories.SIZES[0]} layers, hidden {stories.SIZES[1]}",
                              take_turns(cases, here.rounds, stories.must_agree), stories.SIZES)


# ---- a text -----------------------------------------------------------------------------------------------------------


def taught(build, work):
    """The folder of a LLaMA that has memorised one window. So its text has many words, rounding
    does not change its most probable token, and no text ends early, because no story begins in that
    window."""
    saved, folder, text = f"{work}/story-run", f"{work}/story", f"{work}/story.txt"
    with open(stories.STORIES, encoding="utf-8") as file, open(text, "w", encoding="utf-8") as copy:
        copy.write(file.read().replace("<|endoftext|>", "").replace("\n", " ")[:LETTERS] + "\n")
    for path in (saved, folder):
        shutil.rmtree(path, ignore_errors=True)
    stories.train(build, work, "serial", (*stories.SIZES[:-1], 1), TAUGHT, "--data", text, "--samples", 1, "--lr", 2e-3, "--warmup", 5, "--save", saved)
    said(f"{build}/checkpoint", "merge", saved, folder, "--hf")
    shutil.copy(f"{work}/llama/tokenizer.model", folder)
    return folder


def ids_of(build, folder, text):
    return said(f"{build}/tokenize", "--vocab", folder, "--text", input=text).split()


def of_kit(build, folder, total):
    """Runs make story. Returns the seconds from the prompt's arrival to the last token's (if all
    arrived together, from the start of the program), and the text.

    @param total the number of tokens of the text, without the begin token"""
    command = ["common/train/launch.sh", "1", *map(str, steps.ALL_LABS), f"{build}/story", "--model", folder, "--prompt", PROMPT, "--steps", str(total)]
    arrived, text = [time.perf_counter()], b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, OMP_NUM_THREADS="1")) as story:
        while some := os.read(story.stdout.fileno(), 1 << 16):
            if some != b"\n":  # a newline ends the text, once the ranks have ended
                arrived.append(time.perf_counter())
            text += some
        trouble = story.stderr.read().decode().strip()
    if story.returncode or len(arrived) == 1:
        has_failed(f"{build}/story", story.returncode, trouble[:300], command)
    return arrived[-1] - arrived[len(arrived) > 2], text.decode(errors="replace")


def same_text(build, folder, mine, ids, who):
    """Ends with an error if the texts differ, because the time depends on the text."""
    its = said(f"{build}/tokenize", "--vocab", folder, "--decode", input=" ".join(map(str, ids)), errors="replace")
    if mine.strip() != its.strip():
        give_up(_("{who} continues '{prompt}' otherwise than make story").format(who=who, prompt=PROMPT),
                _("compare the texts: '{mine}' and '{its}'").format(mine=mine[-60:], its=its[-60:]))


def measure_story(here):
    """Measures the tokens per second of a text."""
    stories.write_vocabularies(here.work)
    folder = taught(here.build, here.work)
    ids = [BEGIN, *ids_of(here.build, folder, PROMPT)]

    def write():
        seconds, text = of_kit(here.build, folder, len(ids) - 1 + LENGTH)
        return {"seconds": seconds, "text": text, "tokens": len(ids_of(here.build, folder, text.strip())) - len(ids) + 1}

    def agree(_name, who, mine, its):
        same_text(here.build, folder, mine["text"], its["ids"], who)
        its["tokens"] = mine["tokens"]  # fewer than LENGTH if the text ended early

    others = {who: functools.partial(peers.run, python, "torch_transformers.py", 1, folder, "story", LENGTH, *ids)
              for who, python in with_transformers(here.pythons).items()}
    rate = Figure("story", "tokens/s", lambda run: [run["tokens"] / run["seconds"]], lower=False)
    rows = rows_of(take_turns({"LLaMA serial": {KIT: write, **others}}, here.rounds, agree), rate)
    show(f"a text of up to {LENGTH} tokens after '{PROMPT}', always the most probable token, the same on both sides", rows.values())
    return list(rows.values())
