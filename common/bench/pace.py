"""How fast a machine does what a training step needs (cost.py): the rates of a rank, the seconds of
its work and of its exchanges, and the schedule of a pipeline.

A collective takes the time of a ring or of a tree, whichever is faster, from the latency and
bandwidth of its links (Thakur, Rabenseifner, Gropp 2005). A pipeline's time is the longest path
through its schedule: a pass begins when its stage has ended the previous pass and received the
message for this pass. The message leaves when both stages have made their call.
"""
import math
from dataclasses import dataclass, field


@dataclass
class Link:
    latency: float  # seconds
    bandwidth: float  # bytes per second that a rank sends
    # Gathers and reduce-scatters in memory that ranks share: rates that differ from that of sums; 0:
    # the same.
    gathers: float = 0.0
    scatters: float = 0.0


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
    node: int = 1 << 30  # ranks of a node
    cores: int = 1 << 30  # ranks that can compute at the same time
    width: int = 4  # bytes per number, in arithmetic and on links
    state: int = 16  # bytes per parameter: weight, gradient, two moments; 18 with a copy of the weights in 16 bits
    hides: float = 0.0  # the share of the backward pass that can overlap sums over the replicas
    memory: float = field(default=math.inf)  # bytes per rank
    moves: float = math.inf  # bytes of operands per second that products read or write, apart from `gemm`; infinite: gemm includes them
    activation: float = 0.0  # bytes per second of GELU and dropout; 0: that of `stream`

    def rounds(self):
        """Do products multiply 16-bit copies of 32-bit numbers?"""
        return self.width == 4 and self.state == 18


ALONE = Link(0.0, math.inf)  # for a rank that sends nothing
UNIT = Cluster(1.0, 1.0, 1.0, 1.0, near=ALONE, far=ALONE)  # for results that do not depend on rates


def all_reduce(link, ranks, size):
    if ranks == 1:
        return 0.0
    ring = 2 * (ranks - 1) * (link.latency + size / ranks / link.bandwidth)
    tree = 2 * math.ceil(math.log2(ranks)) * (link.latency + size / link.bandwidth)
    return min(ring, tree)


def all_gather(link, ranks, size):
    """Seconds of a ring all-gather; `size` is the number of bytes of the gathered tensor."""
    return (ranks - 1) * (link.latency + size / ranks / (link.gathers or link.bandwidth))


def reduce_scatter(link, ranks, size):
    """Seconds of a ring reduce-scatter; `size` is the number of bytes of the whole tensor."""
    return (ranks - 1) * (link.latency + size / ranks / (link.scatters or link.bandwidth))


def message(link, size):
    return link.latency + size / link.bandwidth


def link_of_tp(cluster, tp, ranks):
    """The slowest link of a ring over the ranks of a tp group, which are consecutive. A ring leaves
    a node once, so a group that fills whole nodes has their uplinks to itself. Two other groups
    that span nodes can share an uplink."""
    if ranks <= cluster.node or cluster.node % tp == 0:
        return cluster.near
    groups = 1 if tp % cluster.node == 0 else 2
    return Link(cluster.far.latency, min(cluster.near.bandwidth, cluster.far.bandwidth / groups))


def by_parts(link, ranks, size):
    return reduce_scatter(link, ranks, size) + all_gather(link, ranks, size)


