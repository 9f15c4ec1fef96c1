#!/usr/bin/env -S python3 -EsB
"""make bench: measures kernels, collectives, training steps, memory, generated texts, tokenizers,
and the time from an edit to a verdict, on this machine.

    bench.py BUILD      with ROUNDS=3 ONLY=section[/part of a name] VS=torch TORCH="python ..." SAVE=file COMPARE=file in the environment,
                        BACKEND=cuda TRANSPORT=mpi|nccl MODELS="layers hidden heads seq batch; ..." STEPS=12 PEAK="fp32 tf32 16-bit" for GPUs,
                        STEPS=300 DATA=file VOCAB=folder SEQ=128 BATCH_SIZE=2 for curves of ONLY=language

Runs that are compared alternate, so a change in the machine's speed affects all alike. A missed
target does not change the exit status, because this is not a test.
"""
import functools
import os
import re
import resource
import sys
import time

import aims
import gpu
import growth
import hugging_face
import memory
import peers
import pipeline
import rows
import steps
import stories
import traffic
import output  # found through the path that rows.py extends
from rows import Row, _, give_up, refuse, said, show, table

SECTIONS = ("kernels", "collectives", "steps", "pipeline", "growth", "layouts", "memory", "language", "transformers", "story", "tokenizer", "verdicts")
ON_GPU = SECTIONS[:3]
BESIDE_TORCH = {"steps", "pipeline", "language", "transformers", "story"}


def machine_lines(rounds):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return {"machine": f"{model}, {steps.cores()} cores", "compiler": said("gcc", "--version").splitlines()[0],
            "MPI": said("mpirun", "--version").splitlines()[0], "rounds": str(rounds)}


def kernel_lines(program, *sizes):
    """The output of bench-kernels: name, hidden, shortest and median time in us, rate and unit."""
    found = (re.match(r"(\S.*?)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+) (GFLOP/s|GB/s)$", line)
             for line in said(program, 1, *sizes).splitlines())
    return [match.groups() for match in found if match]


def most_of(lines):
    """{unit: the highest rate of one core}, for arithmetic and for memory. The rate of memory is
    measured on the larger table, which fits no cache."""
    return {unit: float([line for line in lines if line[0].startswith(name)][-1][4]) for name, unit in (("peak", "GFLOP/s"), ("memory", "GB/s"))}


def show_kernels(title, lines, most):
    """Prints a table with a row per kernel.

    @param most the highest rate, by name and unit"""
    def share(name, rate, unit):
        return f"{100 * float(rate) / most(name, unit):.0f} %" if most(name, unit) else "?"

    table(title, ["", "best us", "median us", "rate", "", "of the peak or memory"],
          [[f"{name} {hidden}", least, median, rate, unit, share(name, rate, unit)] for name, hidden, least, median, rate, unit in lines])
    return [Row("kernel", f"{name} {hidden}", "us", [float(least), float(median)]) for name, hidden, least, median, _, _ in lines]


def kernels(build):
    """Measures the kernels. A share of the memory's rate above 100 % means that the caches
    hold the tensors."""
    lines = kernel_lines(f"{build}/bench-kernels")
    most = most_of(lines)
    return show_kernels("kernels, one thread", lines, lambda _, unit: most[unit])


def collective_rows(program, ranks, through, *most):
    on = f"{ranks} rank{'s' if ranks > 1 else ''}{through}"
    return [Row("collective", f"{name}, {size // 1024} KiB per rank, {on}", "us", samples)
            for (name, size), samples in steps.collectives(program, ranks, *most).items()]


def collectives(build):
    found = [row for ranks in (2, 4) for row in collective_rows(f"{build}/bench-collectives", ranks, "")]
    show("collectives", found)
    return found


