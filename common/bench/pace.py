"""How fast a machine does what a training step takes on a rank (dry.py): the rates of a rank, the
seconds of its work and of its exchanges, and the schedule of a pipeline.

A collective takes the time of a ring or of a tree, whichever is faster, from the latency and
bandwidth of its links (Thakur, Rabenseifner, Gropp 2005). A pipeline's time is the longest path
through its schedule: a pass begins when its stage has ended the previous pass and received the
message for this pass. The message leaves when both stages have made their call.
"""
import math
from dataclasses import dataclass, field

import dry


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


COLLECTIVES = {"all_reduce": all_reduce, "all_gather": all_gather, "reduce_scatter": reduce_scatter}


def size_of(operation, ranks, sent):
    """The bytes of a collective's tensor, from those that a rank sends."""
    return sent / (ranks - 1) * ranks / (2 if operation == "all_reduce" else 1)


def over_replicas(cluster, tp, dp, operation, sent):
    """The seconds of a collective over the replicas in which a rank sends so many bytes: first within
    a node, then among nodes. All groups of a node share its uplink."""
    size, exchange = size_of(operation, dp, sent), COLLECTIVES[operation]
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


def work_of(model, rank, tp, pp):
    """{kind of work: what the forward and the backward passes of a stage take}, from the dry run of a
    rank: operations of products and of attention; bytes of the others; and the exchanges over each
    axis, as (span, operation, calls, bytes sent)."""
    found = {kind: [0.0, 0.0] for kind in ("GEMM", "moves", "attention", "on x", "on parts", "optimiser", "communication")}
    exchanges = {"tp": ([], []), "dp": ([], []), "pp": ([], [])}
    # Of the last block of a classifier, the backward pass computes no more than the gradients of keys
    # and values: a third of a forward pass's products.
    left_out = {"GEMM": 5 / 3, "moves": 5 / 3, "attention": 2} if model.skips() and rank["stage"] == pp - 1 else {}
    blocks = blocks_of(rank)
    for what, backward, multiply_adds, moved, *sent in rank["work"]:
        kind = dry.kind_of(what)
        moved = 0 if model.published and what == "add_bias" else moved
        takes = {"GEMM": {"GEMM": 2 * multiply_adds, "moves": moved}, "attention": {"attention": 2 * multiply_adds * model.seen()},
                 "element-wise": {"on parts" if what in dry.ON_PARTS else "on x": moved}}.get(kind, {kind: moved})
        for one, much in takes.items():
            if one in found:
                found[one][backward] += much
                found[one][True] -= 0 if backward else left_out.get(one, 0) * much / blocks
        for axis, *exchange in sent:
            exchanges[axis][backward].append((what, *exchange))
    # AdamW reads and writes a weight and two means, and reads the gradient; of idle numbers, it leaves
    # the means alone. A sharded one does not tell them apart.
    if rank["stage"] == 0 and not (model.zero and any(exchanges["dp"])):
        found["optimiser"][False] -= 4 * dry.FP32 * model.idle(tp)
    return found, exchanges


def blocks_of(rank):
    begin, end = rank["blocks"]
    return end - begin


def stage_seconds(cluster, model, rank, tp, dp, pp):
    """The StageSeconds of a rank of this stage."""
    work, exchanges = work_of(model, rank, tp, pp)
    share = cluster.width / dry.FP32
    rates = {"GEMM": cluster.gemm, "moves": cluster.moves / share, "attention": cluster.attention, "on x": cluster.stream / share,
             "on parts": (cluster.activation or cluster.stream) / share}
    compute, stream = ([sum(work[kind][backward] / rates[kind] for kind in kinds) for backward in (False, True)]
                       for kinds in (("GEMM", "moves", "attention"), ("on x", "on parts")))
    link = link_of_tp(cluster, tp, tp * dp * pp)
    over_tp = [sum(calls * COLLECTIVES[operation](link, tp, size_of(operation, tp, share * sent / calls)) for _, operation, calls, sent in one)
               for one in exchanges["tp"]]
    sums = [exchange for one in exchanges["dp"] for exchange in one]
    if model.published and sums:
        sums = [("", "all_reduce", 1, sum(sent for *_, sent in sums))]
    reduction = sum(calls * over_replicas(cluster, tp, dp, operation, share * sent / calls) for _, operation, calls, sent in sums)
    hidden = 0.0 if model.zero or model.average else min(cluster.hides * (compute[1] + stream[1]), reduction * (1 - 1 / max(blocks_of(rank), 1)))
    # The kit's step of AdamW moves 28 bytes per parameter. A copy in 16 bits is written, too.
    optimiser = sum(work["optimiser"]) * (2 * cluster.state - cluster.width) / 28
    return StageSeconds(compute, stream, over_tp, optimiser / cluster.optimiser, reduction - hidden + sum(work["communication"]) * share / cluster.optimiser)


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


def message_seconds(cluster, exchanges, tp, dp):
    """The seconds of a message between two stages, and of the exchange of tied parameters. Stages are
    the outermost dimension. If two neighbours fit in a node, messages stay within it; otherwise all
    ranks of a node share its uplink."""
    border = cluster.near if 2 * tp * dp <= cluster.node else Link(cluster.far.latency, cluster.far.bandwidth / cluster.node)
    share = cluster.width / dry.FP32
    sends = {is_between: [message(border, share * sent / calls) for one in exchanges["pp"] for what, operation, calls, sent in one
                          if operation == "send" and (what == dry.SENDS) == is_between] for is_between in (True, False)}
    return max(sends[True], default=0.0), 2 * sum(sends[False])


def step(cluster, model, tp, dp, pp=1, micro=1, schedule="1f1b"):
    """The seconds of a step, by kind of work, on a rank of the stage that decides them. In the
    bubble, it waits for the other stages. If there are more ranks than cores, the ranks share the
    cores, except while they wait."""
    ranks = dry.stages(model, tp, dp, pp, micro, schedule)
    stages = [stage_seconds(cluster, model, rank, tp, dp, pp) for rank in ranks]
    between, tied = message_seconds(cluster, work_of(model, ranks[0], tp, pp)[1], tp, dp)
    whole, which = longest(stages, micro, between, schedule)
    without, own = longest(stages, micro, 0.0, schedule)[0], stages[which]
    spent = [micro * sum(one.passes(micro)) + one.after() for one in stages]
    crowd = max(1.0, tp * dp * sum(spent) / whole / cluster.cores)
    return {"compute": sum(own.compute) * crowd, "element-wise": sum(own.stream) * crowd, "optimiser": own.optimiser * crowd,
            "over tp": sum(own.over_tp) * crowd, "over dp": own.over_dp * crowd,
            "over pp": (whole - without + tied) * crowd, "bubble": round(without - spent[which], 12) * crowd}  # without the error of rounding


def rate(cluster, model, tp, dp):
    """Operations per second and rank."""
    return dry.operations(model) / (tp * dp) / sum(step(cluster, model, tp, dp).values())
