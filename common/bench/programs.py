"""The sections of make bench that run one program of the kit: its kernels, its collectives, its
tokenizers, and the grader."""
import functools
import os
import re
import resource
import time

import aims
import gpu
import steps
from rows import Row, said, show
from turns import KIT, Figure, rows_of, take_turns

RATE = Figure("tokenizer", "MB/s", lambda rate: [rate], lower=False)
SECONDS = Figure("verdict", "s", lambda seconds: [seconds])


# ---- kernels and collectives -------------------------------------------------------------------------------------------


def kernel_lines(program, *sizes):
    """The output of bench-kernels: name, hidden, shortest and median time in us, rate and unit."""
    found = (re.match(r"(\S.*?)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+) (GFLOP/s|GB/s)$", line)
             for line in said(program, 1, *sizes).splitlines())
    return [match.groups() for match in found if match]


def most_of(lines):
    """{unit: the highest rate of one core}, for arithmetic and for memory. The rate of memory is
    measured on the larger table, which fits no cache."""
    return {unit: float([line for line in lines if line[0].startswith(name)][-1][4]) for name, unit in (("peak", "GFLOP/s"), ("memory", "GB/s"))}


def peak_of_a_core(build):
    return most_of(kernel_lines(f"{build}/bench-kernels"))["GFLOP/s"]


def show_kernels(title, lines, most):
    """Prints a table with a row per kernel. A share of the memory's rate above 100 % means that the
    caches hold the tensors. The median stands for all samples but the shortest.

    @param most the highest rate, by name and unit"""
    rows = [Row("kernel", f"{name} {hidden}", "us", [float(least), float(median), float(median)],
                **{"rate": f"{rate} {unit}", "of the peak or memory": f"{100 * float(rate) / most(name, unit):.0f} %" if most(name, unit) else "?"})
            for name, hidden, least, median, rate, unit in lines]
    show(title, rows)
    return rows


def kernels(here):
    lines = kernel_lines(f"{here.build}/bench-kernels")
    most = most_of(lines)
    return show_kernels("kernels, one thread", lines, lambda _, unit: most[unit])


def kernels_on_gpu(bench):
    sizes = [size for _, hidden, _, seq, batch, _ in bench.models.values() for size in (hidden, seq, batch)]
    lines = kernel_lines(f"{bench.build}/bench-kernels-{bench.backend}", *sizes)
    stream = max(float(rate) for name, _, _, _, rate, _ in lines if name == "memory")

    def most(name, unit):
        last = name.split()[-1]
        return stream if unit == "GB/s" else 1e3 * bench.peak.get(last if last in gpu.AMPS else "off", 0)

    return show_kernels(f"kernels on {bench.description}, {gpu.IN_A_ROW} calls in a row", lines, most)


def collective_rows(program, ranks, through="", *most):
    on = f"{ranks} rank{'s' if ranks > 1 else ''}{through}"
    return [Row("collective", f"{name}, {size // 1024} KiB per rank, {on}", "us", samples)
            for (name, size), samples in steps.collectives(program, ranks, *most).items()]


def collectives(here):
    rows = [row for ranks in (2, 4) for row in collective_rows(f"{here.build}/bench-collectives", ranks)]
    show("collectives", rows)
    return rows


def collectives_on_gpu(bench):
    """Measures collectives: over MPI on two ranks, which may share a GPU; over NCCL on one rank,
    and on one rank per GPU."""
    rows = []
    for ranks, layout, through in ((2, "tp2", "MPI"), (1, "one rank nccl", "NCCL"), (gpu.count_of(), "tp2 nccl", "NCCL")):
        if layout in bench.layouts:
            # On the emulated GPU, large sizes would take seconds, so only 4 KiB is measured.
            program = f"{bench.build}/{bench.layouts[layout].program}".replace("/train-", "/bench-collectives-")
            rows += collective_rows(program, ranks, f" through {through}", *(["4096"] if bench.backend == "emulated" else []))
    show(f"collectives on {bench.description}", rows)
    return rows


# ---- tokenizers --------------------------------------------------------------------------------------------------------

HUGGING_FACE = "Hugging Face's tokenizers, one thread"
# (a tokenizer, the library beside it, how Python gets its encode() from a path)
TOKENIZERS = (("WordPiece", HUGGING_FACE, "from tokenizers import BertWordPieceTokenizer\nencode = BertWordPieceTokenizer(path, lowercase=True).encode_batch"),
              ("BPE", HUGGING_FACE, "from tokenizers import ByteLevelBPETokenizer\nimport glob\nfiles = sorted(glob.glob(path + '/*'), key="
                                    "lambda name: 'json' not in name)\nencode = ByteLevelBPETokenizer(*files).encode_batch"),
              ("SentencePiece", "SentencePiece, one thread",
               "from sentencepiece import SentencePieceProcessor\nencode = SentencePieceProcessor(model_file=path).encode"))
