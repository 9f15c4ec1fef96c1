"""The text and the vocabularies of language models, for make bench and make model. Anybody can repeat
a measurement, because all come from the kit's stories."""
import json
import os
import struct

from language_cost import AUTHORS

STORIES = "data/stories/train.txt"


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
    """The number of pieces of a SentencePiece model: its fields 1."""
    at = count = 0
    while at < len(content):
        tag, at = read_varint(content, at)
        size, begin = read_varint(content, at)
        count += tag == 1 << 3 | 2
        at = begin + size if tag & 7 == 2 else begin
    return count


def write_vocabularies(work):
    """A field that is repeated may continue at the end of a SentencePiece model. Of a piece: 1 its
    text, 2 its score, 3 its type, 5 for unused."""
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
    write_vocabularies(work)
    vocabulary = f"{work}/vocab.txt" if kind == "mlm" else f"{work}/{kind}"
    return (("--task", "mlm") if kind == "mlm" else ("--model", kind)), ["--data", STORIES, "--vocab", vocabulary]
