#!/usr/bin/env python3
"""A file includes only headers of its own folder, or of one above it in the map of CONTRIBUTING.md.
The judge names no lab. One file knows the versions of Open MPI. sources_folders.py map prints the
map."""
import glob
import os
import re
import sys

FOLDERS = (
    ("common/base", "errors, languages, clocks, cores, random numbers, files that replace the old ones once complete"),
    ("common", "balise.h: the functions that labs call"),
    ("common/data", "CSV, tokenizers, the token cache, batches"),
    ("common/backend", "the kernels' one header; products and copies"),
    ("common/backend/onednn", "products in bf16, by oneDNN"),
    ("common/backend/cpu", "kernels on the CPU, in single precision"),
    ("common/backend/cuda", "kernels on a GPU"),
    ("common/backend/dry", "kernels of a dry run, which only count"),
    ("common/backend/host", "the memory of a backend without a GPU"),
    ("common/backend/reference", "kernels in double precision and plain loops: the definition of all others"),
    ("common/tensor", "shapes, storage, placement"),
    ("common/comm", "groups of ranks and what they exchange"),
    ("common/comm/dry", "groups of a dry run, which send nothing"),
    ("common/comm/only_mpi", "over MPI alone"),
    ("common/comm/nccl", "over NCCL"),
    ("common/mesh", "the world, tp, dp and pp groups"),
    ("common/autograd", "the tape and the differentiable operations"),
    ("common/model", "parameters, the kit's own layers; BERT and language models, assembled from the labs"),
    ("common/model/serial", "the layers of the labs on one rank"),
    ("common/optim", "SGD, AdamW, clipping, schedules, the scaler"),
    ("common/checkpoint", "safetensors: files of weights, their index, their folder"),
    ("common/pretrained", "reading pretrained models: Hugging Face's folders, llama2.c's files"),
    ("common/train", "the training loop, metrics, buckets, saving and resuming"),
    ("common/story", "make story: a text by a trained language model"),
    ("common/bench", "make bench, make model: kernels, steps, collectives, predictions of layouts"),
    ("common/page", "reports for a browser: a lab's case, a training run, a class"),
    ("common/plot", "curves of runs"),
    ("common/slurm", "make sbatch, make grade ON=slurm"),
    ("common/setup", "installing, make doctor, make help, make docs"),
    ("common/po", "translations: every message in French"),
    ("common/tests", "make test: the runner of the tests, and tests of the sources' form"),
    ("grader", "what the judge and the runner share: cases, entries, calls"),
    ("grader/labs", "the labs: their cases, what a rank does in one, what is expected, budgets"),
    ("grader/runner", "a rank: the student's lab, its calls recorded and guarded"),
    ("grader/judge/mpi", "recorded calls: matching, mismatches, deadlocks"),
    ("grader/judge/compare", "expected values and their tolerances"),
    ("grader/judge/launch", "the sandbox, the ranks, how they end"),
    ("grader/judge/reason", "the difference between a rank's program and the plain layer's"),
    ("grader/judge/diagnose", "comparing the values, and diagnosing mistakes"),
    ("grader/judge/report", "verdicts, for people"),
    ("grader/judge/report/formats", "verdicts, for machines"),
    ("grader/judge", "make grade, trace, report, debug"),
    ("grader/labs/shared", "what the judge examines in several labs"),
    ("grader/labs/NN-name", "what the judge examines in one lab only"),
    ("grader/gradebook", "handing in, and grading a class"),
)
RANK = {folder: i for i, (folder, _) in enumerate(FOLDERS)}
RANK["common"] = RANK["common/base"]  # balise.h declares todo(), which base implements
TREES = ("common", "grader")
OTHERS = ("tests", "bench", "start", "mutants", "accepts")


def sources():
    for tree in TREES:
        for path in glob.glob(f"{tree}/**/*", recursive=True):
            if re.search(r"\.(c|h|cc|cu|cuh)$", path) and not set(path.split("/")) & set(OTHERS):
                yield path


def room(path):
    """The folder of a file, as in the map."""
    return re.sub(r"^grader/labs/\d\d-.*", "grader/labs/NN-name", os.path.dirname(path))


def included(path):
    with open(path, encoding="utf-8") as file:
        for name in re.findall(r'^#include "([^"]+)"', file.read(), re.M):
            for place in (name, f"common/{name}", os.path.join(os.path.dirname(path), name)):
                if os.path.exists(place):
                    yield place
                    break


def drawn_map():
    width = max(len(folder) for folder in RANK)
    return "".join(f"    {folder:{width}}  {text}\n" for folder, text in FOLDERS)


