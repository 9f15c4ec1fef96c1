"""Computes the small matrices and tables of the figures: the drawn terms really add up to the drawn
result, and the drawn parts really join. A cell's style says who holds it: w every rank; r0, r1, ...
a shard of that rank; p0, p1, ... that rank's term of a sum."""
import math
import os

from formulas import ROOT

X = [[1, 0, 2, 1], [0, 3, 1, 0], [2, 1, 0, 1]]  # [3,4]: three positions
W = [[1, 2, 0, 1], [0, 1, 1, 0], [2, 0, 1, 1], [1, 1, 0, 2], [0, 1, 2, 0], [1, 0, 1, 1]]  # [6,4]: out, in
DY = [[1, 0, 2, 0, 1, 0], [0, 1, 0, 1, 0, 2], [1, 1, 0, 0, 2, 0]]
O = [[1, 0, 1, 2], [2, 1, 0, 0], [0, 1, 1, 1]]  # [3,4]: out, in
U = [[-1, 1], [-1, 0], [0, 1], [-1, 2]]  # [4,2]
D = [[1, 2, 2, 1], [1, 1, 1, 1]]  # [2,4]
XP = [[1, 2], [2, 1]]  # [2,2]
Q, K, V = [[2, 0], [0, 1], [1, 1]], [[1, 0], [0, 2], [1, 1]], [[4, 0], [0, 8], [2, 2]]
MASK = [1, 1, 0]
IDS, TABLE_ROWS, TABLE_COLUMNS = [7, 2, 9], 10, 4  # as in lab 3
ORDER, REPLICAS = [7, 2, 9, 4, 0, 6, 1, 8, 5, 3], 3  # as in lab 11
COLORS, KEYS = [7, 3, 7, 7, 3, 7], [2, 0, 1, 2, 0, 0]  # as in lab 8
STAGES, MICRO = 3, 4  # as in lab 13
GRID, GRID_MICRO, ONE = {"tp": 2, "dp": 2, "pp": 2}, 3, 5  # the fastest dimension first; ONE is the rank whose groups are marked
SHARDS, WHOLE = [[4, 5], [3, 2]], [1, 1]  # squares of gradients, by stage: shards of two ranks, parameters that both hold whole
LOSSES, LOSS_ROWS = [5.5, 4.9], 8  # sums of losses over the rows of each replica
COUNTED, COUNTED_WT, BIAS = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], [[1, 2], [3, 4], [5, 6], [7, 8]], [1, 2]  # as in lab 20
LOGITS, TARGET = [[1, 3], [2, 0]], 2  # as in lab 21: the columns of two ranks
SEEN, RIGHT = [3, 2], [2, 2]  # as in lab 11: test rows of two replicas, and the number of right ones
SENTENCE = "a brilliant film"


