"""Compares the bytes that a step sends, summed over the ranks, with the prediction of cost.py, and
measures the memory of a rank."""
import cost
import pace
from rows import Row, table
from steps import train

# tp, dp, global batch. In the last layout, a replica has as many rows as with tp=2 alone. Its ranks
# should need the same memory, because a rank holds nothing for other replicas.
LAYOUTS = [(1, 1, 12), (2, 1, 12), (4, 1, 12), (1, 2, 12), (1, 4, 12), (2, 2, 12), (4, 2, 12), (2, 3, 12), (2, 2, 24)]
LAYERS, HIDDEN, HEADS, SEQ, WORDS = 2, 128, 4, 64, 968


def on_paper(tp, dp, batch):
    """The bytes that a step sends over tp, over dp and over pp, summed over the ranks."""
    model = cost.Model(LAYERS, HIDDEN, HEADS, SEQ, batch, WORDS, classifies=True)
    return [tp * dp * sent for sent in cost.sent(pace.UNIT, model, tp, dp)]


def measure(build, work):
    rows, lines = [], []
    for tp, dp, batch in LAYOUTS:
        ranks = train(build, work, tp * dp, tp, 1, (LAYERS, HIDDEN, HEADS, SEQ, batch, 2))[-1]["ranks"]
        sent = [sum(rank[key] for rank in ranks) / 2 for key in ("comm_bytes_tp", "comm_bytes_dp")]
        expected = on_paper(tp, dp, batch)
        peak = max(rank["peak_bytes"] for rank in ranks) / 1e6
        name = f"tp={tp} dp={dp} batch {batch}"
        rows += [Row("traffic", f"{name}, tp", "MB", [sent[0] / 1e6]), Row("traffic", f"{name}, dp", "MB", [sent[1] / 1e6]),
                 Row("memory", f"{name}, a rank's tensors", "MB", [peak])]
        lines.append([name, *(f"{x / 1e6:.3f}" for x in (sent[0], expected[0], sent[1], expected[1])), f"{peak:.1f}"])
    table("MB that a step sends, summed over the ranks, and memory",
          ["", "over tp", "by formula", "over dp", "by formula", "peak MB of tensors per rank"], lines)
    return rows
