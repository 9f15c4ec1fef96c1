#!/usr/bin/env python3
"""The training step of the kit's BERT as a pipeline of PyTorch (torch.distributed.pipelining over
gloo), for `make bench ONLY=pipeline VS=torch`.

    torch_pipeline.py STAGES LAYERS HIDDEN HEADS SEQ BATCH STEPS VOCABULARY MICRO gpipe|1f1b

Prints one JSON object: the seconds of each step on rank 0, and each rank's largest resident memory,
at the end and after importing PyTorch. Every rank has one thread. The layers come from
torch_twin.py, without a mask, because nothing is padding.
"""
import json
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.nn import functional

from torch_twin import Block, Pair, Split, adamw, spawn

DROPOUT = 0.1


class Part(nn.Module):
    """The layers of a stage, with the kit's division of the blocks."""

    def __init__(self, stage, stages, layers, hidden, heads, vocabulary):
        super().__init__()
        alone = Split(1, None)
        self.embedding = nn.Embedding(vocabulary, hidden) if stage == 0 else None
        self.blocks = nn.ModuleList(Block(alone, hidden, heads, DROPOUT) for _ in range(layers * stage // stages, layers * (stage + 1) // stages))
        self.head = Pair(alone, hidden, hidden, 2, DROPOUT) if stage == stages - 1 else None

    def forward(self, x):
        x = self.embedding(x) if self.embedding else x
        for block in self.blocks:
            x = block(x, None)
        return self.head(x[:, 0]) if self.head else x


def run(rank, stages, layers, hidden, heads, seq, batch, steps, vocabulary, micro, name):
    torch.manual_seed(1 + rank)
    part = Part(rank, stages, layers, hidden, heads, vocabulary)
    optimiser = adamw(part.parameters())
    stage = PipelineStage(part, rank, stages, torch.device("cpu"))
    schedule = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[name](stage, n_microbatches=micro, loss_fn=functional.cross_entropy)
    seconds = []
    for _ in range(steps):
        ids, labels = torch.randint(vocabulary, (batch, seq)), torch.randint(2, (batch,))
        dist.barrier()
        begin = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        if rank == 0:
            schedule.step(ids)
        elif rank == stages - 1:
            schedule.step(target=labels, losses=[])
        else:
            schedule.step()
        optimiser.step()
        dist.barrier()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds}


def main():
    stages, *sizes = map(int, sys.argv[1:-1])
    found = spawn(run, stages, 1, stages, *sizes, sys.argv[-1])
    print(json.dumps({"torch": torch.__version__, "seconds": found[0]["seconds"],
                      **{key: [one[key] for one in found] for key in ("resident_bytes", "imported_bytes")}}))


if __name__ == "__main__":
    main()