def kernels_on_gpu(bench):
    sizes = [size for _, hidden, _, seq, batch, _ in bench.models.values() for size in (hidden, seq, batch)]
    lines = kernel_lines(f"{bench.build}/bench-kernels-{bench.backend}", *sizes)
    stream = max(float(rate) for name, _, _, _, rate, _ in lines if name == "memory")

    def most(name, unit):
        last = name.split()[-1]
        return stream if unit == "GB/s" else 1e3 * bench.peak.get(last if last in gpu.AMPS else "off", 0)

    return show_kernels(f"kernels on {bench.description}, {gpu.IN_A_ROW} calls in a row", lines, most)


def collectives_on_gpu(bench):
    """Measures collectives: over MPI on two ranks, which may share a GPU; over NCCL on one rank,
    and on one rank per GPU."""
    found = []
    for ranks, layout, through in ((2, "tp2", "MPI"), (1, "one rank nccl", "NCCL"), (gpu.count_of(), "tp2 nccl", "NCCL")):
        if layout in bench.layouts:
            # On the emulated GPU, large sizes would take seconds, so only 4 KiB is measured.
            program = bench.program(layout).replace("/train-", "/bench-collectives-")
            found += collective_rows(program, ranks, f" through {through}", *(["4096"] if bench.backend == "emulated" else []))
    show(f"collectives on {bench.description}", found)
    return found


def steps_on_gpu(bench, rounds, pythons, cases):
    found = bench.measure(rounds, pythons, cases)
    return bench.show(cases, found) + bench.show_idle(cases)


def training_steps(build, work, rounds, pythons, cases):
    found = steps.measure(build, work, rounds, pythons, cases)
    measured = steps.show_steps(found, most_of(kernel_lines(f"{build}/bench-kernels"))["GFLOP/s"])
    steps.show_profiles(found)
    return measured


def tokenizers(build, work, rounds):
    """Measures the kit's tokenizers on lines of a file, alternating with Hugging Face's and
    SentencePiece if the tests have installed these. Uses the real stories and the tokenizers of
    GPT-2 and LLaMA 2 if make data ONLY=stories has downloaded them."""
    real = [f"data/{name}" for name in ("tinystories/TinyStories-valid.txt", "gpt2", "llama2")]
    real = real if all(map(os.path.exists, real)) else [f"data/stories/{name}" for name in ("train.txt", "gpt2", "llama")]
    wordpiece, bpe, pieces = ("from tokenizers import BertWordPieceTokenizer\nencode = BertWordPieceTokenizer(path, lowercase=True).encode_batch",
                              "from tokenizers import ByteLevelBPETokenizer\nimport glob\nfiles = sorted(glob.glob(path + '/*'), key="
                              "lambda name: 'json' not in name)\nencode = ByteLevelBPETokenizer(*files).encode_batch",
                              "from sentencepiece import SentencePieceProcessor\nencode = SentencePieceProcessor(model_file=path).encode")
    found = []
    if not os.path.exists(f"{build}/venv-tokenizers/bin/python"):
        print("tokenizer no rows for Hugging Face's tokenizers and SentencePiece: they are not installed\n"
              "  HINT: make run-tests-slow TESTS=real_tokenizers installs them", flush=True)
    for name, text, path, library, program in (
            ("WordPiece", "data/reviews/train.csv", "data/reviews/vocab.txt", "Hugging Face's tokenizers", wordpiece),
            ("BPE", real[0], real[1], "Hugging Face's tokenizers", bpe),
            ("SentencePiece", real[0], f"{real[2]}/tokenizer.model", "SentencePiece", pieces)):
        found += tokenizer_rows(build, work, rounds, name, text, path, library, program)
    show("tokenizers", found, "times", "target", "")
    return found


