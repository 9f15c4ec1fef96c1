#!/usr/bin/python3
"""Compares the serial BERT with the same model made of PyTorch's layers.

dump-model prints its parameters, a batch and its results. PyTorch computes the same in double
precision. In double precision, dump-model must agree to 1e-10 of the largest number. In single
precision, its error may be 8 times PyTorch's: the largest in three runs, which change each weight
by at most a unit in the last place.
"""
import os
import subprocess
import sys

try:
    import torch
except ImportError as error:
    print(f"skip - the serial BERT computes what PyTorch computes: {error} (apt-get install python3-torch)")
    sys.exit(0)
from torch import nn

torch.set_num_threads(1)

# vocabulary, hidden, layers, heads, classes, positions, B, S. A lab passes 1/sqrt(hidden/heads) in
# single precision, so cases in double precision are those where it is exact.
CASES = [("double", (37, 12, 2, 3, 2, 0, 3, 7)), ("float", (37, 12, 2, 3, 2, 0, 3, 7)),
         ("double", (29, 20, 3, 5, 3, 9, 2, 9)), ("float", (29, 15, 3, 5, 3, 9, 2, 9)),
         ("double", (23, 4, 1, 1, 4, 1, 1, 1)), ("float", (211, 132, 1, 11, 2, 0, 5, 33))]


def dump(precision, case):
    program = os.path.join(os.environ["BUILD"], "tests", "dump-model-" + precision)
    lines = subprocess.run([program, *map(str, case)], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    tensors = {}
    for head, numbers in zip(lines[0::2], lines[1::2]):
        name, *sizes = head.split()
        values = torch.tensor([float(number) for number in numbers.split()], dtype=torch.float64)
        tensors[name] = values.reshape([int(size) for size in sizes])
    return tensors


def below(tensors, prefix):
    return {name[len(prefix):]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = nn.MultiheadAttention(hidden, heads, bias=False, batch_first=True)
        self.up, self.down = nn.Linear(hidden, 4 * hidden, bias=False), nn.Linear(4 * hidden, hidden, bias=False)

    def forward(self, x, hidden_keys):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, key_padding_mask=hidden_keys)[0]
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Bert(nn.Module):
    def __init__(self, vocabulary, hidden, layers, heads, classes, positions, *_):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden) if positions else None
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.up, self.down = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, classes, bias=False)

    def forward(self, ids, mask):
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, mask == 0)
        return self.down(nn.functional.gelu(self.up(x[:, 0])))

    def named(self, of=lambda parameter: parameter):
        """{the kit's name: parameter or gradient}; PyTorch joins query, key and value."""
        result = {"embedding.weight": of(self.embedding.weight)}
        if self.positions is not None:
            result["positions.weight"] = of(self.positions.weight)
        for i, block in enumerate(self.blocks):
            projections = of(block.attention.in_proj_weight).chunk(3)
            result.update({
                f"blocks.{i}.norm1.weight": of(block.norm1.weight), f"blocks.{i}.norm1.bias": of(block.norm1.bias),
                f"blocks.{i}.attention.query": projections[0], f"blocks.{i}.attention.key": projections[1],
                f"blocks.{i}.attention.value": projections[2],
                f"blocks.{i}.attention.output": of(block.attention.out_proj.weight),
                f"blocks.{i}.norm2.weight": of(block.norm2.weight), f"blocks.{i}.norm2.bias": of(block.norm2.bias),
                f"blocks.{i}.feed_forward.up.weight": of(block.up.weight),
                f"blocks.{i}.feed_forward.down.weight": of(block.down.weight)})
        result.update({"classifier.head.up.weight": of(self.up.weight), "classifier.head.down.weight": of(self.down.weight)})
        return result


def copied(tensors):
    return {name: tensor.detach().double().clone() for name, tensor in tensors.items()}


def train(case, weights, batch, dtype):
    """PyTorch's {"result": ..., "gradients": ..., "sgd": ..., "adamw": ...}, each by name."""
    model = Bert(*case)

    def load():
        with torch.no_grad():
            for name, parameter in model.named().items():
                parameter.copy_(weights[name])

    def step():
        model.zero_grad()
        logits = model(batch["ids"].long(), batch["mask"])
        loss = nn.functional.cross_entropy(logits, batch["labels"].long())
        loss.backward()
        return {"logits": logits, "loss": loss.reshape(1)}

    model.to(dtype)
    load()
    found = {"result": copied(step()), "gradients": copied(model.named(lambda parameter: parameter.grad))}
    torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=0.01).step()
    found["sgd"] = copied(model.named())
    load()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
    for _ in range(3):
        step()
        optimiser.step()
    found["adamw"] = copied(model.named())
    return found


def moved(weights, run):
    generator = torch.Generator().manual_seed(run)
    signs = {name: torch.randint(-1, 2, tensor.shape, generator=generator) for name, tensor in weights.items()}
    return {name: tensor * (1 + signs[name] * 2.0**-23) for name, tensor in weights.items()}


def operations(inputs, dtype):
    """Operations that the model uses only in another form, and their gradients."""
    functions = {"linear": (nn.functional.linear, 3), "gelu": (nn.functional.gelu, 1),
                 "norm": (lambda x, w, b: nn.functional.layer_norm(x, w.shape, w, b, 1e-5), 3)}
    found = {}
    for name, (function, count) in functions.items():
        x = [inputs[f"{name}.x{i}"].detach().to(dtype, copy=True).requires_grad_() for i in range(count)]
        y = function(*x)
        y.backward(inputs[f"{name}.dy"].to(dtype))
        found[name] = y
        found.update({f"{name}.dx{i}": tensor.grad for i, tensor in enumerate(x)})
    return copied(found)


def compare(sentence, got, expected, single):
    """@param single PyTorch's results in single precision; empty for double precision"""
    wrong = [] if got.keys() == expected.keys() else [f"names: {sorted(got)} instead of {sorted(expected)}"]
    for name in expected.keys() & got.keys():
        largest = expected[name].abs().max().item()
        tolerance = 1e-10 * max(largest, 1e-3)
        if single:
            error = max((run[name] - expected[name]).abs().max().item() for run in single)
            tolerance = 8 * error + 2.0**-23 * largest
        difference = (got[name] - expected[name]).abs().max().item() if got[name].shape == expected[name].shape else float("nan")
        if not difference <= tolerance:
            wrong.append(f"{name} {list(got[name].shape)}: off by {difference:.3g}, at most {tolerance:.3g}")
    print(("not ok" if wrong else "ok") + f" - {sentence}")
    for line in wrong:
        print("    " + line)
    return not wrong


def main():
    right = True
    sentences = {"result": "logits and loss are", "gradients": "every gradient is", "sgd": "weights after a step of SGD are",
                 "adamw": "weights after three steps of AdamW are"}
    for precision, case in CASES:
        tensors = dump(precision, case)
        weights, batch, inputs = below(tensors, "weights/"), below(tensors, "batch/"), below(tensors, "operations/")
        exact = train(case, weights, batch, torch.float64)
        single = [train(case, moved(weights, run), batch, torch.float32) for run in range(3)] if precision == "float" else []
        where = f"PyTorch's, in {precision}, at V,H,L,A,C,P,B,S = {','.join(map(str, case))}"
        for part, words_of_part in sentences.items():
            right &= compare(f"{words_of_part} {where}", below(tensors, part + "/"), exact[part],
                             [run[part] for run in single])
        right &= compare(f"linear with bias, layer norm and GELU are {where}", below(tensors, "operation/"),
                         operations(inputs, torch.float64), [operations(inputs, torch.float32)] if single else [])
    sys.exit(0 if right else 1)


main()
