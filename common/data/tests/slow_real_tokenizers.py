#!/usr/bin/env python3
"""build/tokenize gives the same ids as Hugging Face's BertWordPieceTokenizer and
ByteLevelBPETokenizer and as SentencePiece, on real texts and on all of Unicode.

Installs their packages from PyPI in an environment of their own below the build folder.
"""

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

PACKAGES = ("tokenizers==0.23.3", "sentencepiece==0.2.3")
BUILD, ROOT = os.environ["BUILD"], os.environ["ROOT"]
REAL_DATA = os.environ.get("REAL_DATA")
SENTENCES = ROWS, SPECIALS, FUZZ, UNICODE, SETTINGS, TEXTS, BACK, ODD, LONG = (
    "every real review has Hugging Face's ids at SEQ 512",
    "truncation and special tokens within the text are Hugging Face's",
    "random strings over all of Unicode have Hugging Face's ids",
    "each character of Unicode is folded as Hugging Face does",
    "each combination of the settings in tokenizer_config.json gives Hugging Face's ids",
    "real texts have the ids of Hugging Face's BPE and of SentencePiece",
    "real texts come back from their ids, except what SentencePiece changes itself",
    "random strings over all of Unicode have the ids of Hugging Face's BPE and of SentencePiece",
    "texts of 300,000 characters without a space have the ids of Hugging Face's BPE and of SentencePiece",
)


def skip(sentence, reason):
    print(f"skip - {sentence}: {reason}")


