"""Compares the bytes that a step sends, summed over the ranks, with the formula of lab 11; and
measures the memory of a rank."""
from rows import Row, table
from steps import train

# tp, dp, global batch. In the last, a replica has as many rows as tp=2 alone: it should need as
# much memory, because nothing is held for other replicas.
LAYOUTS = [(1, 1, 12), (2, 1, 12), (4, 1, 12), (1, 2, 12), (1, 4, 12), (2, 2, 12), (4, 2, 12), (2, 3, 12), (2, 2, 24)]
LAYERS, HIDDEN, SEQ, CLASSES = 2, 128, 64, 2


def formula(tp, dp, batch, held):
    """The bytes sent over tp and over dp. Over n ranks, an all-reduce of N numbers sends 2(n-1)N, a
    gather (n-1)N."""
    numbers = batch * SEQ * HIDDEN
    over_tp = 4 * (tp - 1) * ((4 * LAYERS * 2 + 1) * numbers + 2 * batch * (CLASSES + HIDDEN))
    return over_tp, 4 * 2 * (dp - 1) * held / dp


def measure(build, work):
    rows, lines = [], []
    for tp, dp, batch in LAYOUTS:
        ranks = train(build, work, tp * dp, tp, 1, (LAYERS, HIDDEN, 4, SEQ, batch, 2))[-1]["ranks"]
        sent = [sum(rank[key] for rank in ranks) / 2 for key in ("comm_bytes_tp", "comm_bytes_dp")]
        expected = formula(tp, dp, batch, sum(rank["parameters"] for rank in ranks))
        peak = max(rank["peak_bytes"] for rank in ranks) / 1e6
        name = f"tp={tp} dp={dp} batch {batch}"
        rows += [Row("traffic", f"{name}, tp", "MB", [sent[0] / 1e6]), Row("traffic", f"{name}, dp", "MB", [sent[1] / 1e6]),
                 Row("memory", f"{name}, a rank's tensors", "MB", [peak])]
        lines.append([name, *(f"{x / 1e6:.3f}" for x in (sent[0], expected[0], sent[1], expected[1])), f"{peak:.1f}"])
    table("MB that a step sends, summed over the ranks, and memory",
          ["", "over tp", "by formula", "over dp", "by formula", "peak MB of tensors, a rank"], lines)
    return rows
