"""The work of a training step of the kit's BERT on a rank: arithmetic, memory traffic, exchanges.
language_cost.py has the same for language models; pace.py computes how long all this takes. dry.py
has what a rank holds and sends.

Counts are for one step of one rank; numbers are `Cluster.width` bytes wide. A pipeline runs one
forward and one backward pass per micro-batch, in 1F1B order (Narayanan et al. 2021, section 2.2).
"""
import math
from dataclasses import dataclass, replace

VOCABULARY, CLASSES = 30522, 2  # of BERT, and of the kit's reviews
LARGE_TABLE = 1 << 20  # numbers; of a table at least this large, replicas sum only the used rows (common/train/buckets.c)


@dataclass
class Model:
    layers: int
    hidden: int
    heads: int
    seq: int
    batch: int  # of all replicas together
    vocabulary: int
    recompute: str = ""  # what the backward pass runs again: "block", "attention", or nothing
    zero: bool = False  # is the optimiser's state sharded over the replicas (ZERO=1)?
    average: int = 0  # steps between averages of the replicas' weights; 0: they average gradients
    sequence_parallel: bool = False  # norms, dropouts and residual sums on a rank's positions (SP=1)
    # True: a model that classifies the first position. Other positions of the last block get no
    # gradient, nor do table rows that are not looked up. False: a language model, which multiplies
    # every position by the whole table.
    classifies: bool = False
    # Does the kit skip rows without a gradient in products, and in sums over the replicas? True on
    # the CPU, False on a GPU.
    leaves_out: bool = True
    rounds: bool = False  # do products multiply matrices in 16 bits (AMP=bf16, AMP=fp16)?

    def name(self):
        """The prefix of the sizes in texts; empty for the BERT."""
        return ""

    def named(self):
        """The options of build/train that name the model; its sizes come after them."""
        return () if self.classifies else ("--model", "gpt2")

    def sizes(self):
        return self.layers, self.hidden, self.heads, self.seq, self.batch

    def inner(self):
        """The width of the feed-forward layers."""
        return 4 * self.hidden

    def splits(self, tp):
        """Can the layers be split over tp ranks?"""
        return self.heads % tp == 0 and self.inner() % tp == 0 and not (self.sequence_parallel and self.seq % tp)

    def blocks(self, pp):
        """The blocks of the largest stage."""
        return math.ceil(self.layers / pp)

    def blocks_of(self, pp, stage):
        return self.layers * (stage + 1) // pp - self.layers * stage // pp

    def block(self, tp):
        """A rank's parameters of a block: all are split except the layer norms."""
        return self.weights() / tp + 4 * self.hidden

    def ends(self, tp, pp):
        """A rank's parameters before the first block, and after the last one."""
        return self.vocabulary * self.hidden / tp, self.hidden * (self.hidden + CLASSES) / tp

    def held(self, tp, pp, stage):
        """Parameters held by a rank of this stage."""
        first, last = self.ends(tp, pp)
        return self.blocks_of(pp, stage) * self.block(tp) + (first if stage == 0 else 0) + (last if stage == pp - 1 else 0)

    def parameters(self, tp, pp=1):
        """Parameters held by a rank of the largest stage."""
        return max(self.held(tp, pp, stage) for stage in range(pp))

    def unused(self, tp):
        """Numbers of a rank's table in rows that no replica has looked up, if these are more than
        half of a large table."""
        rows = self.vocabulary - min(self.batch * self.seq, self.vocabulary)
        large = self.vocabulary * self.hidden / tp >= LARGE_TABLE
        return rows * self.hidden / tp if self.leaves_out and large and 2 * rows > self.vocabulary else 0

    def left_out(self, tp, pp):
        """Numbers of the first stage that the replicas do not sum. With ZERO=1, they sum all, part
        by part."""
        return self.unused(tp) if self.classifies and not self.zero else 0

    def summed(self, tp, pp, stage):
        """Numbers of a stage that the replicas sum in a step: its gradients. If they average
        weights instead, the mean per step: its weights and, as one number in double precision, how
        many rows the replica has, which is its weight in the average."""
        if self.average:
            return (self.held(tp, pp, stage) + 2) / self.average
        return self.held(tp, pp, stage) - (self.left_out(tp, pp) if stage == 0 else 0)

    def reduced(self, tp, pp=1):
        """The largest summed() of all stages."""
        return max(self.summed(tp, pp, stage) for stage in range(pp))

    def stepped(self, tp, dp, pp, stage):
        """Parameters of a rank that have had a gradient, and those that have never had one: for the
        latter, the optimiser only reads gradient and weight, and writes the weight. With ZERO=1, it
        does not tell them apart, and updates all in its part."""
        if self.zero and dp > 1:
            return self.held(tp, pp, stage) / dp, 0
        idle = self.unused(tp) if self.classifies and stage == 0 else 0
        return self.held(tp, pp, stage) - idle, idle

    def beside_sums(self, tp, dp, pp, stage):
        """Numbers that a rank reads or writes in memory for the sums over the replicas, besides the
        sums themselves: it divides its sums by dp; and it reads a table's gradient to find the used
        rows. With ZERO=1, it instead sets this gradient to zero before each step (a write also
        reads)."""
        if dp == 1 or self.average:
            return 0
        table = self.vocabulary * self.hidden / tp if stage == 0 and self.classifies and self.unused(tp) else 0
        return 2 * (self.summed(tp, pp, stage) / dp + table) if self.zero else 2 * self.summed(tp, pp, stage) + table

    matrices = 2  # linear layers of a block's feed-forward part

    def weights(self):
        """The number of weights in the linear layers of a block."""
        return 4 * self.hidden ** 2 + self.matrices * self.hidden * self.inner()

    def passes(self):
        """The passes of a step through the linear layers of a block, and through its attention,
        counted in forward passes; a backward pass counts as two."""
        own = 4 * self.hidden ** 2 / self.weights()  # attention's part of the weights
        return {"": (3, 3), "block": (4, 4), "attention": (3 + own, 4)}[self.recompute]

    def sums(self):
        """All-reduces of a block in a step, over tp; a gather and a reduce-scatter together count
        as one. With SP=1, the backward pass gathers the arguments of two products again."""
        if self.sequence_parallel:
            return {"": 5, "block": 7, "attention": 5}[self.recompute]
        return {"": 4, "block": 6, "attention": 5}[self.recompute]

    def whole(self, tp):
        """The share of the positions on which norms, dropouts and residual sums work."""
        return 1 / tp if self.sequence_parallel else 1

    def norms(self, pp, stage):
        """Parameters of a stage whose gradients the tp ranks sum."""
        return 4 * self.hidden * self.blocks_of(pp, stage) if self.sequence_parallel else 0

    def products(self, pp=1, stage=0):
        """The multiplications per token in a step of a stage: in linear layers, counted in forward
        passes of a block's weights; in attention, counted in forward passes of a block."""
        (linear, attention), blocks = self.passes(), self.blocks_of(pp, stage)
        if not (self.classifies and self.leaves_out) or stage < pp - 1:
            return linear * blocks, attention * blocks
        # the last block has its forward passes only, and the gradients of keys and values
        return linear * blocks - 2 + 4 * self.hidden ** 2 / self.weights(), attention * blocks - 2

    def in_head(self):
        """The share of the tokens whose logits over the vocabulary are computed."""
        return 0 if self.classifies else 1

    def keys(self):
        """The number of keys that a position sees, on average."""
        return self.seq

    def work_of_stage(self, pp, stage):
        """Floating-point operations of a stage in a step, recomputation included: in linear layers,
        and in attention. A backward pass costs two forward passes. The head, on the last stage, is
        never recomputed."""
        tokens, (linear, attention) = self.batch * self.seq, self.products(pp, stage)
        head = 6 * self.in_head() * tokens * self.vocabulary * self.hidden if stage == pp - 1 else 0
        return 2 * linear * tokens * self.weights() + head, 4 * attention * tokens * self.keys() * self.hidden

    def work(self):
        """The operations of all stages. With classifies=False and recompute="block", a Model's sum
        equals equation 3 of Narayanan et al. 2021."""
        return self.work_of_stage(1, 0)

    layers_in = 1  # layers of a block that read the input of its feed-forward part

    def moved(self, tp, pp, stage, tokens):
        """Numbers that the products of a stage read or write for a micro-batch: a forward pass, all
        inputs and outputs and the weights; a backward pass, twice as many, and it also adds to the
        gradient of the weights."""
        linear, weights = self.products(pp, stage)[0], self.weights() / tp
        rows = (5 + self.layers_in) * self.hidden + (4 * self.hidden + (1 + self.layers_in) * self.inner()) / tp
        has_head = stage == pp - 1 and not self.classifies
        head = (3 * self.in_head() * tokens + 4 * self.hidden) * self.vocabulary / tp if has_head else 0
        return linear * (tokens * rows + weights) + self.blocks_of(pp, stage) * weights + head

    def useful(self):
        """Floating-point operations that the model needs in a step, by PaLM's formula
        (arXiv:2204.02311, appendix B): for each token, 6 for each weight that it is multiplied by,
        and 12 S H for the attention of each block, causal or not. Recomputation does not count. A
        classifier reads only the first position, so in the backward pass of its last block, only
        keys and values count. In the C program, transformer_work() returns the same."""
        return sum(replace(self, recompute="", leaves_out=True).work())

    def streamed(self, tp, pp, stage):
        """Numbers per token that the element-wise operations of a stage read or write: norms, sums
        and their gradients, for x; and GELU and dropout, for the rank's part of the inner layer. A
        backward pass computes the result of GELU again, and reads the input and two gradients; in
        the last block of a classifier, it writes zeros. A forward pass that keeps nothing has a
        pass each for GELU and dropout."""
        passes, blocks, again = self.passes()[0] / 3, self.blocks_of(pp, stage), 4 if self.recompute == "block" else 0
        zeros = 4 if self.classifies and self.leaves_out and stage == pp - 1 else 0
        return passes * blocks * 24 * self.whole(tp) * self.hidden, (blocks * (7 + again) - zeros) * self.inner() / tp

    def tied(self, tp, pp):
        """Numbers that a rank of the first stage and one of the last exchange in a step."""
        return 0

    loss_sums = 0  # numbers per token that the loss sums over tp


def layouts(ranks, model):
    """The (tp, dp, pp) of `ranks` ranks such that the layers can be split over tp ranks, dp divides
    the batch, and each of the pp stages has a block."""
    return [(tp, ranks // (tp * pp), pp) for pp in range(1, min(ranks, model.layers) + 1) for tp in range(1, min(ranks // pp, model.heads) + 1)
            if ranks % (tp * pp) == 0 and model.splits(tp) and model.batch % (ranks // (tp * pp)) == 0]
