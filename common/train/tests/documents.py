#!/usr/bin/python3
"""PACK=0: each document is a row, padded or cut to SEQ; one loss in every layout, the mean over all
tokens of a step, although the ranks and micro-batches have different numbers of them."""
import math
import os
import tempfile

from layouts_apart import deviation
from runs import BUILD, check, losses_of, metrics_of, on, run

# After MODEL, which would replace the sizes.
SMALL = ["--layers", 3, "--hidden-dim", 32, "--heads", 4, "--batch-size", 12, "--lr", 1e-2, "--eps", 1e-4, "--pack", 0]
MODELS = {"GPT-2": ["--model", "gpt2"], "a LLaMA": ["--model", "llama"],
          "TASK=mlm": ["--task", "mlm", "--vocab", "data/reviews/vocab.txt", "--positions", 1, "--dropout", 0.1]}
# tp, dp, pp, micro-batches, other options
LAYOUTS = (((2, 1, 1, 1), ()), ((1, 2, 1, 3), ()), ((1, 4, 1, 1), ()), ((1, 1, 3, 4), ()), ((2, 2, 1, 2), ("--zero", 1)),
           ((2, 1, 2, 3), ("--recompute", "block")))


def at(layout, *options):
    tp, dp, pp, micro = layout
    return metrics_of(tp * dp * pp, *options, "--tp", tp, "--dp", dp, "--pp", pp, "--micro", micro)


def parts_of(lines):
    """The losses of the steps; and the losses and numbers of tokens of the evaluations."""
    return ([line["loss"] for line in lines if "step" in line],
            [(line["test_loss"], line["test_tokens"]) for line in lines if "test_loss" in line])


def check_layouts(name, model, seq, documents):
    options = [*model, *SMALL, "--seq", seq, "--data", documents, "--test", documents, "--samples", 48, "--epochs", 3]
    whole, tested = parts_of(metrics_of(1, *options))
    moved = max(2**-21, *(deviation(whole, losses_of(1, *options, "--test", "", "--perturb", k)) for k in (1, 2)))
    check(len(whole) == 12 and whole[-1] < whole[0] - 0.2, f"{name} learns from documents", str(whole))
    for layout, more in LAYOUTS:
        losses, evaluated = parts_of(at(layout, *options, *more))
        apart = deviation(whole, losses)
        check(apart <= 8 * moved, f"{name}: the losses at tp x dp x pp, micro-batches = {layout} {' '.join(map(str, more))} are those of one rank",
              f"{apart} apart, {8 * moved} allowed")
        check(len(evaluated) == 3 and all(tokens == expected and abs(loss - wanted) < 1e-4 for (loss, tokens), (wanted, expected) in zip(evaluated, tested)),
              "and so are those of the evaluations", f"{evaluated} {tested}")


def loss_of(folder, documents, *options):
    """The loss of a step on all of these documents, and its number of targets."""
    path = f"{folder}/few.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(documents))
    # A learning rate of 0: the evaluation after the step has the same weights.
    lines = metrics_of(1, *options, *SMALL, "--lr", 0, "--steps", 1, "--epochs", 1, "--batch-size", len(documents), "--data", path, "--test", path)
    losses, ((test_loss, tokens),) = parts_of(lines)
    check(abs(losses[0] - test_loss) < 1e-5, f"a step and an evaluation on {len(documents)} documents have one loss", f"{losses} {test_loss}")
    return losses[0], tokens


def check_mean(folder):
    """Of a batch, the loss is the mean over tokens; padding changes nothing; a cut text is its beginning."""
    short, long = "a dog", "once upon a time there was a little dog and it had a ball"
    for model in ("gpt2", "llama"):
        options = ["--model", model, "--seq", 48]
        (one, few), (other, many) = loss_of(folder, [short], *options), loss_of(folder, [long], *options)
        both, all_of_them = loss_of(folder, [short, long], *options)
        check(all_of_them == few + many and few < many / 2, f"{model}: the targets of a batch are those of its documents", f"{few} {many} {all_of_them}")
        check(abs(both - (few * one + many * other) / (few + many)) < 1e-5, f"{model}: the loss is the mean over all tokens", f"{one} {other} {both}")
        if model == "llama":  # it has no table of positions, so SEQ changes no weight
            check(abs(loss_of(folder, [short, long], "--model", model, "--seq", 64)[0] - both) < 1e-6, "more padding does not change the loss")
            check(loss_of(folder, [long], "--model", model, "--seq", 8)[1] == 7, "a document that is cut to SEQ tokens has SEQ - 1 targets")


def check_settings(folder, documents):
    options = ["--model", "gpt2", *SMALL, "--data", documents, "--test", "", "--seq", 24, "--steps", 2]
    packed = losses_of(1, *options, "--pack", 1)
    check(packed == losses_of(1, *options[:-4], "--seq", 24, "--steps", 2, "--pack", 1) and deviation(packed, losses_of(1, *options)) > 1e-3,
          "PACK=1 and PACK=0 use one cache, with other rows", str(packed))
    done = run(1, "--pack", 0, "--steps", 1)
    check(done.returncode == 2 and done.stderr.count("error: ") == done.stderr.count("HINT: ") == 1 and "PACK=0" in done.stderr,
          "PACK=0 for a classifier is one error with a HINT", done.stderr)
    save = [*options, "--save", f"{folder}/run"]
    run(1, *save)
    for what, other in (("PACK", ["--pack", 1]), ("SEQ", ["--seq", 23])):
        done = run(1, *save, *other, "--resume", f"{folder}/run", "--steps", 3)
        check(done.returncode == 2 and done.stderr.count("error: ") == 1, f"a run does not resume with another {what}", done.stdout + done.stderr)


def check_gpu(documents):
    options = [*MODELS["a LLaMA"], *SMALL, "--seq", 48, "--data", documents, "--test", "", "--steps", 4]
    whole = losses_of(1, *options)
    on("over MPI")
    for layout in ((1, 1, 1, 1), (1, 2, 1, 3)):
        check(deviation(whole, parts_of(at(layout, *options))[0]) < 1e-4, f"a GPU gives the losses of the CPU at {layout}")
    on("the CPU")


with tempfile.TemporaryDirectory(dir=os.environ["BUILD"]) as work:
    texts = f"{work}/texts.txt"
    # Documents of very different lengths, so that replicas and micro-batches have different numbers of tokens.
    with open("data/stories/train.txt", encoding="utf-8") as file:
        words = file.read().replace("<|endoftext|>", " ").split()
    with open(texts, "w", encoding="utf-8") as file:
        for k in range(60):
            file.write(" ".join(words[40 * k:40 * k + 1 + int(38 * math.sin(k) ** 4)]) + "\n")
    for name, model in MODELS.items():
        check_layouts(name, model, 48, texts)
    check_mean(work)
    check_settings(work, texts)
    check_gpu(texts)