def seconds_of_children():
    """CPU seconds of all child processes. Other programs on the machine disturb them less than
    wall-clock time."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def tokenizer_rows(build, work, rounds, name, text, path, library, program):
    with open(text, encoding="utf-8") as file:
        lines = [line.strip() + "\n" for line in file]
    lines *= max(1, 2_000_000 // sum(map(len, lines)))
    texts, size = os.path.join(work, "texts"), sum(len(line.encode()) for line in lines) / 1e6
    with open(texts, "w", encoding="utf-8") as file:
        file.writelines(lines)
    program = (f"import sys, time\npath = sys.argv[1]\n{program}\nlines = open(sys.argv[2]).read().splitlines()\n"
               "begin = time.process_time()\nencode(lines)\nprint(time.process_time() - begin)")
    other, mine, its = f"{build}/venv-tokenizers/bin/python", [], []
    for _ in range(rounds):
        with open(texts, encoding="utf-8") as file:
            begin = seconds_of_children()
            said(f"{build}/tokenize", "--vocab", path, "--seq", 512, stdin=file)
        mine.append(size / (seconds_of_children() - begin))
        if os.path.exists(other):
            seconds = said(other, "-c", program, path, texts, env=dict(os.environ, RAYON_NUM_THREADS="1"))
            its.append(size / float(seconds))
    found = [Row("tokenizer", f"{name}, build/tokenize, start and output included", "MB/s", mine, lower=False)]
    if its:
        found.append(Row("tokenizer", f"{name}, {library}, one thread", "MB/s", its, lower=False))
        times = found[0].median() / found[1].median()
        found[0].notes = {"times": f"{times:.2f}", "target": aims.TOKENIZER, "": aims.judged(times >= aims.TOKENIZER)}
    return found


def verdicts(rounds):
    """Touches each lab's solution and grades it: compiles, links, launches, judges."""
    labs = [(int(name[:2]), name) for name in sorted(os.listdir("solutions")) if name[:2].isdigit()]
    times = {number: [] for number, _ in labs}
    everything = []
    # An empty TRANSPORT means both transports in other sections, but make grade does not accept it.
    usual = {name: value for name, value in os.environ.items() if name != "TRANSPORT"}
    for _ in range(rounds):
        for number, folder in labs:
            for name in os.listdir(f"solutions/{folder}"):
                os.utime(f"solutions/{folder}/{name}")
            begin = time.perf_counter()
            said("make", "grade", f"LAB={number}", "SOLUTION=1", env=usual)
            times[number].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        said("make", "grade", "SOLUTION=1", env=usual)
        everything.append(time.perf_counter() - begin)
    found = [Row("verdict", f"lab {number}", "s", values) for number, values in times.items()]
    found.append(Row("verdict", "part 1, nothing edited", "s", everything))
    for row in found:
        aim = aims.VERDICT.get(row.name, aims.ANY_VERDICT)
        row.notes = {"target": aim, "": aims.judged(row.median() <= aim)}
    show("from an edit to a verdict", found, "target", "")
    return found


def wanted(only, sections):
    section, part = only.partition("/")[::2]
    if section and section not in sections:
        give_up((_("there is no section '{name}' on a GPU") if sections is ON_GPU else _("there is no section '{name}'")).format(name=section),
                _("ONLY is one of {names}, or a row such as steps/tp2").format(names=", ".join(sections)))
    return [section] if section else list(sections), part


def torches(build, given, chosen, backend):
    """{version: its Python}"""
    if not given("VS"):
        return {}
    if given("VS") != "torch":
        give_up(_("there is nothing called '{name}' to compare with").format(name=given("VS")), "VS=torch")
    if not BESIDE_TORCH & set(chosen):
        give_up(_("PyTorch is compared in training steps and texts, and ONLY={section} has none").format(section=chosen[0]),
                _("ONLY is one of {names}, or a row such as steps/tp2").format(names=", ".join(name for name in SECTIONS if name in BESIDE_TORCH)))
    pythons = (given("TORCH") or "").split()
    return peers.find(build, pythons) if backend == "cpu" else peers.find_on_gpu(pythons)


def asked_for(amp, amps):
    if amp and amp not in amps:
        refuse("AMP", amp, _("{values}; without it all are measured").format(values=rows.either("AMP", amps)))
    return (amp,) if amp else amps


