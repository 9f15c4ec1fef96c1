"""Predicts what a training step of the kit's BERT costs a rank: arithmetic, memory traffic,
communication.

Times follow from rates. A collective takes the time of a ring or of a tree, whichever is faster,
from the latency and bandwidth of its links (Thakur, Rabenseifner, Gropp 2005). Counts are for one
step of one rank (in a pipeline, one of the slowest stage); numbers are `Cluster.width` bytes
wide. A pipeline runs one forward and one backward pass per micro-batch, in the order 1F1B
(Narayanan et al. 2021, section 2.2).
"""
import math
from dataclasses import dataclass, field

VOCABULARY = 30522  # of BERT


@dataclass
class Model:
    layers: int
    hidden: int
    heads: int
    seq: int
    batch: int  # of all replicas together
    vocabulary: int
    recompute: bool = False  # the backward pass recomputes activations
    # True: a classifier of the first position. The other positions of the last block have no
    # gradient, nor have table rows that are not looked up. False: a language model, which
    # multiplies every position by the whole table.
    classifies: bool = False
    # What has no gradient is neither multiplied nor summed over the replicas. True on the CPU,
    # False on a GPU.
    leaves_out: bool = True

    def sizes(self):
        return self.layers, self.hidden, self.heads, self.seq, self.batch

    def blocks(self, pp):
        """The blocks of the largest stage."""
        return math.ceil(self.layers / pp)

    def parameters(self, tp, pp=1):
        """Parameters held by a rank of the largest stage: all are split except the layer norms."""
        table, head = self.vocabulary * self.hidden, self.hidden * (self.hidden + 2)
        block = 12 * self.hidden ** 2 / tp + 4 * self.hidden
        if pp == 1:
            return (table + head) / tp + self.layers * block
        return max(table / tp + self.layers // pp * block, head / tp + self.blocks(pp) * block)  # the first and the last stage

    def reduced(self, tp, pp=1):
        """The parameters whose gradients the replicas sum. Of the table, only the rows that some
        replica has used, if these are less than half."""
        used = min(self.batch * self.seq, self.vocabulary)
        left_out = self.vocabulary - used if self.classifies and self.leaves_out and 2 * used < self.vocabulary else 0
        return self.parameters(tp, pp) - left_out * self.hidden / tp

    def products(self, passes):
        """The multiplications per token: of linear layers, as a number of [hidden, hidden] weights;
        of attention, as a number of forward passes of a block."""
        if not (self.classifies and self.leaves_out):
            return passes * 12 * self.layers, passes * self.layers
        full = 1 + passes * (self.layers - 1)  # last block: forward, plus 4 for keys and values
        return 12 * full + 4, full

    def work(self):
        """Floating-point operations of a step, recomputation included: of linear layers, and of
        attention. A backward pass costs two forward passes. If nothing is left out, equals equation
        2 of Narayanan et al. 2021."""
        tokens, hidden, (linear, blocks) = self.batch * self.seq, self.hidden, self.products(4 if self.recompute else 3)
        head = 0 if self.classifies else 6 * tokens * self.vocabulary * hidden  # never recomputed
        return 2 * linear * tokens * hidden ** 2 + head, 4 * blocks * tokens * self.seq * hidden

    def activations(self, tp, dp, pp=1):
        """Numbers kept for the backward pass. Each block keeps its two residual sums, whole. Split
        over tp, it keeps q, k, v, the output of attention, two numbers per row of scores, and the
        inner layer before GELU with one bit per number for dropout. Norms and what follows GELU are
        recomputed."""
        tokens = self.batch / dp * self.seq
        if self.recompute:
            return tokens * self.hidden * self.blocks(pp)
        return tokens * self.blocks(pp) * (2 * self.hidden + (8 * self.hidden + self.hidden / 8 + 2 * self.heads) / tp)

    def working(self, tp, dp):
        """Numbers held in addition when the forward pass leaves the last block, because a block
        releases its own only at its end: two norms; the outputs of both layers, whole, before and
        after the all-reduce (on one rank, these are the same); the inner layer after GELU, split;
        and the input of the first block."""
        return self.batch / dp * self.seq * ((7 if tp > 1 else 5) * self.hidden + 4 * self.hidden / tp)


@dataclass
class Link:
    latency: float  # seconds
    bandwidth: float  # bytes per second that a rank sends


@dataclass
class Cluster:
    """Rates of a rank. `near` links the ranks of a node; `far` links nodes, and all ranks of a node
    share its bandwidth."""

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
    """`size` is that of the gathered tensor."""
    return (ranks - 1) * (link.latency + size / ranks / link.bandwidth)


def message(link, size):
    return link.latency + size / link.bandwidth


def over_replicas(cluster, tp, dp, size):
    """An all-reduce over the replicas: first within a node, then among nodes. All groups of a node
    share its uplink."""
    inside = max(1, min(dp, cluster.node // tp))
    outside = math.ceil(dp / inside)
    share = Link(cluster.far.latency, cluster.far.bandwidth / min(tp, cluster.node))
    return all_reduce(cluster.near, inside, size) + all_reduce(share, outside, size)


def step(cluster, model, tp, dp, pp=1, micro=1):
    """The seconds of a step, by kind of work."""
    tokens, hidden, layers = model.batch / dp * model.seq, model.hidden, model.blocks(pp)
    passes = 4 if model.recompute else 3
    slots = (micro + pp - 1) / micro  # of the pipeline's schedule, per slot in which a stage works
    crowd = max(1.0, tp * dp * pp / slots / cluster.cores)
    share = layers / model.layers
    gemm, attention = (share * work / (tp * dp) / rate for work, rate in zip(model.work(), (cluster.gemm, cluster.attention)))
    # Norm, sum and their gradients on every rank; GELU and dropout on the rank's share. Numbers
    # read or written per token.
    whole, split = 24 * hidden, 20 * hidden / tp
    stream = (passes / 3) * tokens * layers * (whole + split) * cluster.width / cluster.stream
    optimiser = 2 * cluster.state * model.parameters(tp, pp) / cluster.optimiser  # reads everything, writes all but the gradient
    link = cluster.near if tp <= cluster.node else Link(cluster.far.latency, cluster.far.bandwidth / cluster.node)
    block = tokens * hidden * cluster.width
    sums = 6 if model.recompute else 4
    # The kit gathers the result of its embedding. A language model splits its embedding and its
    # head by vocabulary, with an all-reduce each.
    ends = all_gather(link, tp, block) if model.classifies else 2 * all_reduce(link, tp, block)
    over_tp = layers * sums * micro * all_reduce(link, tp, block / micro) + ends
    # Stages are the outermost dimension. If two neighbours fit in a node, messages stay within it;
    # otherwise all ranks of a node share its uplink.
    border = cluster.near if 2 * tp * dp <= cluster.node else Link(cluster.far.latency, cluster.far.bandwidth / cluster.node)
    over_pp = 2 * (micro + pp - 2) * message(border, block / micro) if pp > 1 else 0.0
    backward = (gemm + attention + stream) * (passes - 1) / passes * crowd
    reduction = over_replicas(cluster, tp, dp, model.reduced(tp, pp) * cluster.width)
    return {"compute": (gemm + attention) * crowd, "element-wise": stream * crowd, "optimiser": optimiser * crowd,
            "over tp": over_tp * crowd, "over dp": max(reduction - cluster.hides * backward, reduction / max(layers, 1)) * crowd,
            "over pp": over_pp * crowd, "bubble": (slots - 1) * (gemm + attention + stream + over_tp) * crowd}


def memory(cluster, model, tp, dp, pp=1, micro=1):
    """A rank's peak in bytes: weights, gradients, two moments of AdamW, activations, and the last
    block's work space. The first stage holds the activations of as many micro-batches as there are
    stages."""
    alive = min(micro, pp) / micro
    return cluster.state * model.parameters(tp, pp) + cluster.width * (alive * model.activations(tp, dp, pp) + model.working(tp, dp) / micro)


def rate(cluster, model, tp, dp):
    """Operations per second and rank."""
    return sum(model.work()) / (tp * dp) / sum(step(cluster, model, tp, dp).values())


def layouts(ranks, model):
    """The (tp, dp, pp) of these ranks, such that tp divides the heads, dp divides the batch, and
    each of the pp stages has a block."""
    return [(tp, ranks // (tp * pp), pp) for pp in range(1, min(ranks, model.layers) + 1) for tp in range(1, ranks // pp + 1)
            if ranks % (tp * pp) == 0 and model.heads % tp == 0 and model.batch % (ranks // (tp * pp)) == 0]
