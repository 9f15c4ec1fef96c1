#!/usr/bin/python3
"""torch_steps.py "layers hidden heads seq batch; ..." STEPS: the course's model in PyTorch on one GPU, for report.sh: eager and compiled, with
PyTorch's own attention (flash where it has it), fp32 and bf16, fused AdamW."""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(hidden, 4 * hidden, bias=False), nn.Linear(4 * hidden, hidden, bias=False)
        self.norms = nn.ModuleList([nn.LayerNorm(hidden), nn.LayerNorm(hidden)])

    def forward(self, x, mask):
        b, s, h = x.shape
        q, k, v = (w(x).view(b, s, self.heads, -1).transpose(1, 2) for w in (self.q, self.k, self.v))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, s, h)
        x = self.norms[0](x + self.out(y))
        return self.norms[1](x + self.down(functional.dropout(functional.gelu(self.up(x)), 0.1, self.training)))


class Bert(nn.Module):
    def __init__(self, layers, hidden, heads):
        super().__init__()
        self.table = nn.Embedding(30522, hidden)
        self.blocks = nn.ModuleList([Block(hidden, heads) for _ in range(layers)])
        self.head = nn.Sequential(nn.Linear(hidden, hidden, bias=False), nn.GELU(), nn.Linear(hidden, 2, bias=False))

    def forward(self, ids, mask):
        x = self.table(ids)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x[:, 0])


def step_seconds(sizes, amp, compiled, steps):
    layers, hidden, heads, seq, batch = sizes
    model = Bert(layers, hidden, heads).cuda()
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(30522, (batch, seq), device="cuda")
    labels = torch.randint(2, (batch,), device="cuda")
    seconds = []
    for _ in range(steps + 3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp == "bf16"):
            loss = functional.cross_entropy(run(ids, None).float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return seconds[3:]


print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
for sizes in (tuple(map(int, text.split())) for text in sys.argv[1].split(";") if text.strip()):
    for amp in ("off", "bf16"):
        for compiled in (False, True):
            seconds = step_seconds(sizes, amp, compiled, int(sys.argv[2]))
            median = statistics.median(seconds)
            print(f"{sizes[0]:>3}x{sizes[1]:<5} S={sizes[3]:<4} B={sizes[4]:<3} {amp:5} {'compiled' if compiled else 'eager':8} "
                  f"{min(seconds) * 1e3:9.1f} {median * 1e3:9.1f} {sizes[3] * sizes[4] / median:10.0f}")
