"""The kit's language models beside PyTorch: their text, their vocabularies (for make model, too), and
make bench ONLY=language: a step of the course's LLaMA, or, with STEPS=300, its loss curve in several
layouts. All measurements use the kit's stories, so anybody can repeat them. For a curve, DATA can
name another text, and VOCAB another vocabulary; SEQ and BATCH_SIZE choose its windows."""
import functools
import glob
import json
import os
import shutil
import struct

import aims
import peers
import steps
import windows
from cost import AUTHORS, LLAMA
from rows import _, give_up, number, said, show, whole_number
from turns import KIT, MEMORY, judge_memory, note_memory, rows_of, take_turns, tokens_per_second

STORIES = "data/stories/train.txt"
ROWS, STEPS, COMPARED = 4, 12, 10  # windows of a batch; steps of a run, and those whose losses are compared
CLOSE = 1e-5  # the largest allowed difference between losses of the kit and of PyTorch, which are near 10
LAYOUTS = {"serial": (1, 1), "tp2": (2, 2), "dp2": (2, 1), "pp2": (2, 1)}  # ranks, tp
SIZES = *LLAMA, ROWS
RATE = 3e-4  # the default of build/train
# The windows of a curve are small, so that six runs of 300 steps finish in reasonable time; SEQ and
# BATCH_SIZE can set others. Its gradients are clipped, because training without clipping amplifies
# rounding.
CURVE, WARMUP, CLIP = (*LLAMA[:3], 128, 2), 30, 1


