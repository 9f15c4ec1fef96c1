#!/usr/bin/python3
"""make train TASK=mlm: BERT learns the hidden tokens of a text, with the same loss in every layout.
The weights of a run begin a run of the other task."""
import json
import math
import os
import shutil
import subprocess
import tempfile

from layouts_apart import deviation
from runs import BUILD, ROOT, check, losses_of, metrics_of, on, run

SEQ = 32
TINY = ["--task", "mlm", "--layers", 2, "--hidden-dim", 32, "--heads", 4, "--seq", SEQ, "--positions", 1, "--threads", 1]
SMALL = [*TINY, "--layers", 3, "--batch-size", 12, "--test", "", "--lr", 1e-2, "--eps", 1e-4, "--steps", 12]
UNIT = 2**-21  # unit in the last place of a float between 4 and 8, such as the loss
LAYOUTS = ((2, 1, 1), (4, 1, 1), (1, 2, 1), (1, 3, 1), (1, 1, 2), (1, 1, 3), (2, 2, 2))


def degrees(layout):
    return [word for pair in zip(("--tp", "--dp", "--pp"), layout) for word in pair]


def at(layout, *options):
    return losses_of(math.prod(layout), *SMALL, *degrees(layout), *options)


def check_layouts():
    moved = max(UNIT, *(deviation(WHOLE, losses_of(1, *SMALL, "--perturb", k)) for k in (1, 2, 3)))
    check(len(WHOLE) == 12 and WHOLE[-1] < WHOLE[0] - 0.5, "BERT learns the hidden tokens of the stories", str(WHOLE))
    for layout in LAYOUTS:
        for micro in (1, 2):
            parts = at(layout, "--micro", micro)
            check(deviation(WHOLE, parts) <= 8 * moved,
                  f"the losses of tp x dp x pp = {layout} with {micro} micro-batches equal those of one rank",
                  f"{deviation(WHOLE, parts)} apart, {8 * moved} allowed")
    on("over MPI")
    for layout in ((1, 1, 1), (2, 1, 1)):
        emulated = at(layout, "--steps", 6)
        check(deviation(WHOLE[:6], emulated) <= 32 * moved, f"GPUs give the losses of the CPU at {layout}",
              f"{deviation(WHOLE[:6], emulated)} apart, {32 * moved} allowed")
    on("the CPU")


def check_masks():
    """Tests which tokens are hidden. With LR=0, the loss changes only if other tokens are
    hidden."""
    still = [*TINY, "--lr", 0, "--dropout", 0, "--samples", 12, "--batch-size", 12, "--epochs", 2, "--test", "data/stories/test.txt"]
    runs = [metrics_of(math.prod(layout), *still, *degrees(layout)) for layout in ((1, 1, 1), (2, 1, 1), (1, 3, 1), (1, 1, 2))]
    steps = [line["loss"] for line in runs[0] if "step" in line]
    tests = [[line for line in lines if "test_loss" in line] for lines in runs]
    check(len(steps) == 2 and abs(steps[0] - steps[1]) > 1e-4, "each epoch hides other tokens of the same rows", str(steps))
    check(all(len(t) == 2 and t[0]["test_loss"] == t[1]["test_loss"] for t in tests), "each evaluation hides the same tokens", str(tests))
    check(all(abs(t[0]["test_loss"] - tests[0][0]["test_loss"]) < 1e-5 for t in tests) and len({t[0]["test_tokens"] for t in tests}) == 1,
          "and so does each layout", str(tests))
    said = run(1, *still).stdout
    rows = int(said.partition("evaluating ")[2].split()[0])
    part = tests[0][0]["test_tokens"] / (rows * SEQ)
    check(0.13 < part < 0.16, "about 15 % of the tokens are hidden, without those that begin and end a story", str(part))
    tiny = losses_of(1, *TINY, "--seq", 2, "--batch-size", 1, "--steps", 8, "--test", "")
    check(len(tiny) == 8 and 0 in tiny, "a batch without a hidden token has the loss 0", str(tiny))


def check_limit():
    """Tests MAX_PREDICTIONS: about 5 of 32 tokens of a row are hidden, or at most 2."""
    limited = [*SMALL, "--max-predictions", 2]
    runs = [metrics_of(math.prod(layout), *limited, *degrees(layout)) for layout in ((1, 1, 1), (2, 1, 1), (1, 3, 1), (1, 1, 2))]
    losses = [[line["loss"] for line in lines if "step" in line] for lines in runs]
    check(all(deviation(losses[0], other) < 1e-4 for other in losses), "with MAX_PREDICTIONS, each layout hides the same tokens", str(losses))
    tested = metrics_of(1, *TINY, "--max-predictions", 1, "--batch-size", 12, "--steps", 1, "--test", "data/stories/test.txt")
    rows = int(run(1, *TINY, "--steps", 1, "--test", "data/stories/test.txt").stdout.partition("evaluating ")[2].split()[0])
    tokens = [line["test_tokens"] for line in tested if "test_tokens" in line]
    check(0.95 * rows < tokens[0] <= rows, "and a row has at most so many", f"{tokens} in {rows} rows")
    work = [lines[-1]["model_flops"] for lines in (metrics_of(1, *SMALL), runs[0])]
    check(work[1] < work[0], "fewer predictions need fewer operations", str(work))


