#!/usr/bin/env python3
"""Writes the committed stories and two small tokenizers for them: generate_stories.py [FOLDER]
(default: stories beside this script).

The stories are invented here, in the manner of TinyStories (arXiv:2305.07759), so the files may be
used for anything. <|endoftext|> separates them. gpt2/ has a byte-level BPE in the form of GPT-2's,
llama/ a SentencePiece model in the form of LLaMA's: BPE over characters, with bytes for characters
that it lacks.
"""

import collections
import json
import os
import random
import re
import struct
import sys

SEED = 2305_07759
TRAIN_STORIES, TEST_STORIES = 700, 70
MERGES = 400
END = "<|endoftext|>"

NAMES = "Mia Ben Lily Tom Anna Sam Zoé Max Nora Leo Ivy Finn Rosa Hugo".split()
ANIMALS = "cat dog bird frog rabbit bear duck mouse fox pony".split()
ADJECTIVES = "little big red blue shiny old soft funny green tiny".split()
THINGS = "ball boat kite hat drum book cake stone lamp shell box flower".split()
PLACES = "in the park|by the river|in the garden|near the old house|at the beach|in the forest|under a tree".split("|")
FEELINGS = "happy sad proud scared tired excited angry".split()
WEATHER = "sunny rainy windy warm cold".split()
PROBLEMS = """It was too high in a tree.|It fell into the water.|It was broken.|It was stuck in the mud.
              |A {animal} took it and ran away.|The wind blew it far away.|It was gone.""".split("|")
HELP = """{other} found a long stick and pulled it out.|They looked for it everywhere, and {other} found it {place}.
          |{other} said, “I can help you!” and fixed it.|A kind {animal} brought it back.|They asked {name}'s mom, and she
          helped them.|{other} counted to {number}, and they pulled together.""".split("|")
OPENINGS = """Once upon a time, there was a {adjective} {animal} named {name}.|One day, {name} went to play {place}.
              |Once there was a girl named {name} who had a {adjective} {thing}.|It was a {weather} day, and {name} was {place}.
              |{name} and {other} were best friends.""".split("|")
FINDS = """{name} saw a {adjective} {thing} {place}.|{name} wanted to show {other} the {adjective} {thing}.
           |{name} loved the {adjective} {thing} very much.|{name} had never seen such a {adjective} {thing}.""".split("|")
TALK = """"Oh no!" said {name}. "My {thing}!"|"Can we play with it?" asked {other}. "Yes, we can!" said {name}.
          |"Don't be {feeling}," said {other}. "I'll help you."|{name} didn't know what to do and felt {feeling}.
          |"Look!" said {other}. "There is a {animal}!"|{name} was {feeling}, but {other} wasn't.""".split("|")
ENDINGS = """They were very happy and played until it was dark.|{name} said, "Thank you, {other}!" and gave {other} a hug.
             |From that day on, they shared the {thing}.|Then they went home, and {name} told mom about the {animal}.
             |{name} learned to be kind, and they all had {number} pieces of cake.|The end.""".split("|")


