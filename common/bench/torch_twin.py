#!/usr/bin/env python3
"""The training step of the kit's BERT in PyTorch, with the same sizes, layouts and optimiser, for
`make bench VS=torch`.

    torch_twin.py RANKS TP LAYERS HIDDEN HEADS SEQ BATCH STEPS THREADS VOCABULARY off|tf32|bf16|fp16 cpu-eager|cpu-compiled|cuda-eager|cuda-compiled

Prints one JSON object: the seconds of each step on rank 0, the largest resident memory of a rank,
its resident memory after importing PyTorch and, on a GPU (one rank), the peak memory of its
tensors. Tensor-parallel layers are Megatron-LM's (Shoeybi et al. 2019): split by columns, then by
rows, with f and g around them. DistributedDataParallel runs the replicas. PyTorch uses its fastest
options: foreach or fused AdamW, its own attention kernel if it has one (flash attention on a GPU in
16 bits, without a mask, because nothing is padding), and gradients that are views of the buckets.
bf16 and fp16 use autocast; fp16 also uses the gradient scaler.
"""
import json
import resource
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional


class Split:
    """This rank's tensor-parallel group; with one rank, nothing is sent."""

    def __init__(self, tp, group):
        self.tp, self.group = tp, group

    def sum(self, x):
        """Sums x over the group, in place. Before PyTorch 2, gloo cannot sum bf16."""
        if x.dtype == torch.bfloat16 and torch.__version__ < "2":
            wide = x.float()
            dist.all_reduce(wide, group=self.group)
            x.copy_(wide)
        else:
            dist.all_reduce(x, group=self.group)
        return x

    def copy(self, x):
        """f: the identity forward, the sum over the group backward."""
        if self.tp > 1:
            x = x.view_as(x)
            x.register_hook(lambda dx: self.sum(dx.contiguous()))
        return x

    def reduce(self, x):
        """g: the sum over the group forward, in place; the identity backward."""
        if self.tp > 1:
            self.sum(x.detach())
        return x

    def gather(self, x):
        """Concatenates along the last dimension over the group; backward keeps this rank's part."""
        if self.tp == 1:
            return x
        parts = [torch.empty_like(x) for _ in range(self.tp)]
        dist.all_gather(parts, x.detach().contiguous(), group=self.group)
        parts[dist.get_rank(self.group)] = x
        return torch.cat(parts, -1)