def of_open_mpi():
    """The lines outside common/comm/open_mpi.sh that depend on a version of Open MPI."""
    for path in sorted(path for tree in TREES for path in glob.glob(f"{tree}/**/*", recursive=True)):
        if not re.search(r"\.(c|h|cc|cu|sh|bash|py|mk|awk)$", path) or os.path.basename(path) == "open_mpi.sh":
            continue
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if re.search(r"\bOpen MPI\)? \d|\bOMPI_(MAJOR|MINOR)|--[m]ca\b", line) or \
                        "/tests/" not in path and re.search(r"\b(ORTE|PRRTE|vader)\b|(OMPI|PRTE)_MCA_(?!btl_tcp_)\w", line):
                    yield f"{path}:{number}: {line.strip()}"


# A lab, or what only one lab or a family of labs has: its header, what its labels are about, the kinds of its cases.
A_LAB = re.compile(r"\b[Ll]abs? \d|\blab_\d\d|\bLAB=\d|\b(?:A_RING|OF_SHARDS|THE_WEIGHTS|A_SEQUENCE|A_SEGMENT|OF_VOCABULARY|A_DEAL|"
                   r"A_BUCKET|A_ROUND|METRICS_OF|METRICS_OF_STAGES|THE_NORM|A_BLOCK|SIZE_N|BY_ONE_F_ONE_B|BY_GPIPE|TRAINING_LAB)\b|"
                   r"labs/(?:\d\d-|ring|sharded|averages|sequence|segments|vocabulary|grid|replicas)")
# Files of the judge that still name one, and why. No other may, and what no longer does leaves the list.
STILL_NAMES_A_LAB = {
    "grader/judge/commands.h": "make board times the training of lab 11's cases",
    "grader/judge/diagnose/evidence.c": "altered inputs of functions of the vocabulary",
    "grader/judge/diagnose/expenses.c": "sums of weights where no average is due",
    "grader/judge/diagnose/other_calls.c": "tensors that have steps",
    "grader/judge/diagnose/refusals.c": "the rank in a group that the lab has made itself",
    "grader/judge/diagnose/traffic.c": "sums of a few doubles",
    "grader/judge/diagnose/trial.c": "entries that the second step repeats",
    "grader/judge/diagnose/values.c": "weights that follow from those of the step before",
    "grader/judge/handed_out.c": "lab 9 starts from lab 1",
    "grader/judge/local.c": "an example of a layout",
    "grader/judge/main.c": "the numbers of the labs of a part",
    "grader/judge/report/formats/formats.h": "an example of a title",
    "grader/judge/report/on_cluster.c": "the steps of replicas",
    "grader/judge/throughput.c": "make board times the training of lab 11's cases",
    "grader/judge/trace.c": "which case make trace shows",
}


def naming_labs():
    """What is wrong with that list."""
    paths = glob.glob("grader/judge/**/*.[ch]", recursive=True)
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            named = A_LAB.search(file.read())
        if named and path not in STILL_NAMES_A_LAB:
            yield f"{path}: {named[0]}"
        elif not named and path in STILL_NAMES_A_LAB:
            yield f"{path} names no lab any more: remove it from the list"
    yield from (f"{path} is in the list, but is not there" for path in sorted(STILL_NAMES_A_LAB.keys() - set(paths)))


def check(sentence, wrong):
    print(f"{'not ok' if wrong else 'ok'} - {sentence}")
    for line in wrong:
        print(f"    | {line}")
    return bool(wrong)


def main():
    os.chdir(os.environ.get("ROOT", "."))
    paths = sorted(sources())
    homeless = [path for path in paths if room(path) not in RANK]
    downwards = [f"{path} includes {other}, of a folder below its own in the map" for path in paths if path not in homeless
                 for other in included(path) if RANK.get(room(other), -1) > RANK[room(path)]]
    between_labs = [f"{path} includes {other}" for path in paths for other in included(path)
                    if room(other).endswith("NN-name") and os.path.dirname(other) != os.path.dirname(path)]
    with open("CONTRIBUTING.md", encoding="utf-8") as file:
        drawn = drawn_map() in file.read()
    failed = [check("every source is in a folder of the map", homeless), check("no folder includes one below it in the map", downwards),
              check("no file includes a header of another lab's folder", between_labs),
              check("no file of the judge names a lab, except those that are listed", list(naming_labs())),
              check("only common/comm/open_mpi.sh knows the versions of Open MPI", list(of_open_mpi())),
              check("CONTRIBUTING has the map of the folders", [] if drawn else ["common/tests/sources_folders.py map prints it"])]
    return any(failed)


if __name__ == "__main__":
    if sys.argv[1:] == ["map"]:
        print(drawn_map(), end="")
    else:
        sys.exit(main())
