#!/usr/bin/python3
"""make train MODEL=llama: the same loss in every layout, on the CPU and on emulated GPUs;
checkpoints in another layout; a story by the trained model."""
import math
import os
import subprocess
import tempfile

from layouts_apart import deviation, weights_apart
from runs import BUILD, ROOT, check, losses_of, metrics_of, on, run

SMALL = ["--model", "llama", "--layers", 3, "--hidden-dim", 32, "--heads", 4, "--seq", 32, "--batch-size", 12, "--test", "",
         "--lr", 1e-2, "--eps", 1e-4, "--threads", 1, "--steps", 12]
UNIT = 2**-21  # unit in the last place of a float between 4 and 8, such as the loss
LAYOUTS = ((2, 1, 1), (4, 1, 1), (1, 2, 1), (1, 3, 1), (1, 1, 2), (1, 1, 3), (2, 2, 2), (2, 1, 3))


def at(layout, *options):
    tp, dp, pp = layout
    return losses_of(math.prod(layout), *SMALL, "--tp", tp, "--dp", dp, "--pp", pp, *options)


def check_layouts():
    moved = max(UNIT, *(deviation(WHOLE, losses_of(1, *SMALL, "--perturb", k)) for k in (1, 2, 3)))
    check(WHOLE[-1] < WHOLE[0] - 0.5, "a LLaMA learns from the stories", str(WHOLE))
    for layout in LAYOUTS:
        parts = at(layout, "--micro", 2)
        check(deviation(WHOLE, parts) <= 8 * moved, f"the losses of tp x dp x pp = {layout} with 2 micro-batches equal those of one rank",
              f"{deviation(WHOLE, parts)} apart, {8 * moved} allowed")
    clipped = losses_of(1, *SMALL, "--clip", 0.1)
    norms = [[line["grad_norm"] for line in metrics_of(math.prod(layout), *SMALL, "--clip", 0.1, "--tp", layout[0], "--pp", layout[2])
              if "step" in line] for layout in ((1, 1, 1), (2, 1, 1), (1, 1, 2), (2, 2, 2))]
    check(all(abs(a - b) <= 1e-4 * a for other in norms[1:] for a, b in zip(norms[0], other)),
          "the norm of the gradient counts the tied table once at every layout", str([n[:3] for n in norms]))
    check(deviation(clipped, WHOLE) > 1e-5, "and clipping changes what is learnt")
    check(at((1, 1, 2)) == at((1, 1, 2)), "two runs of a pipeline are equal to the last digit")
    for device in ("over MPI", "over NCCL"):
        on(device)
        for layout in ((1, 1, 1), (2, 1, 1), (1, 1, 2)):
            emulated = at(layout, "--steps", 6)
            check(deviation(WHOLE[:6], emulated) <= 32 * moved, f"GPUs {device} give the losses of the CPU at {layout}",
                  f"{deviation(WHOLE[:6], emulated)} apart, {32 * moved} allowed")
    on("the CPU")


def check_short_stories(folder):
    """A trainer that averages the means of micro-batches whose rows have unequal numbers of targets
    gives each token another weight. Here every row is a whole window, however short the stories."""
    with open(f"{folder}/short.txt", "w", encoding="utf-8") as file:
        file.writelines("Tom ran" + i % 23 * " to the park" + ".\n" for i in range(600))

    def saved(name, ranks, *options):
        return losses_of(ranks, *SMALL, "--data", f"{folder}/short.txt", "--batch-size", 16, "--save", f"{folder}/{name}", *options)

    one = saved("one", 1)
    moved = [(deviation(one, saved(f"moved-{k}", 1, "--perturb", k)), weights_apart(f"{folder}/one", f"{folder}/moved-{k}")) for k in (1, 2, 3)]
    loss, weight = (8 * max(column) for column in zip(*moved, (UNIT, 0)))
    for tp, dp in ((1, 1), (1, 2), (2, 1)):
        for micro in (1, 4, 8):
            parts = saved(f"{tp}-{dp}-{micro}", tp * dp, "--tp", tp, "--micro", micro)
            apart = deviation(one, parts), weights_apart(f"{folder}/one", f"{folder}/{tp}-{dp}-{micro}")
            check(len(parts) == 12 and apart[0] <= loss and 0 < weight >= apart[1],
                  f"stories shorter than SEQ give the same losses and weights with MICRO={micro}, tp {tp}, dp {dp}",
                  f"{apart[0]:.3g} and {apart[1]:.3g} apart, {loss:.3g} and {weight:.3g} allowed")