def check_memory():
    logits = 64 * 64 * 968 * 4  # of all positions
    held = metrics_of(1, *TINY, "--layers", 1, "--hidden-dim", 16, "--heads", 2, "--seq", 64, "--batch-size", 64, "--steps", 1,
                      "--test", "")[-1]["ranks"][0]["peak"]["activations"]
    check(held < logits, "a step has logits of hidden tokens alone", f"{held} bytes; the logits of all positions have {logits}")


def check_checkpoints(folder):
    save = ["--save", f"{folder}/run", "--resume", f"{folder}/run"]
    losses = [loss for steps, layout in ((4, (1, 1, 2)), (8, (2, 1, 1)), (12, (1, 2, 3)))
              for loss in at(layout, *save, "--steps", steps)]
    check(len(losses) == 12 and deviation(WHOLE, losses) < 1e-4, "a run goes on at another layout", str(losses))
    done = subprocess.run(["common/train/launch.sh", "1", "solutions", "14", f"{BUILD}/story", "--model", f"{folder}/run"],
                          cwd=ROOT, capture_output=True, text=True)
    check(done.returncode == 2 and "masked BERT is not a language model" in done.stderr, "and tells no story", done.stdout + done.stderr)


def trained(layout, *options):
    """The losses of a short run that takes its sizes from its MODEL."""
    return losses_of(math.prod(layout), "--seq", SEQ, "--batch-size", 12, "--lr", 1e-2, "--eps", 1e-4, "--steps", 6, "--threads", 1,
                     "--test", "", *degrees(layout), *options)


def check_task(what, begin, save, *task):
    """Tests that runs of a task that begin with the weights of `begin` have one loss."""
    begun = ["--model", begin, *task]
    whole = trained((1, 1, 1), *begun)
    moved = max(UNIT, *(deviation(whole, trained((1, 1, 1), *begun, "--perturb", k)) for k in (1, 2)))
    for layout in ((2, 1, 1), (1, 1, 2), (2, 2, 2)):
        more = ("--zero", 1, "--save", save) if layout[1] > 1 else ()
        parts = trained(layout, *begun, "--micro", 2, "--recompute", "block", *more)
        check(deviation(whole, parts) <= 8 * moved, f"{what}: tp x dp x pp = {layout} gives the losses of one rank",
              f"{deviation(whole, parts)} apart, {8 * moved} allowed")
    return whole


def check_other_task(name, folder, *sizes):
    """Tests that a BERT is pretrained, then classifies reviews, then is pretrained again."""
    first, tuned, again = (tempfile.mkdtemp(dir=folder) for _ in range(3))
    losses = trained((1, 1, 2), "--task", "mlm", *sizes, "--save", first)
    check(losses[-1] < losses[0] - 0.2, f"{name} learns hidden tokens", str(losses))
    reviews = check_task(f"{name}, fine-tuned", first, tuned)
    check(reviews[0] < 1 and reviews != trained((1, 1, 1), *sizes), f"{name} classifies reviews with pretrained weights", str(reviews))
    check_task(f"{name}, pretrained again", tuned, again, "--task", "mlm")
    done = run(1, "--model", again, "--steps", 1, "--seq", SEQ, "--test", "", "--resume", tuned, "--task", "mlm")
    check(done.returncode == 2 and done.stderr.count("error: ") == 1 and "MODEL=hf:DIR" in done.stderr.partition("HINT: ")[2],
          f"{name}: RESUME from a checkpoint of the other task is refused, and the HINT says how to go on", done.stdout + done.stderr)
    return first, tuned


def merge(folder):
    """Writes the checkpoint in Hugging Face's format."""
    return subprocess.run([f"{BUILD}/checkpoint", "merge", folder, f"{folder}-hf", "--hf"], capture_output=True, text=True)


def check_labs_bert(folder):
    for save in check_other_task("BERT", folder, "--layers", 2, "--hidden-dim", 32, "--positions", 1):
        done = merge(save)
        check(done.returncode == 2 and "no model like this" in done.stderr and "MODEL=bert" in done.stderr,
              "the labs' BERT is not exported, and the HINT names the one that is", done.stdout + done.stderr)