LEAST_LETTERS = 2_000_000


def seconds_of_children():
    """CPU seconds of all child processes. Other programs on the machine disturb them less than
    wall-clock time."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def rate_of_kit(build, vocabulary, text):
    """MB per second of build/tokenize."""
    with open(text, encoding="utf-8") as file:
        begin = seconds_of_children()
        said(f"{build}/tokenize", "--vocab", vocabulary, "--seq", 512, stdin=file)
    return os.path.getsize(text) / 1e6 / (seconds_of_children() - begin)


def rate_of_library(python, program, vocabulary, text):
    program = (f"import sys, time\npath = sys.argv[1]\n{program}\nlines = open(sys.argv[2]).read().splitlines()\n"
               "begin = time.process_time()\nencode(lines)\nprint(time.process_time() - begin)")
    return os.path.getsize(text) / 1e6 / float(said(python, "-c", program, vocabulary, text, env=dict(os.environ, RAYON_NUM_THREADS="1")))


def repeated(source, path):
    """Writes the lines of a text, repeated until they are long enough to measure."""
    with open(source, encoding="utf-8") as file:
        lines = [line.strip() + "\n" for line in file]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines * max(1, LEAST_LETTERS // sum(map(len, lines))))
    return path


def tokenizers(here):
    """Measures the kit's tokenizers on lines of a file, in turns with Hugging Face's and
    SentencePiece if the tests have installed these. Uses the real stories and the tokenizers of
    GPT-2 and LLaMA 2 if make data ONLY=stories has downloaded them."""
    real = [f"data/{name}" for name in ("tinystories/TinyStories-valid.txt", "gpt2", "llama2")]
    stories, gpt2, llama = real if all(map(os.path.exists, real)) else [f"data/stories/{name}" for name in ("train.txt", "gpt2", "llama")]
    python, cases = f"{here.build}/venv-tokenizers/bin/python", {}
    if not os.path.exists(python):
        print("tokenizer no rows for Hugging Face's tokenizers and SentencePiece: they are not installed\n"
              "  HINT: make run-tests-slow TESTS=real_tokenizers installs them", flush=True)
    texts = ("data/reviews/train.csv", "data/reviews/vocab.txt"), (stories, gpt2), (stories, f"{llama}/tokenizer.model")
    for (name, library, program), (source, vocabulary) in zip(TOKENIZERS, texts):
        text = repeated(source, f"{here.work}/{name}-text")
        cases[name] = {KIT: functools.partial(rate_of_kit, here.build, vocabulary, text)}
        if os.path.exists(python):
            cases[name][library] = functools.partial(rate_of_library, python, program, vocabulary, text)
    rows = rows_of(take_turns(cases, here.rounds), RATE, lambda name, who: aims.TOKENIZER).values()
    show("tokenizers; the kit's figures include its start and its output", rows)
    return list(rows)


# ---- verdicts ----------------------------------------------------------------------------------------------------------


def verdict(folder, number):
    """The seconds in which make grade compiles, links, launches and judges a lab whose files have been
    touched; or part 1, untouched.

    @param folder the lab's solution, or an empty text"""
    # An empty TRANSPORT means both transports in other sections, but make grade does not accept it.
    usual = {name: value for name, value in os.environ.items() if name != "TRANSPORT"}
    for name in os.listdir(folder) if folder else ():
        os.utime(f"{folder}/{name}")
    begin = time.perf_counter()
    said("make", "grade", *([f"LAB={number}"] if folder else []), "SOLUTION=1", env=usual)
    return time.perf_counter() - begin


def verdicts(here):
    labs = [name for name in sorted(os.listdir("solutions")) if name[:2].isdigit()]
    cases = {f"lab {int(name[:2])}": {KIT: functools.partial(verdict, f"solutions/{name}", int(name[:2]))} for name in labs}
    cases["part 1, nothing edited"] = {KIT: functools.partial(verdict, "", 0)}
    rows = [row for (_, _), row in rows_of(take_turns(cases, here.rounds), SECONDS).items()]
    for row in rows:
        row.notes = aims.most(row.median(), aims.VERDICT.get(row.name, aims.ANY_VERDICT))
    show("from an edit to a verdict", rows)
    return rows