def enter_environment():
    """Restarts the script in the environment's Python, or skips all tests if the environment cannot
    be made."""
    folder = os.path.join(BUILD, "venv-tokenizers")
    python = os.path.join(folder, "bin", "python")
    steps = ([sys.executable, "-m", "venv", folder],
             [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", *PACKAGES])
    probe = "; ".join(f"import {name}; assert {name}.__version__ == '{version}'"
                      for name, version in (package.split("==") for package in PACKAGES))
    if not os.path.exists(python) or subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode:
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lines = (done.stderr + done.stdout).strip().splitlines() or ["no message"]
                for sentence in SENTENCES:
                    skip(sentence, f"pip cannot get {' and '.join(PACKAGES)}: {lines[-1]}")
                sys.exit(0)
    os.execv(python, [python, os.path.abspath(__file__), "inside"])


def encode(vocabulary, texts, seq):
    done = subprocess.run([os.path.join(BUILD, "tokenize"), "--vocab", vocabulary, "--seq", str(seq)], check=True,
                          input="".join(text + "\n" for text in texts).encode(), stdout=subprocess.PIPE)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def compare(sentence, vocabulary, texts, seqs=(512,), **settings):
    """Prints a verdict and returns True, or with settings only prints what is wrong."""
    from tokenizers import BertWordPieceTokenizer
    peer = BertWordPieceTokenizer(vocabulary, **settings)
    for seq in seqs:
        peer.enable_truncation(seq)
        expected = [encoding.ids for encoding in peer.encode_batch(texts)]
        actual = encode(vocabulary, texts, seq)
        wrong = [i for i in range(len(texts)) if i >= len(actual) or actual[i] != expected[i]]
        if wrong or len(actual) != len(texts):
            print(f"not ok - {sentence}\n    {len(wrong)} of {len(texts)} texts differ at SEQ {seq}; "
                  f"{len(actual)} lines came back")
            for i in wrong[:3]:
                print(f"    {ascii(texts[i])[:300]}\n        expected {expected[i][:30]}")
                print(f"        got      {actual[i][:30] if i < len(actual) else None}")
            return False
    if not settings:
        print(f"ok - {sentence}")
    return True


def lines_of(texts, path):
    """The ids of each text. build/tokenize gets a line for each, and adds the begin and end tokens,
    which are removed here."""
    done = subprocess.run([os.path.join(BUILD, "tokenize"), "--vocab", path, "--seq", str(1 << 20)], check=True,
                          input="".join(text + "\n" for text in texts).encode(), stdout=subprocess.PIPE)
    return [[int(word) for word in line.split()][1:-1] for line in done.stdout.splitlines()]


def tokenize(path, option, data):
    return subprocess.run([os.path.join(BUILD, "tokenize"), "--vocab", path, option], check=True, input=data,
                          stdout=subprocess.PIPE).stdout


def verdict(sentence, wrong):
    print(f"not ok - {sentence}\n    {wrong[0]}" if wrong else f"ok - {sentence}")


def peers():
    """Pairs of a tokenizer's path and a function that gives a text's ids and their text. The last
    two have the largest vocabularies available."""
    from sentencepiece import SentencePieceProcessor
    from tokenizers import ByteLevelBPETokenizer
    folders = [(ROOT + "/data/stories/gpt2/", ("vocab.json", "merges.txt"), ROOT + "/data/stories/llama/tokenizer.model")]
    if REAL_DATA:
        folders.append((REAL_DATA + "/gpt2/", ("encoder.json", "vocab.bpe"), REAL_DATA + "/llama2/tokenizer.model"))
        folders[1:1] = [(None, None, REAL_DATA + "/stories260K/tok512.model")]
    for folder, names, model in folders:
        if folder:
            bpe = ByteLevelBPETokenizer(*(folder + name for name in names))
            yield folder, lambda text, bpe=bpe: (bpe.encode(text).ids, text)
        pieces = SentencePieceProcessor(model_file=model)

        def by_sentencepiece(text, pieces=pieces):
            ids = pieces.encode(text)
            return ids, pieces.decode(ids)
        yield model, by_sentencepiece


def real_texts():
    names = [os.path.join(ROOT, "data", "stories", "train.txt"), os.path.join(ROOT, "data", "reviews", "test.csv")]
    if REAL_DATA:
        names += [os.path.join(REAL_DATA, name) for name in
                  ("tinystories/stories.txt", "squad/contexts.txt", "imdb/test.csv")]
    wrong, changed = [], []
    for path, peer in peers():
        for name in names:
            with open(name, "rb") as stream:
                data = stream.read()
            ids, text = peer(data.decode())
            given = tokenize(path, "--text", data)
            if list(map(int, given.split())) != ids:
                wrong.append(f"{name} has other ids with {path}")
            if tokenize(path, "--decode", given) != text.encode():
                changed.append(f"{name} does not come back with {path}")
    verdict(TEXTS, wrong)
    verdict(BACK, changed)


def odd_texts(draw):
    texts = strings(draw, 4000) + ["a" * 5000, " " * 5000 + "x", "\u4e2d" * 3000, "é" * 3000, "'s" * 999, "\u00a0 " * 999]
    every = characters()
    texts += [" ".join("a" + c + "1 ." + c for c in every[at:at + 64])
              for at in range(0, len(every), 64)]
    wrong = []
    # The other tokenizers of each kind split a text in the same way, and know fewer pieces.
    for path, peer in list(peers())[-2:]:
        for text, ids in zip(texts, lines_of(texts, path)):
            expected, _ = peer(text)
            if ids != expected:
                wrong.append(f"{path}: {ascii(text)[:200]}\n        expected {expected[:30]}\n        got      {ids[:30]}")
                break
    verdict(ODD, wrong)


def long_texts(draw):
    kinds = [chr(c) for c in range(0x4E00, 0x9FA5)], "\u7684\u4e00\u662f\u4e86\u3002", "\u4e2de\u0301a\nb\t\r\u00a0"
    texts = ["".join(draw.choices(kind, k=300000)) for kind in kinds]
    with open(os.path.join(ROOT, "data", "stories", "train.txt"), encoding="utf-8", newline="") as stream:
        texts.append("\n".join(draw.choices(stream.read().split(), k=150000)))
    wrong = [f"the ids of a text that begins with {ascii(text[:20])} differ with {path}"
             for path, peer in peers() for text in texts
             if list(map(int, tokenize(path, "--text", text.encode()).split())) != peer(text)[0]]
    verdict(LONG, wrong)


def rows():
    if not REAL_DATA:
        skip(ROWS, "REAL_DATA is not set")
        return
    texts = []
    for split in ("train", "test"):
        with open(os.path.join(REAL_DATA, "imdb", split + ".csv"), encoding="utf-8", newline="") as stream:
            texts += [row["review"].replace("\n", " ") for row in csv.DictReader(stream)]
    compare(ROWS, os.path.join(REAL_DATA, "bert-base-uncased", "vocab.txt"), texts)


def characters():
    """All characters except the line feed, which ends a text here, and surrogates."""
    return [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c != 0x0A]


PARTS = ["[SEP]", "[MASK]", "[CLS]", "[UNK]", "[PAD]", "[sep]", "[", "]", "##", "film", "ing", " ", "don't", "é",
         "\u0301", "\u4e2d", "\u00ad", "\0", "\r", "a" * 99, "\u00e9" * 50]


def special_tokens(draw):
    texts = ["".join(draw.choice(PARTS) for _ in range(draw.randrange(20))) for _ in range(1000)]
    compare(SPECIALS, os.path.join(ROOT, "data", "reviews", "vocab.txt"), texts, (2, 3, 7, 512))


def strings(draw, count):
    every, common = characters(), [chr(c) for c in range(0x20, 0x3000)]
    ascii_letters = [chr(c) for c in range(0x20, 0x7F)]
    kinds = (every, common, common, ascii_letters, ascii_letters, PARTS)
    return ["".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randrange(1, 60))) for _ in range(count)]