def times(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def transposed(a):
    return [list(row) for row in zip(*a)]


def plus(a, b):
    return [[x + y for x, y in zip(*rows)] for rows in zip(a, b)]


def columns(a, first, end):
    return [row[first:end] for row in a]


def gelu(x):
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def tenths(a):
    return [[round(10 * x) / 10 + 0.0 for x in row] for row in a]


def said(x):
    return f"{x:.1f}".replace("-", "$-$") if isinstance(x, float) else str(x).replace("-", "$-$")


def drawn(a, style, say=said):
    """A matrix as TeX macros.

    @param style of a cell: a name, or a function of row and column"""
    cells = "".join(rf"\C{{{i}}}{{{j}}}{{{say(x)}}}{{{style(i, j) if callable(style) else style}}}" for i, row in enumerate(a) for j, x in enumerate(row))
    return rf"\Size{{{len(a)}}}{{{len(a[0])}}}{cells}"


def by_columns(width):
    return lambda i, j: f"r{j // width}"


def by_rows(height):
    return lambda i, j: f"r{i // height}"


def must(good, what):
    if not good:
        raise SystemExit(f"error: a figure would be untrue: {what}\n  HINT: change the small matrices of slides/matrices.py")


def column_split():
    y = times(X, transposed(W))
    dx = [times(columns(DY, 3 * r, 3 * r + 3), W[3 * r:3 * r + 3]) for r in (0, 1)]
    must(plus(*dx) == times(DY, W), "the terms of dx")
    return {"x": drawn(X, "w"), "Wt": drawn(transposed(W), by_columns(3)), "y": drawn(y, by_columns(3)), "y.whole": drawn(y, "w"),
            "W": drawn(W, by_rows(3)), "dy": drawn(DY, by_columns(3)), "dx.0": drawn(dx[0], "p0"), "dx.1": drawn(dx[1], "p1"),
            "dx": drawn(plus(*dx), "w"), "Wt.plain": drawn(transposed(W), "w")}


def row_split():
    ot = transposed(O)
    z = [times(columns(X, 2 * r, 2 * r + 2), ot[2 * r:2 * r + 2]) for r in (0, 1)]
    must(plus(*z) == times(X, ot), "the terms of z")
    return {"x.cut": drawn(X, by_columns(2)), "Ot": drawn(ot, by_rows(2)), "z.0": drawn(z[0], "p0"), "z.1": drawn(z[1], "p1"), "z": drawn(plus(*z), "w")}


def row_bias():
    """A row split with a bias that is added to the sum; and the first row if each rank added the
    bias."""
    terms = [times(columns(COUNTED, 2 * r, 2 * r + 2), COUNTED_WT[2 * r:2 * r + 2]) for r in (0, 1)]
    total = plus(*terms)
    must(total == times(COUNTED, COUNTED_WT), "the terms of lab 20's example")
    y = [[x + b for x, b in zip(row, BIAS)] for row in total]
    return ({"bias.x": drawn(COUNTED, by_columns(2)), "bias.Wt": drawn(COUNTED_WT, by_rows(2)), "bias.term.0": drawn(terms[0], "p0"),
             "bias.term.1": drawn(terms[1], "p1"), "bias.sum": drawn(total, "w"), "bias.b": drawn([BIAS], "w"), "bias.y": drawn(y, "w")},
            {"bias.twice": ", ".join(str(x + len(terms) * b) for x, b in zip(total[0], BIAS))})


def pair():
    a = times(XP, transposed(U))
    h = tenths([[gelu(x) for x in row] for row in a])
    dt = transposed(D)
    z = [tenths(times(columns(h, 2 * r, 2 * r + 2), dt[2 * r:2 * r + 2])) for r in (0, 1)]
    total = tenths(plus(*z))
    exact = times([[gelu(x) for x in row] for row in a], dt)
    must(tenths(exact) == total, f"the pair's output {exact} {total}")
    return {"pair.x": drawn(XP, "w"), "pair.Ut": drawn(transposed(U), by_columns(2)), "pair.a": drawn(a, by_columns(2)),
            "pair.h": drawn(h, by_columns(2)), "pair.Dt": drawn(dt, by_rows(2)), "pair.z.0": drawn(z[0], "p0"), "pair.z.1": drawn(z[1], "p1"),
            "pair.z": drawn(total, "w")}


def embedding():
    table = [[10 * i + j for j in range(TABLE_COLUMNS)] for i in range(TABLE_ROWS)]
    rows, half, middle = [table[i] for i in IDS], TABLE_COLUMNS // 2, TABLE_ROWS // 2
    terms = [[row if i // middle == r else [0] * TABLE_COLUMNS for i, row in zip(IDS, rows)] for r in (0, 1)]
    must(plus(*terms) == rows, "the terms of a lookup")
    return {"table.hidden": drawn(table, by_columns(half)), "table.vocabulary": drawn(table, by_rows(middle)), "table": drawn(table, "w"),
            "rows": drawn(rows, "w"), "rows.joined": drawn(rows, by_columns(half)),
            "rows.left": drawn(columns(rows, 0, half), "r0"), "rows.right": drawn(columns(rows, half, TABLE_COLUMNS), "r1"),
            "rows.0": drawn(terms[0], "p0"), "rows.1": drawn(terms[1], "p1"), "ids": drawn([[i] for i in IDS], "w"),
            "ones": drawn([[int(i == j) for j in range(TABLE_ROWS)] for i in IDS], "w")}


def attention():
    scores = times(Q, transposed(K))
    size = len(Q[0])
    weights = []
    for row in scores:
        powers = [m * math.exp(s / math.sqrt(size)) for s, m in zip(row, MASK)]
        weights.append([p / sum(powers) for p in powers])
    shown = [[round(100 * p) / 100 for p in row] for row in weights]
    must(all(abs(sum(row) - 1) < 1e-9 for row in shown), f"probabilities {shown}")
    y = times(weights, V)
    must(tenths(times(shown, V)) == tenths(y), f"attention's output {times(shown, V)} {y}")

    def masked(i, j):
        return "w" if MASK[j] else "blank"
    return {"q": drawn(Q, "w"), "kt": drawn(transposed(K), masked), "scores": drawn(scores, masked),
            "probabilities": drawn(shown, masked, lambda p: f"{p:.2f}"), "v": drawn(V, "w"), "heads.y": drawn(tenths(y), "w")}


def collectives():
    """The collectives of lab 1, on a vector of two numbers on each of three ranks."""
    given = [[2 * r + 1, 2 * r + 2] for r in range(3)]
    total = [sum(column) for column in zip(*given)]
    joined = [x for row in given for x in row]
    found = {"sum": drawn([total], "w"), "joined": drawn([joined], by_columns(2))}
    for r, row in enumerate(given):
        found[f"given.{r}"] = drawn([row], f"r{r}")
        found[f"term.{r}"] = drawn([row], f"p{r}")
    # A reduce-scatter splits the sum, so its vectors have as many parts as there are ranks.
    longer = [[r + 1, 2 * r, 3] for r in range(3)]
    total = [sum(column) for column in zip(*longer)]
    found["long.sum"] = drawn([total], "w")
    for r, row in enumerate(longer):
        found[f"long.{r}"] = drawn([row], f"p{r}")
        found[f"part.{r}"] = drawn([[total[r]]], f"r{r}")
    return found


def ring(ranks=3):
    """What each rank has after each round of a ring, and what it sends in the next one. Chunk a is
    rank 0's once it is summed. A digit is a rank whose term is in a sum; a + means that all are.
    A sum that lacks terms has the pale colour of the rank that holds it."""
    has = [[{r} for _ in range(ranks)] for r in range(ranks)]
    found = {}

    def named(c, terms):
        return "abc"[c] + ("+" if len(terms) == ranks else "".join(map(str, sorted(terms))))

    def style(c, terms, r):
        return f"r{c}" if len(terms) == ranks else f"p{r}"
    for k in range(2 * ranks - 1):
        for r, chunks in enumerate(has):
            found[f"ring.{k}.{r}"] = drawn([[named(c, terms) for c, terms in enumerate(chunks)]], lambda i, j, chunks=chunks, r=r: style(j, chunks[j], r))
        sent = [(r - 1 - k if k < ranks - 1 else r + ranks - 1 - k) % ranks for r in range(ranks)]
        messages = [(c, set(has[r][c])) for r, c in enumerate(sent)]
        for r, (c, terms) in enumerate(messages):
            found[f"ring.sent.{k}.{r}"] = drawn([[named(c, terms)]], style(c, terms, r))
        for r, (c, terms) in enumerate(messages):
            has[(r + 1) % ranks][c] = has[(r + 1) % ranks][c] | terms if k < ranks - 1 else terms
        if k == ranks - 2:
            must(all(len(has[r][r]) == ranks for r in range(ranks)), "rank k has chunk k after the reduce-scatter")
    must(all(len(terms) == ranks for chunks in has for terms in chunks), "all ranks have all sums")
    return found


def deals():
    """Which replica reads which row: the order, the replica of each row, and the rows of each
    replica with each tail."""
    whose = [i % REPLICAS for i in range(len(ORDER))]
    found = {"order": drawn([ORDER], lambda i, j: f"r{whose[j]}"), "whose": drawn([whose], lambda i, j: f"r{whose[j]}")}
    round_up = -(-len(ORDER) // REPLICAS) * REPLICAS
    round_down = len(ORDER) // REPLICAS * REPLICAS
    for name, end in (("once", len(ORDER)), ("pad", round_up), ("drop", round_down)):
        for r in range(REPLICAS):
            found[f"{name}.{r}"] = drawn([[ORDER[i % len(ORDER)] for i in range(r, end, REPLICAS)]], f"r{r}")
    return found


def split():
    """What group_split returns on each rank for these colors and keys."""
    groups = {color: sorted((rank for rank in range(6) if COLORS[rank] == color), key=lambda rank: (KEYS[rank], rank)) for color in set(COLORS)}
    style = {color: f"r{i}" for i, color in enumerate(sorted(groups, reverse=True))}
    mine = [groups[color] for color in COLORS]
    found = {"split.rank": drawn([list(range(6))], "w"), "split.color": drawn([COLORS], lambda i, j: style[COLORS[j]]),
             "split.key": drawn([KEYS], lambda i, j: style[COLORS[j]]),
             "split.asked": drawn([["?"] * 6], "blank"),
             "split.place": drawn([[mine[rank].index(rank) for rank in range(6)]], lambda i, j: style[COLORS[j]])}
    for color, members in groups.items():
        found[f"split.group.{color}"] = drawn([members], style[color])
    return found


def schedule(stages, micros, gpipe=False):
    """The passes of each stage, in order: ("F", micro-batch) or ("B", micro-batch).

    @param gpipe true: all forward passes first; false: only as many as a 1F1B schedule needs"""
    queues = []
    for s in range(stages):
        ahead = micros if gpipe else min(micros, stages - 1 - s)
        forwards, backwards = [("F", m) for m in range(micros)], [("B", m) for m in range(micros)]
        queue, forwards = forwards[:ahead], forwards[ahead:]
        while forwards or backwards:
            queue += forwards[:1] + backwards[:1]
            forwards, backwards = forwards[1:], backwards[1:]
        queues.append(queue)
    return queues


def alive(queue):
    """The most micro-batches of a stage that wait for their backward pass at once."""
    return max(sum(1 if kind == "F" else -1 for kind, _ in queue[:i]) for i in range(len(queue) + 1))


def drawn_schedule(queues, length=1):
    """A schedule as TeX macros: each pass begins once its input is there, and takes `length` slots."""
    stages, done, drawn_slots = len(queues), {}, []
    clock, left = [0] * stages, [list(queue) for queue in queues]
    while any(left):
        for s, queue in enumerate(left):
            while queue:
                kind, m = queue[0]
                needs = (s - 1 if kind == "F" else s + 1, kind, m)
                ready = 0 if needs[0] < 0 else done.get((s, "F", m)) if needs[0] == stages else done.get(needs)
                if ready is None:
                    break
                begin = max(clock[s], ready)
                clock[s] = done[s, kind, m] = begin + length
                drawn_slots.append(rf"\Slot{{{s}}}{{{begin}}}{{{length}}}{{{kind}}}{{{m}}}")
                queue.pop(0)
    end = length * (len(queues[0]) + 2 * (stages - 1))
    must(max(clock) == end, f"a schedule of {max(clock)} slots, not {end}")
    return "".join(rf"\Row{{{s}}}{{{end}}}" for s in range(stages)) + "".join(drawn_slots)


def pipeline():
    gpipe, one_f_one_b = schedule(STAGES, MICRO, gpipe=True), schedule(STAGES, MICRO)
    must([alive(queue) for queue in gpipe] == [MICRO] * STAGES, "GPipe's micro-batches in flight")
    must([alive(queue) for queue in one_f_one_b] == [min(MICRO, STAGES - k) for k in range(STAGES)], "1F1B's micro-batches in flight")
    return {"pipeline.batch": drawn_schedule(schedule(STAGES, 1)), "pipeline.batch.long": drawn_schedule(schedule(STAGES, 1), MICRO),
            "pipeline.gpipe": drawn_schedule(gpipe), "pipeline.1f1b": drawn_schedule(one_f_one_b),
            "pipeline.grid": drawn_schedule(schedule(GRID["pp"], GRID_MICRO))}


def grid():
    """The coordinates of each rank of the grid. A colour is a piece of the model: replicas share it."""
    ranks = range(math.prod(GRID.values()))
    place = [{"tp": rank % GRID["tp"], "dp": rank // GRID["tp"] % GRID["dp"], "pp": rank // (GRID["tp"] * GRID["dp"])} for rank in ranks]
    must(all((at["pp"] * GRID["dp"] + at["dp"]) * GRID["tp"] + at["tp"] == rank for rank, at in zip(ranks, place)), "the grid's formula")
    styles = [f"r{at['pp'] * GRID['tp'] + at['tp']}" for at in place]
    found = {f"grid.{name}": drawn([[at[name] for at in place]], lambda i, j: styles[j]) for name in GRID}
    found["grid.rank"] = drawn([list(ranks)], lambda i, j: styles[j])
    corners = "".join(rf"\Corner{{{rank}}}{{{at['tp']}}}{{{at['dp']}}}{{{at['pp']}}}{{{styles[rank]}}}" for rank, at in zip(ranks, place))
    edges = "".join(rf"\Edge{{{name}}}{{{a}}}{{{b}}}{{{int(ONE in (a, b))}}}" for a in ranks for b in ranks if a < b
                    for name in GRID if [one for one in GRID if place[a][one] != place[b][one]] == [name])
    return {**found, "grid.corners": corners, "grid.edges": edges}


def norm():
    """The gradient norm of two stages of two ranks, from squares; and what counting each rank of the
    grid would give."""
    once = sum(map(sum, SHARDS)) + sum(WHOLE)
    each_rank = GRID["dp"] * (sum(map(sum, SHARDS)) + GRID["tp"] * sum(WHOLE))
    found = {"sum": once, "value": math.isqrt(once), "wrong.sum": each_rank, "wrong.value": math.isqrt(each_rank)}
    must(found["value"] ** 2 == once and found["wrong.value"] ** 2 == each_rank, f"a norm that is no whole number: {once}, {each_rank}")
    for s, whole in enumerate(WHOLE):
        found.update({f"whole.{s}": whole, f"stage.{s}": sum(SHARDS[s]) + whole, **{f"shard.{s}.{t}": one for t, one in enumerate(SHARDS[s])}})
    return {f"norm.{key}": value for key, value in found.items()}


def loss():
    """The mean loss over replicas; only the last stage of each has counted rows."""
    found = {f"loss.{d}.{s}": value if s == GRID["pp"] - 1 else 0 for d, value in enumerate(LOSSES) for s in range(GRID["pp"])}
    return {**found, "loss.sum": f"{sum(LOSSES):.1f}", "loss.rows": len(LOSSES) * LOSS_ROWS, "loss.mean": f"{sum(LOSSES) / len(LOSSES) / LOSS_ROWS:.2f}"}


def next_token():
    """The loss of one position whose logits lie on two ranks, its gradient, and what comes out if each
    rank subtracts its own maximum."""
    row, first = sum(LOGITS, []), len(LOGITS[0])
    most, sums = max(row), [sum(math.exp(x - max(row)) for x in own) for own in LOGITS]
    own_sums = [sum(math.exp(x - max(own)) for x in own) for own in LOGITS]
    own_right = row[TARGET] - max(LOGITS[TARGET // first])
    value = math.log(sum(sums)) - (row[TARGET] - most)
    must(abs(value + math.log(math.exp(row[TARGET]) / sum(map(math.exp, row)))) < 1e-9, f"a token's loss {value}")
    gradient = [math.exp(x - most) / sum(sums) - (j == TARGET) for j, x in enumerate(row)]
    must(abs(sum(round(x, 2) for x in gradient)) < 1e-9, f"the gradient of the logits {gradient}")
    found = {"most": most, "sum": f"{sum(sums):.3f}", "right": row[TARGET] - most, "loss": f"{value:.3f}", "own.sum": f"{sum(own_sums):.3f}",
             "own.right": own_right, "own.loss": f"{math.log(sum(own_sums)) - own_right:.3f}", "target": TARGET}
    for r, own in enumerate(LOGITS):
        found.update({f"most.{r}": max(own), f"sum.{r}": f"{sums[r]:.3f}", f"right.{r}": row[TARGET] - most if TARGET // first == r else 0,
                      f"own.sum.{r}": f"{own_sums[r]:.3f}", f"own.right.{r}": own_right if TARGET // first == r else 0})
    return ({"logits": drawn([row], by_columns(first)), "logits.gradient": drawn([gradient], by_columns(first), lambda x: f"{x:.2f}".replace("-", "$-$"))},
            {f"next.{key}": str(text).replace("-", "$-$") for key, text in found.items()})


def gelu_curve():
    return " ".join(f"({x / 10:.1f},{gelu(x / 10):.3f})" for x in range(-35, 26))


def vocabulary():
    with open(os.path.join(ROOT, "data/reviews/vocab.txt"), encoding="utf-8") as file:
        return {word: i for i, word in enumerate(file.read().split("\n")[:-1])}


def drawings():
    return {**column_split(), **row_split(), **row_bias()[0], **pair(), **embedding(), **attention(), **collectives(), **ring(), **deals(), **split(),
            **pipeline(), **grid(), **next_token()[0], "gelu": gelu_curve()}


def numbers():
    words = vocabulary()
    found = {f"token.{i}": words[word] for i, word in enumerate(["[CLS]", *SENTENCE.split(), "[SEP]", "[PAD]"])}
    found.update({f"word.{i + 1}": word for i, word in enumerate(SENTENCE.split())})
    a, b = 1, -2
    found.update({"bend.a": a, "bend.b": b, "bend.sum": a + b,
                  "bend.of.sum": f"{gelu(a + b):.2f}", "bend.sum.of": f"{gelu(a) + gelu(b):.2f}",
                  "stages": STAGES, "micro": MICRO, "one": ONE, **norm(), **loss(), **row_bias()[1], **next_token()[1]})
    ratios = [right / seen for right, seen in zip(RIGHT, SEEN)]
    for r, ratio in enumerate(ratios):
        found.update({f"seen.{r}": SEEN[r], f"right.{r}": RIGHT[r], f"ratio.{r}": f"{ratio:.3f}"})
    found.update({"seen.all": sum(SEEN), "right.all": sum(RIGHT), "ratio.mean": f"{sum(ratios) / len(ratios):.3f}",
                  "ratio.all": f"{sum(RIGHT) / sum(SEEN):.3f}"})
    return found