class Pair(nn.Module):
    """Two linear layers, the first split by columns, the second by rows, with GELU and dropout in
    between and one all-reduce."""

    def __init__(self, split, hidden, inner, out, p):
        super().__init__()
        self.split, self.p = split, p
        self.up = nn.Linear(hidden, inner // split.tp, bias=False)
        self.down = nn.Linear(inner // split.tp, out, bias=False)

    def forward(self, x):
        x = functional.dropout(functional.gelu(self.up(self.split.copy(x))), self.p, self.training)
        return self.split.reduce(self.down(x))


def attended(q, k, v, shown=None, causal=False):
    """The attention of all heads, by PyTorch's own kernel if it has one.

    @param shown which keys each position sees; None: all, or if `causal` those up to its own"""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=shown, is_causal=causal)
    shown = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril() if causal else shown
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    return torch.softmax(scores.masked_fill(~shown, float("-inf")), -1) @ v


class Attention(nn.Module):
    def __init__(self, split, hidden, heads):
        super().__init__()
        self.split, self.heads, self.size = split, heads // split.tp, hidden // heads
        self.inward = nn.Linear(hidden, 3 * hidden // split.tp, bias=False)
        self.outward = nn.Linear(hidden // split.tp, hidden, bias=False)

    def forward(self, x, shown):
        batch, seq, _ = x.shape
        q, k, v = (t.view(batch, seq, self.heads, self.size).transpose(1, 2) for t in self.inward(self.split.copy(x)).chunk(3, -1))
        return self.split.reduce(self.outward(attended(q, k, v, shown).transpose(1, 2).reshape(batch, seq, -1)))


class Block(nn.Module):
    def __init__(self, split, hidden, heads, p):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = Attention(split, hidden, heads)
        self.feed_forward = Pair(split, hidden, 4 * hidden, hidden, p)

    def forward(self, x, shown):
        x = x + self.attention(self.norm1(x), shown)
        return x + self.feed_forward(self.norm2(x))


class Bert(nn.Module):
    def __init__(self, split, vocabulary, layers, hidden, heads, p=0.1):
        super().__init__()
        self.split = split
        self.embedding = nn.Embedding(vocabulary, hidden // split.tp)
        self.blocks = nn.ModuleList(Block(split, hidden, heads, p) for _ in range(layers))
        self.head = Pair(split, hidden, hidden, 2, p)

    def forward(self, ids, shown):
        x = self.split.gather(self.embedding(ids))
        for block in self.blocks:
            x = block(x, shown)
        return self.head(x[:, 0])


def adamw(parameters):
    for fastest in ({"fused": True}, {"foreach": True}, {}):
        try:
            return torch.optim.AdamW(parameters, lr=3e-4, weight_decay=0.01, **fastest)
        except (RuntimeError, TypeError):
            continue
    raise RuntimeError("this PyTorch has no AdamW")


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def gradient_scaler(amp):
    """The gradient scaler, which does nothing except in fp16."""
    return (torch.amp if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler") else torch.cuda.amp).GradScaler(enabled=amp == "fp16")


def on_rank(rank, run, ranks, threads, given, folder, found):
    """Runs on one rank of spawn()."""
    imported = peak_bytes()
    torch.set_num_threads(threads)
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    figures = run(rank, *given)
    found.put((rank, {**figures, "resident_bytes": peak_bytes(), "imported_bytes": imported}))
    if ranks > 1:
        dist.destroy_process_group()


def spawn(run, ranks, threads, *given):
    """What run(rank, *given) returns on each of the ranks, which are connected by gloo: a dictionary of
    figures, with the rank's largest resident memory, at the end and after importing PyTorch."""
    found = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        mp.spawn(on_rank, args=(run, ranks, threads, given, folder, found), nprocs=ranks)
    by_rank = dict(found.get() for _ in range(ranks))
    return [by_rank[rank] for rank in range(ranks)]


def largest(found):
    """The figures of spawn() for the output: the seconds of rank 0, and the largest of all sizes."""
    return {"torch": torch.__version__, "seconds": found[0]["seconds"],
            **{key: max(one[key] for one in found) for key in found[0] if key.endswith("_bytes")}}


def run(rank, ranks, tp, layers, hidden, heads, seq, batch, steps, vocabulary, amp, where):
    device, _, how = where.partition("-")
    torch.backends.cuda.matmul.allow_tf32 = amp == "tf32"
    torch.manual_seed(1)
    tp_groups, dp_groups = [None] * ranks, [None] * ranks
    if ranks > 1:  # every rank must make all groups
        tp_groups = [dist.new_group(list(range(i, i + tp))) for i in range(0, ranks, tp)]
        dp_groups = [dist.new_group(list(range(i, ranks, tp))) for i in range(tp)]
    model = Bert(Split(tp, tp_groups[rank // tp]), vocabulary, layers, hidden, heads).to(device)
    if how == "compiled":
        model = torch.compile(model)
    optimiser = adamw(model.parameters())
    replicas = ranks // tp
    if replicas > 1:
        model = nn.parallel.DistributedDataParallel(model, process_group=dp_groups[rank % tp],
                                                    gradient_as_bucket_view=True)
    rows, scaler, narrow = batch // replicas, gradient_scaler(amp), {"bf16": torch.bfloat16, "fp16": torch.float16}.get(amp)
    torch.manual_seed(2 + rank // tp)
    seconds = []
    for _ in range(steps):
        ids = torch.randint(vocabulary, (rows, seq)).to(device)
        shown = torch.ones(rows, 1, 1, seq, dtype=torch.bool) if device == "cpu" else None
        labels = torch.randint(2, (rows,)).to(device)
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=narrow or torch.bfloat16, enabled=narrow is not None):
            loss = functional.cross_entropy(model(ids, shown), labels)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        loss.item()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds, "device_bytes": torch.cuda.max_memory_allocated() if device == "cuda" else 0}


def main():
    ranks, *sizes, threads, vocabulary = map(int, sys.argv[1:-2])
    print(json.dumps(largest(spawn(run, ranks, threads, ranks, *sizes, vocabulary, *sys.argv[-2:]))))


if __name__ == "__main__":
    main()
