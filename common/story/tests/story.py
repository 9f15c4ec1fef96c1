#!/usr/bin/python3
"""make story: the same text in every layout, the known text of a trained model (REAL_DATA), and one
error with a HINT for invalid options."""
import os
import random
import struct
import subprocess
import sys
import tempfile

ROOT, BUILD = os.environ["ROOT"], os.environ["BUILD"]
REAL = os.environ.get("REAL_DATA", "")
KNOWN = """\
Once upon a time, there was a little girl named Lily. She loved to play outside in the park. \
One day, she saw a big, red ball. She wanted to play with it, but it was too high.
Lily's mom said, "Lily, let's go to the park." Lily was sad and didn't know what to do. \
She said, "I want to play with your ball, but I can't find it."
Lily was sad and didn't know what to do. She said, "I'm sorry, Lily. I didn't know what to do."
Lily didn't want to help her mom, so she
"""
TOKENIZER = "data/stories/llama"
sys.path.insert(0, f"{ROOT}/common/train/tests")
from runs import check  # noqa: E402


def vocabulary():
    """The tokenizer's number of pieces, read from the error about a model of a different size."""
    said = story(1, "--model", model_file("sizes.bin", vocabulary=7), "--tokenizer", TOKENIZER, "--steps", 8).stderr
    return int(said.split("but its tokenizer has ")[1].split()[0])


def story(ranks, *options, stack="solutions"):
    return subprocess.run(["common/train/launch.sh", str(ranks), stack, "14", f"{BUILD}/story", *map(str, options)],
                          cwd=ROOT, capture_output=True, text=True, errors="backslashreplace")


def model_file(name, vocabulary, positions=64, heads=8, kv_heads=4, hidden=32, layers=3, inner=48, own_head=False):
    """Writes a LLaMA of random numbers in llama2.c's format."""
    numbers = random.Random(5)
    head_size = hidden // heads
    width = kv_heads * head_size

    def drawn(count, spread):
        return [numbers.gauss(0, spread) for _ in range(count)]

    def ones(count):
        return [1 + x for x in drawn(count, 0.1)]
    values = drawn(vocabulary * hidden, 1)
    values += ones(layers * hidden)
    for rows in (hidden, width, width, hidden):
        values += drawn(layers * rows * hidden, hidden**-0.5)
    values += ones(layers * hidden)
    values += drawn(layers * 3 * inner * hidden, hidden**-0.5)
    values += ones(hidden) + [0.0] * (positions * head_size)
    if own_head:
        values += drawn(vocabulary * hidden, 1)
    path = os.path.join(work, name)
    with open(path, "wb") as file:
        file.write(struct.pack("<7i", hidden, inner, layers, heads, kv_heads, -vocabulary if own_head else vocabulary, positions))
        file.write(struct.pack(f"<{len(values)}f", *values))
    return path


def written(path, size):
    with open(path, "wb") as file:
        file.write(size)
    return path


def check_layouts():
    for own_head, kind in ((False, "a tied head"), (True, "a head of its own")):
        options = ["--model", model_file(f"{own_head}.bin", SIZE, own_head=own_head), "--tokenizer", TOKENIZER, "--steps", 40,
                   "--prompt", "Once upon a time"]
        first = story(1, *options)
        check(first.returncode == 0 and first.stdout.startswith("Once upon a time") and len(first.stdout) > 30,
              f"a model with {kind} writes on from the prompt", first.stdout + first.stderr)
        mine = story(1, *options, stack="mine")
        check(mine.stdout == first.stdout and not mine.stderr, f"with STACK=mine, only the text is printed ({kind})", mine.stdout + mine.stderr)
        for layout in ("--tp 2", "--tp 4", "--pp 2", "--pp 3", "--tp 2 --pp 2"):
            words = layout.split()
            ranks = int(words[1]) * int(words[-1]) if len(words) > 2 else int(words[1])
            other = story(ranks, *options, *words)
            check(other.stdout == first.stdout and other.returncode == 0, f"the text is the same with {layout} ({kind})",
                  other.stdout + other.stderr)
        drawn = [story(1, *options, "--temperature", 1, "--top-p", 0.9, "--seed", seed).stdout for seed in (1, 1, 2)]
        check(drawn[0] == drawn[1] != drawn[2] and drawn[0] != first.stdout, f"TEMPERATURE=1 draws by the seed ({kind})", str(drawn))
        check(story(1, *options, "--temperature", 1, "--top-p", 0).stdout == first.stdout,
              f"TOP_P=0 leaves the most probable token ({kind})")


