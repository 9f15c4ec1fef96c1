#!/usr/bin/env python3
"""The training step and the text of Hugging Face's transformers, for `make bench VS=torch` with
ONLY=transformers and ONLY=story.

    torch_transformers.py FOLDER step WINDOWS RATE SEQ BATCH STEPS eager|compiled
    torch_transformers.py FOLDER story COUNT ID...

FOLDER has a model of `build/checkpoint merge --hf`. WINDOWS is as for torch_llama.py.
`story` continues the ids of a prompt by COUNT tokens, each the most probable one, with the
library's cache of keys and values. Prints one JSON object: the seconds and the loss of each step,
or the seconds and the ids of the text; and the largest resident memory. The library chooses the
attention: PyTorch's scaled_dot_product_attention.
"""
import json
import sys
import time

import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM

from torch_llama import read_windows, take_steps
from torch_twin import peak_bytes


def train(model, windows, rate, seq, batch, steps, how):
    """The model stays in evaluation mode: like the kit's, it has no dropout."""
    def loss_of(ids, targets):
        return functional.cross_entropy(model(input_ids=ids, use_cache=False).logits.flatten(0, 1), targets.flatten())

    windows = read_windows(windows, seq)
    batches = [windows[torch.arange(batch * step, batch * (step + 1)) % len(windows)] for step in range(steps)]
    return take_steps(torch.compile(loss_of) if how == "compiled" else loss_of, list(model.parameters()), batches, rate)


def write(model, count, ids):
    """The first text warms up; the second is timed."""
    prompt = torch.tensor([ids])
    for length in 2, count:
        begin = time.perf_counter()
        text = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=length, do_sample=False, eos_token_id=None, pad_token_id=0)
        seconds = time.perf_counter() - begin
    return {"seconds": seconds, "ids": text[0].tolist()}


def main():
    folder, what, *rest = sys.argv[1:]
    imported = peak_bytes()
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder)
    if what == "story":
        count, *ids = map(int, rest)
        result = write(model, count, ids)
    else:
        windows, rate, *sizes, how = rest
        result = train(model, windows, float(rate), *map(int, sizes), how)
    print(json.dumps({"torch": torch.__version__, **result, "resident_bytes": peak_bytes(), "imported_bytes": imported}))


if __name__ == "__main__":
    main()