def over_replicas(cluster, tp, dp, size, exchange=all_reduce):
    """A sum over the replicas: first within a node, then among nodes. All groups of a node share
    its uplink."""
    inside = max(1, min(dp, cluster.node // tp))
    outside = math.ceil(dp / inside)
    share = Link(cluster.far.latency, cluster.far.bandwidth / min(tp, cluster.node))
    return exchange(cluster.near, inside, size) + exchange(share, outside, size)


@dataclass
class StageSeconds:
    """The seconds of a stage for a step. Lists have the forward and the backward passes of all
    micro-batches."""

    compute: list  # products and attention
    stream: list  # element-wise operations
    over_tp: list
    optimiser: float
    over_dp: float  # what the backward passes do not hide

    def passes(self, micro):
        """The seconds of a forward and of a backward pass of a micro-batch."""
        return [sum(parts) / micro for parts in zip(self.compute, self.stream, self.over_tp)]

    def after(self):
        """The seconds from the last pass to the next step."""
        return self.over_dp + self.optimiser


def divided(seconds, forward):
    """The seconds of the forward and the backward passes, given the share of the forward passes."""
    return [seconds * forward, seconds * (1 - forward)]


def over_replicas_of(cluster, model, tp, dp, pp, stage, backward):
    """The seconds of a stage's sums over the replicas that its `backward` seconds do not hide, and
    of reading and writing memory for them."""
    every = model.average or 1
    exchange = by_parts if model.zero else all_reduce
    reduction = over_replicas(cluster, tp, dp, every * model.summed(tp, pp, stage) * cluster.width, exchange) / every
    hidden = 0.0 if model.zero or model.average else min(cluster.hides * backward, reduction * (1 - 1 / max(model.blocks_of(pp, stage), 1)))
    return reduction - hidden + model.beside_sums(tp, dp, pp, stage) * cluster.width / cluster.optimiser


def over_tp_of(cluster, model, tp, dp, pp, stage, micro):
    """The seconds of a stage's exchanges over tp, in the forward passes and in the backward passes
    of its blocks, and at the ends of the model."""
    tokens, layers = model.batch / dp * model.seq, model.blocks_of(pp, stage)
    link, block, sums = link_of_tp(cluster, tp, tp * dp * pp), tokens * model.hidden * cluster.width, model.sums()
    # The kit gathers the result of its embedding. A language model splits its embedding and its
    # head by vocabulary, with an all-reduce each.
    first = all_gather(link, tp, block) if model.classifies else all_reduce(link, tp, block)
    last = (0.0 if model.classifies else all_reduce(link, tp, block)) + model.loss_sums * all_reduce(link, tp, tokens * cluster.width)
    ends = (first if stage == 0 else 0.0) + (last if stage == pp - 1 else 0.0)
    if not model.sequence_parallel:
        blocks = layers * sums * micro * all_reduce(link, tp, block / micro)
    else:
        ends += ((stage == 0) + (stage == pp - 1)) * all_gather(link, tp, block) + all_reduce(link, tp, model.norms(pp, stage) * cluster.width)
        # The two gathers that the backward pass repeats have no reduce-scatter.
        blocks = layers * micro * ((sums + 1) * all_gather(link, tp, block / micro) + (sums - 1) * reduce_scatter(link, tp, block / micro))
    forward, backward = divided(blocks, 2 / sums)
    return [forward + ends / 2, backward + ends / 2]


def stage_seconds(cluster, model, tp, dp, pp, stage, micro):
    """The StageSeconds of a rank of this stage."""
    tokens, passes = model.batch / dp * model.seq, model.passes()[0]
    gemm, attention = (work / (tp * dp) / rate for work, rate in zip(model.work_of_stage(pp, stage), (cluster.gemm, cluster.attention)))
    moved = micro * model.moved(tp, pp, stage, tokens / micro) * cluster.width / cluster.moves
    rates = cluster.stream, cluster.activation or cluster.stream
    stream = sum(tokens * numbers * cluster.width / rate for numbers, rate in zip(model.streamed(tp, pp, stage), rates))
    stepped, idle = model.stepped(tp, dp, pp, stage)
    # The optimiser's step reads everything, and writes all but the gradient.
    bytes_moved = (2 * cluster.state - cluster.width) * stepped + 3 * cluster.width * idle
    compute = divided(gemm + moved + attention, model.blocks_of(pp, stage) / model.products(pp, stage)[0])
    # A forward pass draws dropout's mask and computes GELU: twice the work of a backward pass.
    stream = divided(stream, 2 / passes)
    return StageSeconds(compute, stream, over_tp_of(cluster, model, tp, dp, pp, stage, micro), bytes_moved / cluster.optimiser,
                        over_replicas_of(cluster, model, tp, dp, pp, stage, compute[1] + stream[1]))


def order(pp, micro, stage, schedule="1f1b"):
    """The passes of a stage, as pairs (is it backward?, micro-batch), in their order."""
    ahead = micro if schedule == "gpipe" else min(micro, pp - 1 - stage)
    found = [(False, i) for i in range(ahead)]
    for i in range(micro):
        found += [(False, i + ahead)] * (i + ahead < micro) + [(True, i)]
    return found


def run(passes, micro, between=0.0, schedule="1f1b"):
    """Runs a schedule. Returns the seconds at which each stage begins its first pass and ends its
    last one.

    @param passes the seconds of a forward and of a backward pass on each stage
    @param between the seconds of a message between two stages"""
    pp = len(passes)
    left = [order(pp, micro, stage, schedule)[::-1] for stage in range(pp)]
    begun, free, ended = [None] * pp, [0.0] * pp, {}
    while any(left):
        for stage in range(pp):
            while left[stage]:
                backward, i = left[stage][-1]
                source = stage + 1 if backward else stage - 1
                if 0 <= source < pp and (source, backward, i) not in ended:
                    break  # the pass waits for another stage
                begin = max(free[stage], ended[source, backward, i]) + between if 0 <= source < pp else free[stage]
                begun[stage] = begin if begun[stage] is None else begun[stage]
                free[stage] = ended[stage, backward, i] = begin + passes[stage][backward]
                left[stage].pop()
    return list(zip(begun, free))


def longest(stages, micro, between, schedule):
    """The seconds of a step, and the stage that decides them. The next step's first pass reaches a
    stage as long after the beginning of the step as this step's first pass did. The stage must then
    have ended its optimiser's step."""
    times = run([one.passes(micro) for one in stages], micro, between, schedule)
    return max((end - begin + one.after(), stage) for stage, ((begin, end), one) in enumerate(zip(times, stages)))


def message_seconds(cluster, model, tp, dp, micro):
    """Stages are the outermost dimension. If two neighbours fit in a node, messages stay within it;
    otherwise all ranks of a node share its uplink."""
    border = cluster.near if 2 * tp * dp <= cluster.node else Link(cluster.far.latency, cluster.far.bandwidth / cluster.node)
    tokens = model.batch / dp * model.seq
    return message(border, model.whole(tp) * tokens * model.hidden * cluster.width / micro), border


def step(cluster, model, tp, dp, pp=1, micro=1, schedule="1f1b"):
    """The seconds of a step, by kind of work, on a rank of the stage that decides them. In the
    bubble, it waits for the other stages. If there are more ranks than cores, the ranks share the
    cores, except while they wait."""
    stages = [stage_seconds(cluster, model, tp, dp, pp, stage, micro) for stage in range(pp)]
    between, border = message_seconds(cluster, model, tp, dp, micro)
    whole, which = longest(stages, micro, between, schedule)
    without, own = longest(stages, micro, 0.0, schedule)[0], stages[which]
    spent = [micro * sum(one.passes(micro)) + one.after() for one in stages]
    crowd = max(1.0, tp * dp * sum(spent) / whole / cluster.cores)
    tied = 2 * message(border, model.tied(tp, pp) * cluster.width) if model.tied(tp, pp) else 0.0
    return {"compute": sum(own.compute) * crowd, "element-wise": sum(own.stream) * crowd, "optimiser": own.optimiser * crowd,
            "over tp": sum(own.over_tp) * crowd, "over dp": own.over_dp * crowd,
            "over pp": (whole - without + tied) * crowd, "bubble": round(without - spent[which], 12) * crowd}  # without the error of rounding


def rate(cluster, model, tp, dp):
    """Operations per second and rank."""
    return sum(model.work()) / (tp * dp) / sum(step(cluster, model, tp, dp).values())
