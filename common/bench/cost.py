"""Predicts what a training step of the kit's BERT costs a rank: arithmetic, memory traffic,
communication.

Times follow from rates; those of collectives from a latency and a bandwidth per link, as a ring or
as a tree, whichever is faster (Thakur, Rabenseifner, Gropp 2005). All counts are for one step of
one rank, in a pipeline that of the slowest stage; numbers are `Cluster.width` bytes wide. A pipeline
runs one forward and one backward pass a micro-batch, 1F1B (Narayanan et al. 2021, section 2.2).
"""
import math
from dataclasses import dataclass, field


@dataclass
class Model:
    layers: int
    hidden: int
    heads: int
    seq: int
    batch: int  # of all replicas together
    vocabulary: int
    recompute: bool = False  # the backward pass recomputes activations
    classifies: bool = False  # by the first position: the last block's other ones have no gradient, nor have rows not looked up.
    # Else every position is multiplied by the whole table, as a language model is
    leaves_out: bool = True  # what has no gradient is not multiplied, nor summed over replicas: on the processor, not on a GPU

    def sizes(self):
        return self.layers, self.hidden, self.heads, self.seq, self.batch

    def blocks(self, pp):
        """Of the largest stage."""
        return math.ceil(self.layers / pp)

    def parameters(self, tp, pp=1):
        """Parameters held by a rank of the largest stage: all are split except the layer norms."""
        table, head = self.vocabulary * self.hidden, self.hidden * (self.hidden + 2)
        block = 12 * self.hidden ** 2 / tp + 4 * self.hidden
        if pp == 1:
            return (table + head) / tp + self.layers * block
        return max(table / tp + self.layers // pp * block, head / tp + self.blocks(pp) * block)  # the first and the last stage

    def reduced(self, tp, pp=1):
        """Of these, what replicas sum: of the table the rows that some of them have used, where these are less than half."""
        used = min(self.batch * self.seq, self.vocabulary)
        left_out = self.vocabulary - used if self.classifies and self.leaves_out and 2 * used < self.vocabulary else 0
        return self.parameters(tp, pp) - left_out * self.hidden / tp

    def products(self, passes):
        """The multiplications per token: of linear layers, in weights of hidden * hidden; of attention, in forward blocks."""
        if not (self.classifies and self.leaves_out):
            return passes * 12 * self.layers, passes * self.layers
        full = 1 + passes * (self.layers - 1)  # in the last block, backward: those of keys and values
        return 12 * full + 4, full

    def work(self):
        """Floating-point operations of a step, of products and of attention, those of a recomputation included; a backward pass costs two
        forward passes. As Narayanan et al. 2021, equation 2, where all is multiplied."""
        tokens, hidden, (linear, blocks) = self.batch * self.seq, self.hidden, self.products(4 if self.recompute else 3)
        head = 0 if self.classifies else 6 * tokens * self.vocabulary * hidden  # is not recomputed
        return 2 * linear * tokens * hidden ** 2 + head, 4 * blocks * tokens * self.seq * hidden

    def activations(self, tp, dp, pp=1):
        """Numbers kept for the backward pass: of a block the two sums, whole, and q, k, v, the attention's output and
        two numbers of each row of scores, and the inner layer before GELU, with a bit a number that dropout keeps, split; norms and what follows GELU are computed again."""
        tokens = self.batch / dp * self.seq
        if self.recompute:
            return tokens * self.hidden * self.blocks(pp)
        return tokens * self.blocks(pp) * (2 * self.hidden + (8 * self.hidden + self.hidden / 8 + 2 * self.heads) / tp)

    def working(self, tp, dp):
        """Numbers that are there beside when the forward pass leaves the last block, which gives back what it has made only then: two
        norms, and of both layers what comes out, whole, before and after the sum over the ranks, which on one rank are one; the inner layer
        after GELU, split; and what the first block is given."""
        return self.batch / dp * self.seq * ((7 if tp > 1 else 5) * self.hidden + 4 * self.hidden / tp)


@dataclass
class Link:
    latency: float  # seconds
    bandwidth: float  # bytes per second that a rank sends


@dataclass
class Cluster:
    """Rates of a rank; `near` joins the ranks of a node, `far` nodes, with its bandwidth for all ranks of a node together."""

    gemm: float  # floating-point operations per second
    attention: float
    stream: float  # bytes per second of element-wise operations
    optimiser: float  # bytes per second of the optimiser
    near: Link
    far: Link
    node: int = 1 << 30  # ranks
    cores: int = 1 << 30  # ranks that compute simultaneously
    width: int = 4  # bytes per number, in arithmetic and on links
    state: int = 16  # bytes per parameter: weight, gradient, two moments; 18 with half-precision weights
    hides: float = 0.0  # the part of the backward pass that can hide sums over the replicas
    memory: float = field(default=math.inf)  # bytes per rank


ALONE = Link(0.0, math.inf)  # for a rank that sends nothing
UNIT = Cluster(1.0, 1.0, 1.0, 1.0, near=ALONE, far=ALONE)  # for what does not depend on rates


def all_reduce(link, ranks, size):
    if ranks == 1:
        return 0.0
    ring = 2 * (ranks - 1) * (link.latency + size / ranks / link.bandwidth)
    tree = 2 * math.ceil(math.log2(ranks)) * (link.latency + size / link.bandwidth)
    return min(ring, tree)


def all_gather(link, ranks, size):
    """`size` is that of the whole."""
    return (ranks - 1) * (link.latency + size / ranks / link.bandwidth)


def message(link, size):
    return link.latency + size / link.bandwidth


def over_replicas(cluster, tp, dp, size):
    """First within a node, then among nodes; all groups of a node share its uplink."""
    inside = max(1, min(dp, cluster.node // tp))
    outside = math.ceil(dp / inside)
    share = Link(cluster.far.latency, cluster.far.bandwidth / min(tp, cluster.node))
    return all_reduce(cluster.near, inside, size) + all_reduce(share, outside, size)


def step(cluster, model, tp, dp, pp=1, micro=1):
    """Seconds, by kind."""
    tokens, hidden, layers = model.batch / dp * model.seq, model.hidden, model.blocks(pp)
    passes = 4 if model.recompute else 3
    slots = (micro + pp - 1) / micro  # of the pipeline, for each that a stage works in
    crowd = max(1.0, tp * dp * pp / slots / cluster.cores)
    share = layers / model.layers
    gemm, attention = (share * work / (tp * dp) / rate for work, rate in zip(model.work(), (cluster.gemm, cluster.attention)))
    # Norm, sum and their gradients on every rank; GELU and dropout on the rank's share. Numbers read or written per token.
    whole, split = 24 * hidden, 20 * hidden / tp
    stream = (passes / 3) * tokens * layers * (whole + split) * cluster.width / cluster.stream
    optimiser = 2 * cluster.state * model.parameters(tp, pp) / cluster.optimiser  # reads everything, writes all but the gradient
    link = cluster.near if tp <= cluster.node else Link(cluster.far.latency, cluster.far.bandwidth / cluster.node)
    block = tokens * hidden * cluster.width
    sums = 6 if model.recompute else 4
    # The kit gathers its embedding's result; a language model's embedding is split by vocabulary, and so is its head: a sum each.
    ends = all_gather(link, tp, block) if model.classifies else 2 * all_reduce(link, tp, block)
    over_tp = layers * sums * micro * all_reduce(link, tp, block / micro) + ends
    # Stages are outermost: where two of them are in one node, so are their messages. Else all ranks of a node share its uplink.
    border = cluster.near if 2 * tp * dp <= cluster.node else Link(cluster.far.latency, cluster.far.bandwidth / cluster.node)
    over_pp = 2 * (micro + pp - 2) * message(border, block / micro) if pp > 1 else 0.0
    backward = (gemm + attention + stream) * (passes - 1) / passes * crowd
    reduction = over_replicas(cluster, tp, dp, model.reduced(tp, pp) * cluster.width)
    return {"compute": (gemm + attention) * crowd, "element-wise": stream * crowd, "optimiser": optimiser * crowd,
            "over tp": over_tp * crowd, "over dp": max(reduction - cluster.hides * backward, reduction / max(layers, 1)) * crowd,
            "over pp": over_pp * crowd, "bubble": (slots - 1) * (gemm + attention + stream + over_tp) * crowd}


def memory(cluster, model, tp, dp, pp=1, micro=1):
    """A rank's peak in bytes: weights, gradients, two moments of AdamW, activations, and the last block's work space. The first
    stage holds the activations of as many micro-batches as there are stages."""
    alive = min(micro, pp) / micro
    return cluster.state * model.parameters(tp, pp) + cluster.width * (alive * model.activations(tp, dp, pp) + model.working(tp, dp) / micro)


def rate(cluster, model, tp, dp):
    """Operations per second and rank."""
    return sum(model.work()) / (tp * dp) / sum(step(cluster, model, tp, dp).values())


def layouts(ranks, model):
    """(tp, dp, pp): every tp that divides the ranks and the heads, every number of stages that each have a block, with a batch that
    the replicas can split."""
    return [(tp, ranks // (tp * pp), pp) for pp in range(1, min(ranks, model.layers) + 1) for tp in range(1, ranks // pp + 1)
            if ranks % (tp * pp) == 0 and model.heads % tp == 0 and model.batch % (ranks // (tp * pp)) == 0]
