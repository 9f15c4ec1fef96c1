"""The whole training step: the kit's, and PyTorch's beside it, in alternating runs."""
import json
import os
import random
import subprocess
import sys

from rows import Row, fail, number, show, table

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY = 30522
REVIEWS, LONGEST = 320, 1030  # words
WARM_UP = 2  # these steps fill the pool and the caches

# name: layers, hidden, heads, sequence, batch, steps a run
MODELS = {
    "2x128": (2, 128, 2, 128, 8, 14),
    "6x256": (6, 256, 4, 128, 8, 8),
    "base": (12, 768, 12, 128, 8, 4),
    "base-512": (12, 768, 12, 512, 2, 4),
}
# name: ranks, tp, threads
LAYOUTS = {"serial": (1, 1, 1), "serial 2 threads": (1, 1, 2), "tp2": (2, 2, 1), "dp2": (2, 1, 1), "2x2": (4, 2, 1)}
# Tokens a second, in those of PyTorch (issue "Fast").
AIMS = {("2x128", "serial"): 2.2, ("2x128", "tp2"): 3.7, ("2x128", "2x2"): 4, ("6x256", "serial"): 1.6, ("6x256", "tp2"): 2.4,
        ("6x256", "dp2"): 2, ("base", "serial"): 1.15, ("base", "tp2"): 1.45, ("base", "dp2"): 1.9}
KINDS = {"linear": "GEMM", "attention": "attention", "optimiser": "optimiser", "clipping": "optimiser"}
SENT = ("all_reduce", "duplication", "all_gather", "gradient reduction, not hidden")


def write_data(work):
    """A vocabulary of BERT's size: the words of the kit's reviews, and entries that are in no text. Reviews of more words than SEQ
    ever is here, so that nothing is padding: the kit does no attention on padding, and PyTorch's script has none."""
    os.makedirs(work, exist_ok=True)
    with open("data/reviews/vocab.txt", encoding="utf-8") as file:
        words = file.read().split("\n")[:-1]
    with open(f"{work}/vocab.txt", "w", encoding="utf-8") as file:
        file.writelines(word + "\n" for word in words + [f"[unused{i}]" for i in range(len(words), VOCABULARY)])
    draw = random.Random(1)
    words = [word for word in words if word.isalpha()]
    with open(f"{work}/reviews.csv", "w", encoding="utf-8") as file:
        file.write("review,label\n")
        file.writelines(f"{' '.join(draw.choices(words, k=LONGEST))},{i % 2}\n" for i in range(REVIEWS))


def data_in(work):
    return ["--vocab", f"{work}/vocab.txt", "--data", f"{work}/reviews.csv"]