class Writer:
    """Draws with random() alone: only that is the same in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, count):
        return int(self.random() * count)

    def one_of(self, items):
        return items[self.below(len(items))]

    def story(self):
        name = self.below(len(NAMES))
        other = (name + 1 + self.below(len(NAMES) - 1)) % len(NAMES)
        words = {"name": NAMES[name], "other": NAMES[other], "animal": self.one_of(ANIMALS), "thing": self.one_of(THINGS),
                 "adjective": self.one_of(ADJECTIVES), "place": self.one_of(PLACES), "weather": self.one_of(WEATHER),
                 "feeling": self.one_of(FEELINGS), "number": str(2 + self.below(19))}
        parts = [OPENINGS, FINDS, TALK, PROBLEMS, TALK, HELP, ENDINGS]
        if self.random() < 0.4:
            parts.insert(5, TALK)
        sentences = [" ".join(self.one_of(part).split()) for part in parts]
        gaps = ["\n" if self.random() < 0.15 else " " for _ in sentences[1:]] + [""]
        text = "".join(sentence + gap for sentence, gap in zip(sentences, gaps))
        return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text.format(**words))

    def stories(self, count):
        return [self.story() for _ in range(count)]


def merges_of(words, count):
    """BPE (arXiv:1508.07909): the most frequent pair becomes one symbol, again and again.
    `words` counts tuples of symbols. Equally frequent pairs are merged in alphabetical order."""
    merges = []
    for _ in range(count):
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = collections.Counter({merged(word, best): times for word, times in words.items()})
    return merges


def merged(word, pair):
    symbols, at = [], 0
    while at < len(word):
        both = word[at:at + 2] == pair
        symbols.append("".join(pair) if both else word[at])
        at += 1 + both
    return tuple(symbols)


def seen_bytes():
    """GPT-2 writes each byte as a visible character."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in seen]
    return {**{byte: chr(byte) for byte in seen}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def write_gpt2(folder, text):
    """Writes the BPE. Splits by GPT-2's pattern, with the letters and digits of Python's re."""
    split = re.findall(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+", text)
    alphabet = seen_bytes()
    words = collections.Counter(tuple(alphabet[byte] for byte in word.encode()) for word in split)
    merges = merges_of(words, MERGES)
    tokens = [*alphabet.values(), *("".join(pair) for pair in merges), END]
    write(folder, "vocab.json", json.dumps({token: i for i, token in enumerate(tokens)}, ensure_ascii=False))
    write(folder, "merges.txt", "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))


def varint(number):
    number &= (1 << 64) - 1  # a negative number becomes its 64-bit two's complement
    low = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([part | 0x80 for part in low[:-1]] + low[-1:])


def field(number, value):
    """A field of a protocol buffer: bytes and messages, 32-bit floats, integers."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def write_llama(folder, text):
    """Writes a sentencepiece_model.proto: pieces, then how to train and how to normalise."""
    normal, unknown, control, byte = 1, 2, 3, 6
    words = collections.Counter(tuple(word) for word in re.findall("▁?[^▁\n]+", "▁" + text.replace(" ", "▁")))
    merges = merges_of(words, MERGES)
    characters = sorted({c for word in words for c in word if c.isascii() or c == "▁"})
    pieces = [("<unk>", 0.0, unknown), ("<s>", 0.0, control), ("</s>", 0.0, control)]
    pieces += [(f"<0x{i:02X}>", 0.0, byte) for i in range(256)]
    longer = [pair for pair in merges if all(c.isascii() or c == "▁" for part in pair for c in part)]
    pieces += [("".join(pair), -float(i), normal) for i, pair in enumerate(longer)]
    pieces += [(c, -float(len(longer) + i), normal) for i, c in enumerate(characters)]
    bpe, trainer = 2, (3, 4, 35, 40, 41, 42, 43)
    values = (bpe, len(pieces), 1, 0, 1, 2, -1)
    model = b"".join(field(1, field(1, piece.encode()) + field(2, score) + field(3, kind)) for piece, score, kind in pieces)
    model += field(2, b"".join(field(number, value) for number, value in zip(trainer, values)))
    model += field(3, field(1, b"identity") + field(3, 1) + field(4, 0) + field(5, 1))
    write(folder, "tokenizer.model", model)


def write(folder, name, content):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stories")
    folder = sys.argv[1] if len(sys.argv) > 1 else here
    writer = Writer(SEED)
    train, test = writer.stories(TRAIN_STORIES), writer.stories(TEST_STORIES)
    for name, stories in (("train.txt", train), ("test.txt", test)):
        write(folder, name, "".join(story + END + "\n" for story in stories))
    write_gpt2(os.path.join(folder, "gpt2"), "".join(train))
    write_llama(os.path.join(folder, "llama"), "".join(train))


if __name__ == "__main__":
    main()
