#!/usr/bin/env -S python3 -EsB
"""make bench: measures kernels, collectives, training steps, memory, generated texts, tokenizers,
and the time from an edit to a verdict, on this machine.

    bench.py BUILD      with ROUNDS=3 ONLY=section[/part of a name] VS=torch TORCH="python ..." SAVE=file COMPARE=file in the environment,
                        BACKEND=cuda TRANSPORT=mpi|nccl MODELS="layers hidden heads seq batch; ..." STEPS=12 PEAK="fp32 tf32 16-bit" for GPUs,
                        STEPS=300 DATA=file VOCAB=folder SEQ=128 BATCH_SIZE=2 for curves of ONLY=language

turns.py has the table of runs that every section fills. A missed target does not change the exit
status, because this is not a test.
"""
import os
import sys

import gpu
import hugging_face
import on_paper
import peers
import programs
import rows
import steps
import stories
import training
import output  # found through the path that rows.py extends
from rows import _, give_up, said
from turns import Here

# section: a function that measures it, prints tables and returns rows
ON_CPU = {"kernels": programs.kernels, "collectives": programs.collectives, "steps": None, "pipeline": on_paper.pipeline, "growth": on_paper.growth,
          "layouts": on_paper.layouts, "memory": on_paper.memory, "language": stories.measure, "transformers": hugging_face.measure_steps,
          "story": hugging_face.measure_story, "tokenizer": programs.tokenizers, "verdicts": programs.verdicts}
ON_GPU = ("kernels", "collectives", "steps")
BESIDE_TORCH = {"steps", "pipeline", "language", "transformers", "story"}
# section: a function that ends with an error if nothing is called like this part of ONLY
PARTS = {"language": stories.wanted, "transformers": hugging_face.wanted, "memory": on_paper.model_whose_memory, "growth": on_paper.axes_called}


def machine_lines(rounds):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return {"machine": f"{model}, {steps.cores()} cores", "compiler": said("gcc", "--version").splitlines()[0],
            "MPI": said("mpirun", "--version").splitlines()[0], "rounds": str(rounds)}


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
                _("ONLY is one of {names}, or a row such as steps/tp2").format(names=", ".join(name for name in ON_CPU if name in BESIDE_TORCH)))
    pythons = (given("TORCH") or "").split()
    return peers.find(build, pythons) if backend == "cpu" else peers.find_on_gpu(pythons)


def begin(rounds, pythons, **more):
    machine = {**machine_lines(rounds), **more}
    for name, value in [*machine.items(), *(("PyTorch", f"{version}, by {python}") for version, python in pythons.items())]:
        print(f"{name:<10}{value}")
    print(f"{'load':<10}{' '.join(f'{load:.2f}' for load in os.getloadavg())} before", flush=True)
    return machine


def measured(section, here, bench, cases):
    """Measures a section; returns its rows."""
    on_gpu = isinstance(bench, gpu.Bench)
    if section == "steps":
        bench.peak = bench.peak if on_gpu else programs.peak_of_a_core(here.build)
        return bench.measure(here, cases)
    if on_gpu:
        return {"kernels": programs.kernels_on_gpu, "collectives": programs.collectives_on_gpu}[section](bench)
    return ON_CPU[section](here)


def main():
    build, given, backend = sys.argv[1], os.environ.get, steps.backend()
    here = Here(build, f"{build}/bench-data", rows.whole_number("ROUNDS", 3, _("how many times each run is repeated")))
    # Reports every error in the settings before minutes of work.
    chosen, here.part = wanted(given("ONLY") or "", list(ON_CPU) if backend == "cpu" else ON_GPU)
    bench = training.Bench(build, here.work) if backend == "cpu" else gpu.Bench(build, here.work, backend, given("TRANSPORT") or "", given)
    amps = training.asked_for(given("AMP") or "", bench.amps)
    cases = bench.cases(here.part, amps) if "steps" in chosen else {}
    for section in set(chosen) & set(PARTS):
        PARTS[section](here.part)
    if given("COMPARE"):
        rows.load(given("COMPARE"))
    if given("SAVE"):
        output.make_room(given("SAVE"), rows.SAVED, [("COMPARE", given("COMPARE"))])
    here.pythons = torches(build, given, chosen, backend)
    steps.prepare(here.work)
    if backend != "cpu":
        bench.find(said(f"{build}/kernels-{backend}").strip())
    if "steps" in chosen:
        cases = bench.cases(here.part, training.those_that_run(bench.why_not, amps))
    machine = begin(here.rounds, here.pythons, **({"GPU": bench.description} if backend != "cpu" else {}))
    found = [row for section in chosen for row in measured(section, here, bench, cases)]
    if given("COMPARE"):
        rows.compare(given("COMPARE"), machine, found)
    if given("SAVE"):
        rows.save(given("SAVE"), machine, found)


if __name__ == "__main__":
    main()
