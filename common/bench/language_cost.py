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
        self.inner_in_backward = self.of_kind(3, 2, 2)
        self.layers_in = self.of_kind(2, 1, 1)
        self.matrices = self.of_kind(3, 2, 2)  # SwiGLU; GELU

    def name(self):
        return f"{AUTHORS[self.kind][0]}, vocabulary {self.vocabulary}, "

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

    # ---- memory ----------------------------------------------------------------------------------------------------

    def read(self, tp):
        """The two residual sums and the moments of the norms, whole. Split over tp: q, k, v, the
        output of attention, two numbers per row of scores, and the inputs of SwiGLU or GELU."""
        hidden, inner = self.hidden, self.inner()
        split = self.multiplied() + 2 * self.heads + self.of_kind(2 * inner, inner, inner + inner / 32)
        return self.whole(tp) * (2 * hidden + self.of_kind(2, 4, 4)) + split / tp

    def working(self, tp, dp):
        """As in cost.py, the numbers held when the forward pass leaves the last block, with ids,
        mask and targets. A LLaMA also holds q and k before their rotation. A GPT-2 also holds q, k
        and v in one tensor, and the outputs with their biases. A recomputed attention has released
        all these except its result."""
        again = self.recompute == "attention"
        whole = self.beside(tp) * self.hidden + self.of_kind(0, (1 if again else 2) * self.hidden + 2, 0) + 4
        inside = 0 if again else self.of_kind(2 * self.hidden, 3 * self.hidden, 0)
        return self.batch / dp * self.seq * (whole + (inside + self.inner()) / tp + self.for_products(tp))

    def beside(self, tp):
        """With SP=1 (of these models, only BERT's pretraining takes it), an attention that runs
        again leaves its partial sum, so the forward pass holds as much as without recomputation.
        When the last block's attention has run backward, the linear layer of v holds five tensors
        with all positions: the gathered tensor, the partial sum, their gradients, and the output.
        No row is padding, so it copies none. The shards beside them, such as the gradients of q, k
        and v, are as large as what working() counts and the feed-forward part has released."""
        if tp == 1 or not self.sequence_parallel:
            return super().beside(tp)
        return max(4 + 5 / tp, 5 if self.recompute == "attention" else 0)

    def after_products(self, tp):
        return super().after_products(tp) + self.of_kind(0, 1, 0)  # in a GPT-2, the sum with the bias

    def working_in_backward(self, tp, dp, pp, stage):
        """On the last stage, the larger of what the head holds and what the last feed-forward layer
        holds. The head: the logits, which their gradient overwrites; the head's input before and
        after its norm, and its gradient; and the numbers that the loss keeps per token. In BERT's
        pretraining, the head has only the rows of hidden tokens, and the output of the blocks and
        its gradient are held too. The last feed-forward layer then copies these rows of two
        tensors, because the gradient of all other rows is zero; and once more in 16 bits."""
        if stage < pp - 1:
            return super().working_in_backward(tp, dp, pp, stage)
        hidden, rows, inner, hidden_rows = self.hidden, self.rows(tp), self.inner() / tp, self.in_head()
        head = self.of_kind(0, 0, 2 * hidden) + hidden_rows * (rows + 3 * hidden + (11 if tp > 1 else 10))
        feed_forward = self.of_kind(0, 0, (3 + 2 * self.whole(tp)) * hidden + 4 + inner + hidden_rows * (hidden + inner) * (1 + self.rounds / 2))
        return self.batch / dp * self.seq * max(head, feed_forward)

    # ---- communication ---------------------------------------------------------------------------------------------

    loss_sums = 3  # the maximum, the sum of the exponentials, the target's logit

    def reduced_at_ends(self, rows):
        tokens = rows * self.seq
        return tokens * self.hidden, self.in_head() * tokens * (self.hidden + self.loss_sums)

    def tied(self, tp, pp):
        return self.rows(tp) * self.hidden if pp > 1 else 0
