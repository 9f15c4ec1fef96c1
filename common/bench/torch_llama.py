#!/usr/bin/env python3
"""The training step of the kit's LLaMA in PyTorch, for `make bench ONLY=language VS=torch`.

    torch_llama.py WEIGHTS WINDOWS RATE WARMUP CLIP RANKS TP LAYERS HIDDEN HEADS SEQ BATCH STEPS THREADS

WEIGHTS is a file of `build/checkpoint merge`. WINDOWS has a line of SEQ + 1 tokens per window; each
step takes the next BATCH of them; the first window follows the last. The learning rate rises to
RATE over WARMUP steps. Gradients are clipped to a norm of CLIP, on one rank only; CLIP=0 leaves
them as they are. Prints one JSON object like that of torch_twin.py, with the loss of each step. The
layers are split over the tp ranks as in Megatron-LM, the table and the loss along the vocabulary.
"""
import json
import math
import struct
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from torch_twin import Split, adamw, attended, largest, spawn

EPSILON, THETA = 1e-5, 10000


def read_weights(path):
    """The tensors of a file in safetensors' format, by name."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    size = struct.unpack("<Q", content[:8])[0]
    return {name: torch.frombuffer(content, dtype=torch.float32, offset=8 + size + one["data_offsets"][0],
                                   count=(one["data_offsets"][1] - one["data_offsets"][0]) // 4).view(one["shape"])
            for name, one in json.loads(content[8:8 + size]).items() if name != "__metadata__"}


class RmsNorm(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight.clone())

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * self.weight


def rotated(x, cosine, sine):
    """Rotates pairs of numbers, which are half a head apart."""
    a, b = x.chunk(2, -1)
    return x * cosine + torch.cat((-b, a), -1) * sine


class Block(nn.Module):
    def __init__(self, split, rank, heads, weights):
        super().__init__()
        self.split, self.heads = split, heads // split.tp

        def part(name, dim):
            return nn.Parameter(weights[f"{name}.weight"].chunk(split.tp, dim)[rank].clone())

        self.norm1, self.norm2 = RmsNorm(weights["norm1.weight"]), RmsNorm(weights["norm2.weight"])
        self.inward = nn.Parameter(torch.cat([part(f"attention.{name}", 0) for name in ("query", "key", "value")]).detach())
        self.outward = part("attention.output", 1)
        self.gates = nn.Parameter(torch.cat([part(f"feed_forward.{name}", 0) for name in ("gate", "up")]).detach())
        self.down = part("feed_forward.down", 1)

    def attend(self, x, cosine, sine):
        batch, seq, _ = x.shape
        q, k, v = (t.view(batch, seq, self.heads, -1).transpose(1, 2) for t in functional.linear(self.split.copy(x), self.inward).chunk(3, -1))
        q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
        y = attended(q, k, v, causal=True).transpose(1, 2).reshape(batch, seq, -1)
        return self.split.reduce(functional.linear(y, self.outward))

    def forward(self, x, cosine, sine):
        x = x + self.attend(self.norm1(x), cosine, sine)
        gate, up = functional.linear(self.split.copy(self.norm2(x)), self.gates).chunk(2, -1)
        return x + self.split.reduce(functional.linear(functional.silu(gate) * up, self.down))


class Llama(nn.Module):
    def __init__(self, split, rank, layers, heads, seq, weights):
        super().__init__()
        self.split, table = split, weights["embedding.weight"]
        self.begin = -(-table.shape[0] // split.tp) * rank
        self.table = nn.Parameter(table.split(-(-table.shape[0] // split.tp))[rank].clone())
        self.blocks = nn.ModuleList(
            Block(split, rank, heads, {name.partition(f"blocks.{i}.")[2]: x for name, x in weights.items() if name.startswith(f"blocks.{i}.")})
            for i in range(layers))
        self.norm = RmsNorm(weights["norm.weight"])
        size = table.shape[1] // heads
        angles = torch.outer(torch.arange(seq, dtype=torch.float64), THETA ** (-torch.arange(0, size, 2, dtype=torch.float64) / size))
        self.register_buffer("cosine", torch.cat((angles, angles), -1).cos().float())
        self.register_buffer("sine", torch.cat((angles, angles), -1).sin().float())

    def own(self, ids):
        """Returns which ids are this rank's, and their row numbers in its table; 0 for other
        ids."""
        mine = (self.begin <= ids) & (ids < self.begin + self.table.shape[0])
        return mine, torch.where(mine, ids - self.begin, torch.zeros_like(ids))

    def forward(self, ids, targets):
        """The loss. On one rank, uses PyTorch's own embedding and cross-entropy."""
        alone = self.split.tp == 1
        mine, rows = self.own(ids)
        x = functional.embedding(rows, self.table)
        x = x if alone else self.split.reduce(x * mine.unsqueeze(-1))
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits = functional.linear(self.split.copy(self.norm(x)), self.table)
        if alone:
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        most = logits.detach().amax(-1)
        dist.all_reduce(most, op=dist.ReduceOp.MAX, group=self.split.group)
        sums = self.split.reduce((logits - most.unsqueeze(-1)).exp().sum(-1))
        mine, rows = self.own(targets)
        chosen = self.split.reduce((logits.gather(-1, rows.unsqueeze(-1)).squeeze(-1) - most) * mine)
        return (sums.log() - chosen).mean()