def check_cut_short():
    """Tests a run whose reader goes away, as with `make -s story ... | head`."""
    command = ["common/train/launch.sh", "1", "solutions", "14", f"{BUILD}/story", "--model", model_file("long.bin", SIZE, positions=4000),
               "--tokenizer", TOKENIZER, "--steps", "4000", "--temperature", "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.read(1)
        run.stdout.close()
        said = run.stderr.read().decode()
    check(run.returncode == 0 and not said, "a text that is not read to its end is no error", f"{run.returncode} {said}")


def check_control_characters():
    done = story(1, "--model", model_file("any.bin", SIZE), "--tokenizer", TOKENIZER, "--steps", 40, "--prompt", "a\x1b[2J\u009bb\rc\x7f\td\n")
    check(done.stdout.startswith("a?[2J\u00bfbc?\td\n"), "a text cannot command the terminal: its control characters are replaced", ascii(done.stdout) + done.stderr)


def check_known():
    path = f"{REAL}/stories260K"
    sentence = "stories260K writes the known text letter by letter"
    if not os.path.exists(f"{path}/stories260K.bin"):
        print(f"skip - {sentence}: REAL_DATA names no folder with stories260K/stories260K.bin")
        return
    for ranks, layout in ((1, ()), (2, ("--tp", 2)), (4, ("--tp", 4)), (2, ("--pp", 2))):
        done = story(ranks, "--model", f"{path}/stories260K.bin", "--tokenizer", f"{path}/tok512.model", *layout)
        check(done.stdout == KNOWN, f"{sentence} on {ranks} ranks {' '.join(map(str, layout))}".rstrip(), done.stdout + done.stderr)


def check_refused():
    good = model_file("good.bin", SIZE)
    with open(good, "rb") as file:
        whole = file.read()
    os.mkfifo(f"{work}/fifo")
    os.mkdir(f"{work}/empty")
    header = struct.pack("<7i", 32, 48, 3, 8, 4, SIZE, 64)
    bad = {
        "no MODEL": [],
        "a file that is not there": ["--model", f"{work}/nothing.bin"],
        "MODEL=hf: without a folder": ["--model", "hf:"],
        "an empty file": ["--model", written(f"{work}/empty.bin", b"")],
        "half a header": ["--model", written(f"{work}/half.bin", whole[:13])],
        "a file that is cut off": ["--model", written(f"{work}/cut.bin", whole[:-4])],
        "a file with bytes behind its end": ["--model", written(f"{work}/long.bin", whole + b"0000")],
        "a text": ["--model", written(f"{work}/text.bin", b"Once upon a time there was " * 40)],
        "negative sizes": ["--model", written(f"{work}/negative.bin", struct.pack("<7i", -32, 48, 3, 8, 4, SIZE, 64) + whole[28:])],
        "sizes whose product is huge": ["--model", written(f"{work}/huge.bin", struct.pack("<7i", *[1 << 23] * 7) + whole[28:])],
        "heads that do not divide the width": ["--model", written(f"{work}/heads.bin", struct.pack("<7i", 32, 48, 3, 7, 7, SIZE, 64) + whole[28:])],
        "a file of a folder": ["--model", "common/pretrained/tests/models/llama/model.safetensors"],
        "a FIFO": ["--model", f"{work}/fifo"],
        "a device": ["--model", "/dev/zero"],
        "an empty folder": ["--model", f"{work}/empty"],
        "a tokenizer of another size": ["--model", model_file("other.bin", SIZE + 1), "--tokenizer", TOKENIZER],
        "a tokenizer that is not there": ["--model", good, "--tokenizer", f"{work}/nothing.model"],
        "a model as its own tokenizer": ["--model", good, "--tokenizer", good],
        "no tokenizer beside the model": ["--model", good],
        "more STEPS than positions": ["--model", good, "--tokenizer", TOKENIZER, "--steps", 65],
        "a PROMPT longer than STEPS": ["--model", good, "--tokenizer", TOKENIZER, "--steps", 3, "--prompt", "there was a girl named Lily"],
        "a PROMPT that is not UTF-8": ["--model", good, "--tokenizer", TOKENIZER, "--prompt", b"\xff\xfe"],
        "STEPS=0": ["--model", good, "--tokenizer", TOKENIZER, "--steps", 0],
        "a negative TEMPERATURE": ["--model", good, "--tokenizer", TOKENIZER, "--temperature", -1],
        "TOP_P=2": ["--model", good, "--tokenizer", TOKENIZER, "--top-p", 2],
        "an unknown option": ["--model", good, "--tokenizer", TOKENIZER, "--beams", 2],
    }
    assert header == whole[:28]
    for what, options in bad.items():
        done = subprocess.run(["common/train/launch.sh", "1", "solutions", "14", f"{BUILD}/story",
                               *(o if isinstance(o, bytes) else str(o) for o in options)], cwd=ROOT, capture_output=True, timeout=60)
        said = done.stderr.decode()
        check(done.returncode == 2 and said.count("error: ") == 1 and said.count("HINT: ") == 1 and not done.stdout,
              f"{what} is one error with a HINT", f"{done.returncode} {done.stdout} {said}")
    said = story(1, *bad["a file of a folder"]).stderr
    check("name its folder" in said, "for a file of a Hugging Face folder, the HINT asks for the folder", said)
    done = story(1, "--model", good, "--tokenizer", TOKENIZER)
    check(done.returncode == 0 and done.stdout, "without STEPS, a model with fewer positions than 200 fills them", done.stderr)
    said = story(1, "--model", good).stderr
    check("HINT: TOKENIZER=" in said, "if no tokenizer is beside the model, the HINT names TOKENIZER=", said)
    for ranks, layout, what in ((3, ("--tp", 3), "heads that TP does not divide"), (8, ("--tp", 8), "more ranks than heads of keys and values"),
                                (4, ("--pp", 4), "more stages than layers"), (3, ("--tp", 2), "ranks that are not a product")):
        done = story(ranks, "--model", good, "--tokenizer", TOKENIZER, *layout)
        check(done.returncode == 2 and done.stderr.count("error: ") == 1 and done.stderr.count("HINT: ") == 1,
              f"{what}: one error with a HINT", done.stderr)


def check_not_finite():
    good = model_file("good.bin", SIZE)
    with open(good, "rb") as file:
        header = file.read(28)
        weights = os.path.getsize(good) // 4 - 7
    for weight in (3e38, 1e15):
        path = written(f"{work}/large.bin", header + struct.pack("<f", weight) * weights)
        for ranks, layout in ((1, ()), (2, ("--tp", 2)), (2, ("--pp", 2))):
            for options in ((), ("--temperature", 1)):
                done = story(ranks, "--model", path, "--tokenizer", TOKENIZER, "--prompt", "Once", *layout, *options)
                check((done.returncode, done.stdout) == (2, "Once\n") and "logits are not finite" in done.stderr
                      and done.stderr.count("HINT: ") == 1, f"weights of {weight} are one error with a HINT "
                      f"{' '.join(map(str, layout + options))}".rstrip(), f"{done.returncode} {done.stdout} {done.stderr}")


with tempfile.TemporaryDirectory() as work:
    SIZE = vocabulary()
    check_layouts()
    check_cut_short()
    check_control_characters()
    check_known()
    check_refused()
    check_not_finite()