# ---- vocabularies as large as their authors', padded with entries that occur in no text -------------------------------


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def message(number, content):
    """A field of a protocol buffer."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def read_varint(content, at):
    value = shift = 0
    while True:
        byte, at = content[at], at + 1
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def pieces_in(content):
    """The number of pieces of a SentencePiece model: the entries of its field 1."""
    at = count = 0
    while at < len(content):
        tag, at = read_varint(content, at)
        size, begin = read_varint(content, at)
        count += tag == 1 << 3 | 2
        at = begin + size if tag & 7 == 2 else begin
    return count


def write_vocabularies(work):
    """Pads the vocabularies with unused entries. In a SentencePiece model, a repeated field may
    continue at the end of the file. The fields of a piece are its text (1), its score (2) and
    its type (3), which is 5 for an unused piece."""
    os.makedirs(f"{work}/llama", exist_ok=True)
    os.makedirs(f"{work}/gpt2", exist_ok=True)
    with open("data/stories/llama/tokenizer.model", "rb") as file:
        content = file.read()
    with open(f"{work}/llama/tokenizer.model", "wb") as file:
        file.write(content + b"".join(message(1, message(1, b"<unused%d>" % i) + struct.pack("<Bf", 2 << 3 | 5, -1e6) + bytes([3 << 3, 5]))
                                      for i in range(pieces_in(content), AUTHORS["llama"][1])))
    with open("data/stories/gpt2/vocab.json", encoding="utf-8") as file:
        tokens = json.load(file)
    tokens.update((f"<unused{i}>", i) for i in range(len(tokens), AUTHORS["gpt2"][1]))
    with open(f"{work}/gpt2/vocab.json", "w", encoding="utf-8") as file:
        json.dump(tokens, file, ensure_ascii=False)
    with open("data/stories/gpt2/merges.txt", encoding="utf-8") as file, open(f"{work}/gpt2/merges.txt", "w", encoding="utf-8") as copy:
        copy.write(file.read())


def options(work, kind):
    """The options of build/train that name the model, and those that name its text."""
    vocabulary = f"{work}/vocab.txt" if kind == "mlm" else f"{work}/{kind}"
    return (("--task", "mlm") if kind == "mlm" else ("--model", kind)), ["--data", STORIES, "--vocab", vocabulary]


# ---- a run ------------------------------------------------------------------------------------------------------------


def train(build, work, layout, sizes, count, *more, kind="llama"):
    """The figures of a run of the kit."""
    ranks, tp = LAYOUTS[layout]
    pipeline = ("--pp", 2, "--micro", 2) if layout == "pp2" else ()
    named_so, read = options(work, kind)
    return steps.train(build, work, ranks, tp, 1, (*sizes, count), *read, "--epochs", count, *pipeline, *more, model=named_so)


def write_start(build, work, sizes, count, samples=None, more=(), kind="llama", merged=()):
    """Writes the initial weights, and the windows that the steps of a run read; returns both paths.

    @param samples the windows in use, if not all
    @param merged the weights' form: ("--hf",), a folder in Hugging Face's format; otherwise a file"""
    start, tokens = f"{work}/{kind}-start", f"{work}/{kind}-tokens"
    weights = f"{start}-hf" if merged else f"{start}.safetensors"
    for folder in (start, tokens, f"{start}-hf"):
        shutil.rmtree(folder, ignore_errors=True)
    train(build, work, "serial", sizes, 1, *more, "--lr", 0, "--cache", tokens, "--save", start, kind=kind)
    said(f"{build}/checkpoint", "merge", start, weights, *merged)
    ids, (seq, batch) = windows.tokens_of(glob.glob(f"{tokens}/*.tokens")[0]), sizes[-2:]
    with open(f"{start}.windows", "w", encoding="utf-8") as file:
        for rows in windows.batches(samples or (len(ids) - 1) // seq, batch, count):
            file.writelines(" ".join(map(str, ids[row * seq:(row + 1) * seq + 1])) + "\n" for row in rows)
    return weights, f"{start}.windows"


def apart(one, other):
    return max(abs(a - b) for a, b in zip(one, other))


def must_agree(name, who, mine, its):
    """Ends with an error if the losses differ, because the speeds of different computations cannot
    be compared."""
    mine, its = (run["losses"][:COMPARED] for run in (mine, its))
    far = apart(mine, its)
    if not far <= CLOSE or min(len(mine), len(its)) < COMPARED:
        give_up(_("{name}: the losses of the first {steps} steps are up to {far} from those of {who}, allowed {close}").format(
            name=name, steps=COMPARED, far=f"{far:.3g}", who=who, close=f"{CLOSE:.0e}"), _("compare them step by step: {mine} ... and {its} ...").format(mine=mine[:3], its=its[:3]))


def show_steps(title, found, sizes, aim=None):
    """Shows steps beside those of other programs; returns the rows to store.

    @param aim how many times as many tokens per second as each of the others"""
    rows = rows_of(found, tokens_per_second("language", sizes[-2] * sizes[-1]), (lambda name, who: aim) if aim else None)
    note_memory(rows, found)
    judge_memory(rows, found)
    for (name, who), row in rows.items():
        if who != KIT:
            row.notes["losses apart"] = f"{max(apart(found[name][KIT][0]['losses'][:COMPARED], run['losses']) for run in found[name][who]):.1e}"
    show(f"{title}, {sizes[-1]} windows of {sizes[-2]} tokens", rows.values())
    return [*rows.values(), *(MEMORY.row(f"{name}, per rank", runs[KIT]) for name, runs in found.items())]


# ---- a step and the curve of the LLaMA, in several layouts ------------------------------------------------------------


def of_torch(python, start, layout, sizes, count, warmup=0, clip=0):
    return peers.run(python, "torch_llama.py", 1, *start, RATE, warmup, clip, *LAYOUTS[layout], *sizes, count, 1)


def others(here, start, layout, sizes, count, *more):
    """{who: program} of each PyTorch."""
    return {f"PyTorch {version}": functools.partial(of_torch, python, start, layout, sizes, count, *more) for version, python in here.pythons.items()}


def compare(here, layouts):
    """Measures a step in each layout, beside PyTorch's."""
    start = write_start(here.build, here.work, SIZES, STEPS, ROWS) if here.pythons else ()
    cases = {f"LLaMA {layout}": {KIT: functools.partial(train, here.build, here.work, layout, SIZES, STEPS, "--samples", ROWS),
                                 **others(here, start, layout, SIZES, STEPS)} for layout in layouts}
    return show_steps(f"a step of the LLaMA, {LLAMA[0]} layers, hidden {LLAMA[1]}, vocabulary {AUTHORS['llama'][1]}",
                      take_turns(cases, here.rounds, must_agree), SIZES, aims.LANGUAGE)