def check_published_bert(folder):
    begun = ("--model", "bert", "--layers", 2, "--hidden-dim", 32, "--task", "mlm")
    whole = trained((1, 1, 1), *begun)
    on("over MPI")
    emulated = trained((2, 1, 1), *begun)
    on("the CPU")
    check(deviation(whole, emulated) <= 32 * UNIT, "GPUs give the published BERT's losses of the CPU", f"{whole}, {emulated}")
    for save, task in zip(check_other_task("the published BERT", folder, "--model", "bert", "--layers", 2, "--hidden-dim", 32,
                                                 "--dropout", 0.2),
                          ("BertForMaskedLM", "BertForSequenceClassification")):
        done = merge(save)
        with open(f"{save}-hf/config.json", encoding="utf-8") as file:
            config = json.load(file)
        check(done.returncode == 0 and config["architectures"] == [task], f"the published BERT is exported as {task}", done.stderr + str(config))
        check(config["hidden_dropout_prob"] == 0.2, "with the dropout of its training", str(config))
        for options in ((), ("--task", "mlm")):
            same = [trained((1, 1, 1), "--model", begin, "--vocab", "data/reviews/vocab.txt", *options)
                    for begin in (save, f"hf:{save}", f"{save}-hf")]
            check(same[0] == same[1] == same[2], f"and begins a run with {options or 'reviews'} as its checkpoint does", str(same))


def check_refused(folder):
    unmasked = f"{folder}/vocab.txt"
    with open(f"{ROOT}/data/reviews/vocab.txt", encoding="utf-8") as file, open(unmasked, "w", encoding="utf-8") as copy:
        copy.write(file.read().replace("[MASK]", "[mask]"))
    models = f"{ROOT}/common/pretrained/tests/models"
    drops = shutil.copytree(f"{models}/bert", f"{folder}/drops")
    with open(f"{models}/bert/config.json", encoding="utf-8") as file:
        config = file.read().replace('"classifier_dropout": null', '"classifier_dropout": 0.5')
    with open(f"{drops}/config.json", "w", encoding="utf-8") as file:
        file.write(config)
    large = shutil.copytree(f"{models}/bert", f"{folder}/large")
    os.truncate(f"{large}/config.json", 40 << 20)
    bad = {"MODEL=llama": ([*TINY, "--model", "llama"], "MODEL=llama is a LLaMA"), "MODEL=gpt2": ([*TINY, "--model", "gpt2"], "MODEL=gpt2 is a GPT-2"),
           "a pretrained GPT-2": (["--task", "mlm", "--seq", 8, "--model", f"hf:{models}/gpt2"], "is a GPT-2"),
           "MODEL=hf: of a folder without a model": (["--task", "mlm", "--model", f"hf:{folder}"], "config.json"),
           "a config.json of 40 MB": (["--task", "mlm", "--model", large], "cannot be read: the file is larger than 32 MB"),
           "a folder that is not there": (["--model", "build/no-such-model"], "No such file"),
           "a name that is no model": (["--model", "no-such-model"], "MODEL cannot be 'no-such-model'"),
           "a SAVE folder with sizes": (["--model", "common/pretrained/tests/models/bert", "--layers", 3],
                                        "MODEL=common/pretrained/tests/models/bert cannot be combined with LAYERS"),
           "MAX_PREDICTIONS without TASK": (["--max-predictions", 4], "TASK=mlm"),
           "MAX_PREDICTIONS=0": ([*TINY, "--max-predictions", 0], "MAX_PREDICTIONS cannot be '0'"),
           "a BERT with two dropouts": (["--model", drops, "--seq", 8], "different probabilities"),
           "DROPOUT settles that, and then a missing vocabulary": (["--model", drops, "--seq", 8, "--dropout", 0.1], "no tokenizer"),
           "another task": ([*TINY, "--task", "other"], "other"),
           "a vocabulary without [MASK]": ([*TINY, "--vocab", unmasked], "[MASK]"),
           "another model's tokenizer": ([*TINY, "--vocab", "data/stories/gpt2"], "[MASK]")}
    for what, (options, named) in bad.items():
        done = run(1, *options)
        check(done.returncode == 2 and done.stderr.count("error: ") == 1 and done.stderr.count("HINT: ") == 1 and named in done.stderr,
              f"{what} is one error with a HINT", done.stdout + done.stderr)


WHOLE = losses_of(1, *SMALL)
check_layouts()
check_masks()
check_limit()
check_memory()
with tempfile.TemporaryDirectory(dir=os.environ["BUILD"]) as work:
    check_checkpoints(work)
    check_labs_bert(work)
    check_published_bert(work)
    check_refused(work)