def those_that_run(why_not, amps):
    """The AMP settings in which this machine trains. If a single one was requested and does not
    train, ends with an error.

    @param why_not returns why an AMP setting does not train, or an empty text"""
    found = {amp: why_not(amp) if amp != "off" else "" for amp in amps}
    if len(amps) == 1 and found[amps[0]]:
        give_up(_("AMP={amp} does not run here: {why}").format(amp=amps[0], why=found[amps[0]]), _("make doctor says what is missing; AMP=off"))
    for amp, why in found.items():
        if why:
            print(f"AMP       no rows for {amp}: {why}")
    return tuple(amp for amp, why in found.items() if not why)


def begin(rounds, pythons, **more):
    machine = {**machine_lines(rounds), **more}
    for name, value in [*machine.items(), *(("PyTorch", f"{version}, by {python}") for version, python in pythons.items())]:
        print(f"{name:<10}{value}")
    print(f"{'load':<10}{' '.join(f'{load:.2f}' for load in os.getloadavg())} before", flush=True)
    return machine


def sections_of(bench, build, work, rounds, pythons, part, cases):
    """{section: a function that measures it, prints tables and returns rows}.

    @param bench a gpu.Bench, or None"""
    if bench:
        return {"kernels": lambda: kernels_on_gpu(bench),
                "collectives": lambda: collectives_on_gpu(bench),
                "steps": lambda: steps_on_gpu(bench, rounds, pythons, cases)}
    return {"kernels": lambda: kernels(build),
            "collectives": lambda: collectives(build),
            "steps": lambda: training_steps(build, work, rounds, pythons, cases),
            "pipeline": lambda: pipeline.measure(build, work, rounds, pythons),
            "growth": lambda: growth.measure(build, work, rounds, part),
            "layouts": lambda: traffic.measure(build, work),
            "memory": lambda: memory.measure(build, work, part),
            "language": lambda: stories.measure(build, work, rounds, pythons, part),
            "transformers": lambda: hugging_face.measure_steps(build, work, rounds, pythons, part),
            "story": lambda: hugging_face.measure_story(build, work, rounds, pythons),
            "tokenizer": lambda: tokenizers(build, work, rounds),
            "verdicts": lambda: verdicts(rounds)}


def main():
    build, given, backend = sys.argv[1], os.environ.get, steps.backend()
    work = f"{build}/bench-data"
    rounds = rows.whole_number("ROUNDS", 3, _("how many times each run is repeated"))
    # Reports every error in the settings before minutes of work.
    chosen, part = wanted(given("ONLY") or "", SECTIONS if backend == "cpu" else ON_GPU)
    amps = asked_for(given("AMP") or "", steps.AMPS if backend == "cpu" else gpu.AMPS)
    bench, cases_of, why_not = None, steps.wanted, functools.partial(steps.why_no, build, work)
    if backend != "cpu":
        bench = gpu.Bench(build, work, backend, given("TRANSPORT") or "", given)
        cases_of, why_not = bench.cases, bench.why_not
    cases = cases_of(part, amps) if "steps" in chosen else {}
    if "language" in chosen:
        stories.wanted(part)
    if "transformers" in chosen:
        hugging_face.wanted(part)
    if "memory" in chosen:
        memory.wanted(part)
    if given("COMPARE"):
        rows.load(given("COMPARE"))
    if given("SAVE"):
        output.make_room(given("SAVE"), rows.SAVED, [("COMPARE", given("COMPARE"))])
    pythons = torches(build, given, chosen, backend)
    steps.prepare(work)
    if bench:
        bench.find(said(f"{build}/kernels-{backend}").strip())
    if "steps" in chosen:
        cases = cases_of(part, those_that_run(why_not, amps))
    machine = begin(rounds, pythons, **({"GPU": bench.description} if bench else {}))
    run = sections_of(bench, build, work, rounds, pythons, part, cases)
    measured = [row for section in chosen for row in run[section]()]
    if given("COMPARE"):
        rows.compare(given("COMPARE"), machine, measured)
    if given("SAVE"):
        rows.save(given("SAVE"), machine, measured)


if __name__ == "__main__":
    main()