def curve_options():
    """The options of all runs of a curve."""
    given = ((f"--{name.lower()}", os.environ.get(name)) for name in ("DATA", "VOCAB"))
    return "--lr", RATE, "--warmup", WARMUP, "--clip", CLIP, *(word for name, value in given if value for word in (name, value))


def curve_sizes():
    return (*CURVE[:3], whole_number("SEQ", CURVE[3], _("how many tokens a window has")),
            whole_number("BATCH_SIZE", CURVE[4], _("how many windows a step reads")))


def curves(here, layouts, sizes, count):
    """Shows the losses, and how far they are from one rank's: in each layout; on one rank with initial
    weights moved by one unit in the last place, which shows the effect of rounding; and on one rank
    in PyTorch."""
    run, more = functools.partial(train, here.build, here.work), curve_options()
    start = write_start(here.build, here.work, sizes, count, more=more) if here.pythons else ()
    cases = {"LLaMA serial": {KIT: functools.partial(run, "serial", sizes, count, *more), **others(here, start, "serial", sizes, count, WARMUP, CLIP)},
             "LLaMA serial, moved": {KIT: functools.partial(run, "serial", sizes, count, *more, "--perturb", 1)},
             **{f"LLaMA {layout}": {KIT: functools.partial(run, layout, sizes, count, *more)} for layout in layouts if layout != "serial"}}
    found = take_turns(cases, 1, must_agree)
    rows = rows_of(found, tokens_per_second("language", sizes[-2] * sizes[-1]))
    for (name, who), row in rows.items():
        losses, held = found[name][who][0]["losses"], found[name][who][0].get("tensor_bytes", 0)
        row.notes.update({"first loss": f"{losses[0]:.6f}", "last loss": f"{losses[-1]:.6f}",
                          "most apart": f"{apart(found['LLaMA serial'][KIT][0]['losses'], losses):.1e}", "MB of tensors": number(held / 1e6) if held else ""})
    show(f"{count} steps of the LLaMA on {os.environ.get('DATA') or STORIES}, {sizes[-1]} windows of {sizes[-2]} tokens, learning rate {RATE} after {WARMUP} steps, gradients clipped at {CLIP}",
         rows.values(), "first loss", "last loss", "most apart")
    return list(rows.values())


def wanted(part):
    """The layouts that this part of ONLY selects, the number of steps of a curve (0 for none) and the
    model's sizes."""
    count = whole_number("STEPS", 300, _("the steps of a curve")) if os.environ.get("STEPS") else 0
    layouts = [layout for layout in LAYOUTS if part in ("", layout) and (count or layout != "pp2")]
    if not layouts:
        give_up(_("no layout of the LLaMA is called '{name}'").format(name=part),
                _("serial, tp2, dp2, and with STEPS=300 pp2: {example}").format(example=f"ONLY=language/{list(LAYOUTS)[0]}"))
    if count and count < COMPARED and os.environ.get("VS"):
        give_up(_("STEPS={steps} is too short a curve to compare with PyTorch's").format(steps=count), _("choose STEPS={steps} or more, or leave out VS").format(steps=COMPARED))
    return layouts, count, curve_sizes() if count else SIZES


def measure(here):
    layouts, count, sizes = wanted(here.part)
    write_vocabularies(here.work)
    return curves(here, layouts, sizes, count) if count else compare(here, layouts)
