"""make bench ONLY=transformers: steps of a GPT-2 and of the course's LLaMA on one rank, alternating
with steps of Hugging Face's transformers, eager and compiled. make bench ONLY=story: the tokens per
second of make story, alternating with the library's generate. The kit and the library start from
the same weights, so losses and texts must agree."""
import os
import shutil
import subprocess
import time

import peers
import steps
import stories
from rows import Row, _, either, give_up, has_failed, number, said, table

MODELS, HOWS = {"gpt2": "GPT-2", "llama": "LLaMA"}, ("eager", "compiled")
COUNT, PROMPT, LENGTH = 12, "Once upon a time", 192  # steps of a run; a prompt; tokens after it
LETTERS = 4000  # of the stories, more than a window
BEGIN = "1"  # LLaMA's token before a text
TAUGHT = 60  # the steps in which a model memorises one window


def with_transformers(pythons):
    """The Pythons that have transformers, by the versions of PyTorch and of transformers."""
    found = peers.with_module(pythons, "transformers", "it has no transformers",
                              "pip install transformers in its environment; one in build/venv-torch without it: delete that folder")
    return {f"{version} with transformers {peers.version_of(python, module='transformers')[0]}": python for version, python in found.items()}


def wanted(part):
    """The models that this part of ONLY selects."""
    found = [kind for kind in MODELS if part in ("", kind)]
    return found or give_up(_("no model of transformers is called '{name}'").format(name=part), either("ONLY", (f"transformers/{kind}" for kind in MODELS)))


# ---- a step -----------------------------------------------------------------------------------------------------------


def compare(build, work, rounds, pythons, kinds):
    """{kind: {who: [run, ...]}}. The runs alternate."""
    found = {kind: {} for kind in kinds}
    for turn in range(rounds):
        for kind, runs in found.items():
            steps.progress(f"round {turn + 1} of {rounds}: {MODELS[kind]}")
            start = stories.write_start(build, work, stories.SIZES, COUNT, stories.ROWS, kind=kind, merged=("--hf",)) if pythons else ()
            lines = stories.train(build, work, "serial", stories.SIZES, COUNT, "--samples", stories.ROWS, kind=kind)
            runs.setdefault("kit", []).append({**steps.measured(lines), "losses": stories.losses_of(lines)})
            for who, python, how in ((f"{version} {how}", python, how) for version, python in pythons.items() for how in HOWS):
                run = peers.run(python, "torch_transformers.py", 1, start[0], "step", start[1], stories.RATE, *stories.SIZES[-2:], COUNT, how)
                run["apart"] = stories.must_agree(MODELS[kind], who, runs["kit"][0]["losses"], run["losses"])
                runs.setdefault(who, []).append(run)
    steps.progress("")
    return found


def show(title, found, more):
    """Prints a table with a line per peer, and returns the rows.

    @param found [(the row of the kit, [(the row of a peer, its last cell), ...]), ...]"""
    lines, rows = [], []
    for mine, peers_of in found:
        rows += [mine, *(row for row, _ in peers_of)]
        line = [mine.name, number(mine.best()), number(mine.median())]
        lines += [[*line, its.name.rpartition(", ")[2], number(its.best()), number(its.median()), f"{mine.best() / its.best():.2f}",
                   f"{mine.median() / its.median():.2f}", last] for its, last in peers_of] or [line]
    heads = ["", "best tok/s", "median", "beside", "its best", "median", "ratio", "of medians", more]
    table(title, heads[:len(lines[0])], lines)
    return rows


def measure_steps(build, work, rounds, pythons, part):
    stories.write_vocabularies(work)
    found = []
    for kind, runs in compare(build, work, rounds, with_transformers(pythons), wanted(part)).items():
        name = f"{MODELS[kind]} serial"
        found.append((stories.tokens_per_second(name, runs["kit"], stories.SIZES), [
            (stories.tokens_per_second(f"{name}, PyTorch {who}", runs[who], stories.SIZES),
             f"{max(run['apart'] for run in runs[who]):.1e}") for who in list(runs)[1:]]))
    layers, hidden, _, seq, batch = stories.SIZES
    return show(f"a step beside transformers, {layers} layers, hidden {hidden}, {batch} windows of {seq} tokens", found, "losses apart")


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
        give_up(_("PyTorch {who} continues '{prompt}' otherwise than make story").format(who=who, prompt=PROMPT),
                _("compare the texts: '{mine}' and '{its}'").format(mine=mine[-60:], its=its[-60:]))


def measure_story(build, work, rounds, pythons):
    """Measures the tokens per second of a text. The runs alternate."""
    stories.write_vocabularies(work)
    pythons, folder = with_transformers(pythons), taught(build, work)
    ids = [BEGIN, *ids_of(build, folder, PROMPT)]
    mine, its = [], {version: [] for version in pythons}
    for turn in range(rounds):
        steps.progress(f"round {turn + 1} of {rounds}: a text")
        seconds, text = of_kit(build, folder, len(ids) - 1 + LENGTH)
        written = len(ids_of(build, folder, text.strip())) - len(ids) + 1  # fewer than LENGTH if the text ended early
        mine.append(written / seconds)
        for version, python in pythons.items():
            run = peers.run(python, "torch_transformers.py", 1, folder, "story", LENGTH, *ids)
            same_text(build, folder, text, run["ids"], version)
            its[version].append(written / run["seconds"])
    steps.progress("")
    row = Row("story", "LLaMA serial", "tokens/s", mine, lower=False)
    peers_of = [(Row("story", f"{row.name}, PyTorch {version}", "tokens/s", values, lower=False), "the same") for version, values in its.items()]
    return show(f"a text of up to {LENGTH} tokens after '{PROMPT}', always the most probable token", [(row, peers_of)], "tokens")
