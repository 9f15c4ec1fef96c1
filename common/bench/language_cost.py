"""What a training step of the kit's language models needs on a rank; see cost.py.

The table of the vocabulary is split along its rows. The first and the last stage hold it, and add
their gradients once a step. The loss needs three numbers per token from the other tp ranks.
"""
import math
from dataclasses import dataclass, replace

import cost

HIDDEN_TOKENS = 0.15  # the share of the tokens that BERT's pretraining chooses, on average
AUTHORS = {"llama": ("LLaMA", 32000), "gpt2": ("GPT-2", 50257), "mlm": ("masked BERT", cost.VOCABULARY)}  # kind: its name, its authors' vocabulary
LLAMA = 6, 288, 6, 256  # layers, hidden, heads, SEQ of MODEL=llama (common/train/config.c)


@dataclass
class LanguageModel(cost.Model):
    kind: str = "llama"

    def __post_init__(self):
        self.layers_in = self.of_kind(2, 1, 1)
        self.matrices = self.of_kind(3, 2, 2)  # SwiGLU; GELU

    def name(self):
        return f"{AUTHORS[self.kind][0]}, vocabulary {self.vocabulary}, "

    def named(self):
        return ("--task", "mlm") if self.kind == "mlm" else ("--model", self.kind)

    def of_kind(self, llama, gpt2, mlm):
        return {"llama": llama, "gpt2": gpt2, "mlm": mlm}[self.kind]

    def inner(self):
        """A multiple of 32 in a LLaMA."""
        return self.of_kind(32 * math.ceil(8 * self.hidden // 3 / 32), 4 * self.hidden, 4 * self.hidden)

    def in_head(self):
        return self.of_kind(1, 1, HIDDEN_TOKENS)

    # ---- parameters ------------------------------------------------------------------------------------------------

    def rows(self, tp):
        """The rows of the table on the rank that holds the most."""
        return math.ceil(self.vocabulary / tp)

    def block(self, tp):
        """Biases after a split by columns are split; biases after a split by rows are whole."""
        hidden = self.hidden
        return (self.weights() + self.of_kind(0, 3 * hidden + self.inner(), 0)) / tp + self.of_kind(2, 6, 4) * hidden

    def ends(self, tp, pp):
        table, norm = self.rows(tp) * self.hidden, self.of_kind(1, 2, 2) * self.hidden
        positions = self.of_kind(0, self.seq * self.hidden, 0)
        return table + positions, norm + (table if pp > 1 else 0)

    def left_out(self, tp, pp):
        """Nothing on a rank that also multiplies by the table, whose gradient has no zero rows."""
        return self.unused(tp) if pp > 1 else 0

    def summed(self, tp, pp, stage):
        """If replicas of a masked BERT average gradients, they also sum how many tokens they hid, in
        double precision."""
        return super().summed(tp, pp, stage) + (0 if self.average else self.of_kind(0, 0, 2))

    # ---- work ------------------------------------------------------------------------------------------------------

    def keys(self):
        return self.seq if self.kind == "mlm" else (self.seq + 1) / 2

    def useful(self):
        linear, attention = replace(self, recompute="").work()
        return linear + attention * self.seq / self.keys()

    def streamed(self, tp, pp, stage):
        """Element-wise operations of the blocks, and of the loss, which reads or writes each logit
        or its gradient five times."""
        hidden, inner, passes = self.hidden, self.inner(), self.passes()[0] / 3 * self.blocks_of(pp, stage)
        split = self.of_kind(8 * hidden + 11 * inner, 7 * inner, 7 * inner)  # rotary positions and SwiGLU; GELU
        loss = 5 * self.in_head() * self.rows(tp) if stage == pp - 1 else 0
        return passes * self.of_kind(24, 36, 24) * self.whole(tp) * hidden, passes * split / tp + loss

    # ---- communication ---------------------------------------------------------------------------------------------

    loss_sums = 3  # the maximum, the sum of the exponentials, the target's logit

    def tied(self, tp, pp):
        return self.rows(tp) * self.hidden if pp > 1 else 0
