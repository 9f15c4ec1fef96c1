"""The models whose steps are measured and predicted. dry.py has what a step of them takes on a rank,
and pace.py how long that takes."""
import math
from dataclasses import dataclass

VOCABULARY = 30522  # of BERT
LLAMA = 6, 288, 6, 256  # layers, hidden, heads, SEQ of MODEL=llama (common/train/config.c)
AUTHORS = {"llama": ("LLaMA", 32000), "gpt2": ("GPT-2", 50257), "mlm": ("masked BERT", VOCABULARY)}  # kind: its name, its authors' vocabulary


@dataclass
class Model:
    layers: int
    hidden: int
    heads: int
    seq: int
    batch: int  # of all replicas together
    vocabulary: int
    kind: str = "bert"  # the labs' classifier, or a language model of AUTHORS
    recompute: str = ""  # what the backward pass runs again: "block", "attention", or nothing
    zero: bool = False  # is the optimiser's state sharded over the replicas (ZERO=1)?
    average: int = 0  # steps between averages of the replicas' weights; 0: they average gradients
    sequence_parallel: bool = False  # norms, dropouts and residual sums on a rank's positions (SP=1)
    # Does the kit skip rows without a gradient in products, and table rows that no replica has looked
    # up? True on the CPU, False on a GPU.
    leaves_out: bool = True
    rounds: bool = False  # do products multiply matrices in 16 bits (AMP=bf16, AMP=fp16)?
    # Megatron-LM's of 2019: products add their biases, attention also multiplies scores that its mask
    # hides, and one sum of all gradients follows the backward pass.
    published: bool = False

    def name(self):
        """The prefix of the sizes in texts; empty for the classifier."""
        return f"{AUTHORS[self.kind][0]}, vocabulary {self.vocabulary}, " if self.kind in AUTHORS else ""

    def named(self):
        """The options of build/train that name the model; its sizes come after them."""
        return {"bert": (), "mlm": ("--task", "mlm")}.get(self.kind, ("--model", self.kind))

    def options(self, dp):
        """The options of build/train for what its step does. A sharded optimiser and averages need
        replicas."""
        return (*(("--recompute", self.recompute) if self.recompute else ()), *(("--sp", 1) if self.sequence_parallel else ()),
                *(("--zero", 1) if self.zero and dp > 1 else ()), *(("--average", self.average) if self.average and dp > 1 else ()))

    def sizes(self):
        return self.layers, self.hidden, self.heads, self.seq, self.batch

    def splits(self, tp):
        """Can the layers be split over tp ranks?"""
        inner = 32 * math.ceil(8 * self.hidden // 3 / 32) if self.kind == "llama" else 4 * self.hidden
        return self.heads % tp == 0 and inner % tp == 0 and not (self.sequence_parallel and self.seq % tp)

    def seen(self):
        """The share of the scores that attention multiplies."""
        return 1 if self.kind in ("bert", "mlm") or self.published else (self.seq + 1) / (2 * self.seq)

    def skips(self):
        """Does it skip what has no gradient? A classifier reads only the first position: no other
        position of its last block has a gradient, nor has a table row that is not looked up."""
        return self.kind == "bert" and self.leaves_out

    def idle(self, tp):
        """Numbers of a rank's table without a gradient. AdamW does not read or write their means."""
        return max(0, self.vocabulary - self.batch * self.seq) * self.hidden / tp if self.skips() else 0


def layouts(ranks, model):
    """The (tp, dp, pp) of `ranks` ranks such that the layers can be split over tp ranks, dp divides
    the batch, and each of the pp stages has a block."""
    return [(tp, ranks // (tp * pp), pp) for pp in range(1, min(ranks, model.layers) + 1) for tp in range(1, min(ranks // pp, model.heads) + 1)
            if ranks % (tp * pp) == 0 and model.splits(tp) and model.batch % (ranks // (tp * pp)) == 0]