def train(build, work, ranks, tp, threads, sizes, *more):
    """One run of build/train; its metrics, a dictionary a line."""
    layers, hidden, heads, seq, batch, count = sizes
    metrics = os.path.join(work, "run.jsonl")
    command = ["common/train/launch.sh", ranks, "solutions", 11, f"{build}/train", "--cache", f"{build}/cache", "--tp", tp,
               "--test", "", "--seq", seq, "--batch-size", batch, "--steps", count, "--threads", threads, "--layers", layers,
               "--hidden-dim", hidden, "--heads", heads, "--metrics", metrics, *more]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"build/train ended with {done.returncode}: {done.stderr.strip()[:300]}", "run it alone: " + " ".join(map(str, command)))
    with open(metrics, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run_kit(build, work, model, layout):
    lines = train(build, work, *LAYOUTS[layout], MODELS[model], *data_in(work), "--profile", 1)
    last = lines[-1]["ranks"]
    return {"seconds": [line["step_s"] for line in lines if "step_s" in line],
            "resident_bytes": max(rank["resident_bytes"] for rank in last), "tensor_bytes": max(rank["peak_bytes"] for rank in last),
            "profile": next(line["profile"] for line in lines if "profile" in line)}


def run_torch(python, model, layout):
    layers, hidden, heads, seq, batch, steps = MODELS[model]
    ranks, tp, threads = LAYOUTS[layout]
    # What makes PyTorch fastest: memory that stays, threads that do not spin.
    tuned = dict(os.environ, OMP_WAIT_POLICY="PASSIVE", OMP_NUM_THREADS=str(threads), MALLOC_MMAP_THRESHOLD_=str(4 << 30),
                 MALLOC_TRIM_THRESHOLD_=str(16 << 30))
    sizes = (ranks, tp, layers, hidden, heads, seq, batch, steps, threads, VOCABULARY)
    done = subprocess.run([python, os.path.join(HERE, "torch_twin.py"), *map(str, sizes)], capture_output=True, text=True, check=False,
                          env=tuned)
    if done.returncode:
        fail(f"{python} cannot run PyTorch's step: {done.stderr.strip().splitlines()[-1]}",
             "apt-get install python3-torch, or TORCH=python of an environment that has it")
    return json.loads(done.stdout.splitlines()[-1])


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def measure(build, work, rounds, pythons, only):
    """{(model, layout): {who: [run, ...]}}; who is "kit", or a PyTorch's version."""
    found = {(model, layout): {} for model in MODELS for layout in LAYOUTS if only in f"{model} {layout}"}
    if not found:
        fail(f"no training step is called '{only}'", f"a part of one of: {', '.join(f'{m} {l}' for m in MODELS for l in LAYOUTS)}")
    for turn in range(rounds):
        for (model, layout), runs in found.items():
            progress(f"round {turn + 1} of {rounds}: {model} {layout}")
            runs.setdefault("kit", []).append(run_kit(build, work, model, layout))
            for python in pythons:
                run = run_torch(python, model, layout)
                runs.setdefault(run["torch"], []).append(run)
    progress("")
    return found


def seconds(runs):
    return [1e3 * step for run in runs for step in run["seconds"][WARM_UP:]]


def useful(model):
    """Floating-point operations of a step: 2 a multiply-add, three products a weight, and attention; the table is looked up."""
    layers, hidden, _, seq, batch, _ = MODELS[model]
    return 3 * 24 * batch * seq * layers * hidden ** 2 * (1 + seq / (6 * hidden))


def step_rows(found, peak):
    """@param peak GFLOP/s of a core"""
    rows = []
    for (model, layout), runs in found.items():
        ranks, _, threads = LAYOUTS[layout]
        row = Row("step", f"{model} {layout}", "ms", seconds(runs["kit"]))
        cores = min(ranks * threads, os.cpu_count())
        row.notes = {"ranks": ranks, "of the peak": f"{100 * useful(model) / (row.best() / 1e3) / (1e9 * peak * cores):.0f} %", "tokens/s": number(1e3 * MODELS[model][3] * MODELS[model][4] / row.median()),
                     "peak MB a rank": number(runs["kit"][0]["resident_bytes"] / 1e6),
                     "of tensors": number(runs["kit"][0]["tensor_bytes"] / 1e6)}
        rows.append(row)
    return rows


def show_steps(found, peak):
    rows = step_rows(found, peak)
    show(f"training step; the peak of a core is {number(peak)} GFLOP/s", rows, "ranks", "tokens/s", "of the peak", "peak MB a rank",
         "of tensors")
    lines = []
    for (model, layout), runs in found.items():
        mine = Row("step", "", "ms", seconds(runs["kit"]))
        for who in list(runs)[1:]:
            other = Row("step", "", "ms", seconds(runs[who]))
            aim = AIMS.get((model, layout), "")
            lines.append([f"{model} {layout}", who, number(other.best()), number(other.median()), number(mine.best()),
                          number(mine.median()), f"{other.best() / mine.best():.2f}", f"{other.median() / mine.median():.2f}", aim,
                          number(runs[who][0]["resident_bytes"] / 1e6), number(runs["kit"][0]["resident_bytes"] / 1e6)])
    if lines:
        table("against PyTorch, in alternating runs: ms a step, ratios of them, MB a rank",
              ["", "PyTorch", "its best", "median", "the kit's", "median", "ratio", "median", "aim", "its MB", "the kit's"], lines)
    return rows


def show_profiles(found):
    """Where the time of rank 0 goes, by kind; a sum's time has the waiting for other ranks in it."""
    kinds = ["GEMM", "attention", "element-wise", "optimiser", "communication"]
    lines = []
    for (model, layout), runs in found.items():
        spent = dict.fromkeys(kinds, 0.0)
        for one in runs["kit"][-1]["profile"]:
            kind = "communication" if one["what"] in SENT else KINDS.get(one["what"], "element-wise")
            spent[kind] += one["forward_ms"] + one["backward_ms"]
        whole = sum(spent.values())
        lines.append([f"{model} {layout}", *(f"{100 * spent[kind] / whole:.1f} %" for kind in kinds)])
    table("where the time goes, on rank 0 (communication: with the waiting)", ["", *kinds], lines)