def fuzz(draw):
    vocabulary = os.path.join(ROOT, "data", "reviews", "vocab.txt")
    if REAL_DATA:
        vocabulary = os.path.join(REAL_DATA, "bert-base-uncased", "vocab.txt")
    compare(FUZZ, vocabulary, strings(draw, 20000))


def all_of_unicode(draw):
    """Texts of all characters, and a vocabulary that holds each of them, so the ids spell the
    normalised text."""
    every = characters()
    known = [c for c in every if unicodedata.category(c)[0] not in "CZ" and not unicodedata.decomposition(c)
             and not 0x3400 <= ord(c) < 0xA000 and not 0xAC00 <= ord(c) < 0xD7A4 and not 0x20000 <= ord(c) < 0x3FFFF]
    known += [chr(c) for c in (0x4E2D, 0x8C48, 0x16FF0, 0x1E08F)]
    known = list(dict.fromkeys(known))
    marks = [c for c in every if unicodedata.combining(c)]
    composed = [c for c in every if unicodedata.decomposition(c)]
    texts = [" ".join("ab" + c + "c" for c in every[at:at + 64]) for at in range(0, len(every), 64)]
    kinds = (marks, marks, marks, composed, known)
    texts += ["".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randrange(2, 12))) for _ in range(20000)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        vocabulary = os.path.join(folder, "vocab.txt")
        with open(vocabulary, "w", encoding="utf-8", newline="") as stream:
            stream.writelines(token + "\n" for token in
                              ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + known + ["##" + c for c in known])
        compare(UNICODE, vocabulary, texts, (4096,))


def all_settings(draw):
    """Texts of letters in both cases, with and without accents, and of Chinese characters, and a
    vocabulary that holds each character."""
    letters = [chr(c) for c in range(0x21, 0x2100) if unicodedata.category(chr(c))[0] in "LM"]
    letters += ["\u4e2d", "\u6587", "\u8c48", "\uac00"]
    texts = ["".join(draw.choice(draw.choice((letters, "aAeE\u0301\u0130\u00c9\u4e2d .,"))) for _ in range(draw.randrange(1, 20)))
             for _ in range(400)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        vocabulary = os.path.join(folder, "vocab.txt")
        with open(vocabulary, "w", encoding="utf-8", newline="") as stream:
            stream.writelines(token + "\n" for token in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, ".", ",", "\u4e2d\u4e2d"]
                              + ["##" + c for c in letters])
        for lower in (True, False):
            for strip in (True, False, None):
                for chinese in (True, False):
                    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as stream:
                        json.dump({"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": chinese}, stream)
                    if not compare(f"{SETTINGS}: {lower} {strip} {chinese}", vocabulary, texts,
                                   lowercase=lower, strip_accents=strip, handle_chinese_chars=chinese):
                        return
    print(f"ok - {SETTINGS}")


def main():
    if sys.argv[1:] != ["inside"]:
        enter_environment()
    draw = random.Random(1)
    rows()
    special_tokens(draw)
    fuzz(draw)
    all_of_unicode(draw)
    all_settings(draw)
    real_texts()
    odd_texts(draw)
    long_texts(draw)


if __name__ == "__main__":
    main()