def check_report():
    lines = metrics_of(1, *SMALL)
    steps = [line for line in lines if "step" in line]
    check(all(abs(line["perplexity"] - math.exp(line["loss"])) < 1e-6 * line["perplexity"] for line in steps) and "accuracy" not in steps[0],
          "the metrics have the perplexity, exp(loss), in place of the accuracy", str(steps[0]))
    tested = [option if option != "" else "data/stories/test.txt" for option in SMALL]
    epochs = [[line for line in metrics_of(math.prod(layout), *tested, "--samples", 24, "--epochs", 1, "--tp", layout[0], "--pp", layout[2])
               if "test_perplexity" in line] for layout in ((1, 1, 1), (1, 3, 1), (2, 1, 2))]
    check(all(len(e) == 1 and abs(e[0]["test_loss"] - epochs[0][0]["test_loss"]) < 1e-5 for e in epochs)
          and len({e[0]["test_tokens"] for e in epochs}) == 1, "the evaluation counts each token once at every layout", str(epochs))


def check_checkpoints(folder):
    save = ["--save", f"{folder}/run", "--resume", f"{folder}/run"]
    losses = []
    for steps, layout in ((4, (1, 1, 2)), (8, (2, 1, 1)), (12, (1, 2, 3))):
        metrics = f"{folder}/metrics.jsonl"
        losses = metrics_in(math.prod(layout), metrics, "--tp", layout[0], "--pp", layout[2], *save, "--steps", steps)
    check(deviation(WHOLE, losses) < 1e-4 and len(losses) == 12, "a run goes on at another layout, its tied table included", str(losses))
    texts = [story(layout, "--model", f"{folder}/run") for layout in ((1, 1), (2, 1), (1, 2))]
    check(len(set(texts)) == 1 and len(texts[0]) > 20, "and writes a story, the same at every layout", str(texts))


def metrics_in(ranks, path, *options):
    import json
    done = run(ranks, *SMALL, "--metrics", path, *options)
    if done.returncode:
        print(done.stdout, done.stderr)
    with open(path, encoding="utf-8") as file:
        return [line["loss"] for line in map(json.loads, file) if "step" in line]


def story(layout, *options):
    tp, pp = layout
    done = subprocess.run(["common/train/launch.sh", str(tp * pp), "solutions", "14", f"{BUILD}/story", "--tp", str(tp), "--pp", str(pp),
                           "--steps", "30", *options], cwd=ROOT, capture_output=True, text=True)
    return done.stdout or done.stderr


def check_refused():
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("empty.txt", b""), ("short.txt", b"Once."), ("latin.txt", b"caf\xe9 " * 5000)):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(content)
        bad = {"an empty text": ["--data", f"{folder}/empty.txt"], "a text shorter than a batch": ["--data", f"{folder}/short.txt"],
               "a text that is not UTF-8": ["--data", f"{folder}/latin.txt"], "a text that is a device": ["--data", "/dev/zero"],
               "a tokenizer that is not there": ["--vocab", f"{folder}/nothing.model"], "a tokenizer that is a text": ["--vocab", f"{folder}/short.txt"],
               "heads with an odd width": ["--hidden-dim", 36, "--heads", 4], "DROPOUT": ["--dropout", 0.1], "POSITIONS": ["--positions", 1]}
        for what, options in bad.items():
            done = run(1, *SMALL, *options)
            check(done.returncode == 2 and done.stderr.count("error: ") == 1 and done.stderr.count("HINT: ") == 1,
                  f"{what} is one error with a HINT", done.stdout + done.stderr)


WHOLE = losses_of(1, *SMALL)
check_layouts()
check_report()
with tempfile.TemporaryDirectory(dir=os.environ["BUILD"]) as work:
    check_checkpoints(work)
    check_short_stories(work)
check_refused()