def read_windows(path, seq):
    with open(path, encoding="utf-8") as file:
        return torch.tensor([int(token) for token in file.read().split()]).view(-1, seq + 1)


def rate_of(step, rate, warmup):
    """The learning rate of a step, counted from 0, as by schedule_rate()
    (common/optim/gradients.c)."""
    return rate * min(1, (step + 1) / warmup) if warmup else rate


def clip_gradients(gradients, most):
    """Like clip_grad_norm_(), except that the squares are summed in double precision: PyTorch's
    norm of the table's 9 million gradients has an error of 5e-5; the kit's does not."""
    norm = math.sqrt(sum(g.double().square().sum().item() for g in gradients))
    for gradient in gradients:
        gradient.mul_(min(1, most / (norm + 1e-6)))


def take_steps(loss_of, parameters, batches, rate, warmup=0, clip=0):
    """The seconds and the loss of a step on each of the batches of windows."""
    optimiser, seconds, losses = adamw(parameters), [], []
    for step, batch in enumerate(batches):
        optimiser.param_groups[0]["lr"] = rate_of(step, rate, warmup)
        begin = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(batch[:, :-1], batch[:, 1:])
        loss.backward()
        if clip:
            clip_gradients([p.grad for p in parameters], clip)
        optimiser.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds, "losses": losses}


def run(rank, weights, windows, rate, warmup, clip, ranks, tp, layers, heads, seq, batch, steps):
    replicas, group = ranks // tp, dist.group.WORLD if ranks > 1 else None  # tp or dp is 1, so one group of all ranks is enough
    model = Llama(Split(tp, group), rank % tp, layers, heads, seq, read_weights(weights))
    windows, rows = read_windows(windows, seq), batch // replicas
    parameters = list(model.parameters())
    if replicas > 1:
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    firsts = [batch * step + rows * (rank // tp) for step in range(steps)]
    return take_steps(model, parameters, [windows[torch.arange(first, first + rows) % len(windows)] for first in firsts], rate, warmup, clip)


def main():
    weights, windows, rate, *sizes = sys.argv[1:]
    warmup, clip, ranks, tp, layers, _, heads, *rest, threads = map(int, sizes)
    found = spawn(run, ranks, threads, weights, windows, float(rate), warmup, clip, ranks, tp, layers, heads, *rest)
    of_replicas = [one["losses"] for one in found[::tp]]
    print(json.dumps({**largest(found), "losses": [sum(losses) / len(losses) for losses in zip(*of_replicas)]}))


if __name__ == "__main__":
    main()
