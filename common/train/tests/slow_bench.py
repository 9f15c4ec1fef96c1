#!/usr/bin/env python3
"""make bench: its errors, the file of SAVE, and the differences that COMPARE reports. The test
checks no times."""
import contextlib
import functools
import io
import json
import math
import os
import re
import shutil
import unittest.mock

import measuring
from measuring import BUILD, check
import aims
import dry
import hugging_face
import on_paper
import peers
import programs
import rows
import steps
import stories
import training
import turns
import windows

refused = functools.partial(measuring.refused, "common/bench/bench.py")

refused("a section that does not exist is refused", "'kernel'", ONLY="kernel")
refused("ROUNDS that is not a number is refused", "'many'", ROUNDS="many")
refused("an unknown VS is refused", "'jax'", VS="jax")
refused("a training step that does not exist is refused", "'2x127 tp2'", ONLY="steps/2x127 tp2")
refused("a Python without PyTorch is refused before anything is measured", "no-torch has no PyTorch", ONLY="steps/2x128 tp2", VS="torch",
        TORCH=os.path.join(BUILD, "no-torch"))
refused("SAVE in a missing folder is refused before anything is measured", "no folder none", SAVE="none/kept.json")
refused("an unknown AMP is refused", "'fp16'", AMP="fp16")
refused("VS=torch is refused if no step is measured", "ONLY=kernels", ONLY="kernels", VS="torch")
refused("a layout of the LLaMA that does not exist is refused", "'tp3'", ONLY="language/tp3")
refused("a model whose memory is not measured is refused", "'huge'", ONLY="memory/huge")
refused("a curve that is too short to compare with PyTorch's is refused", "STEPS=9 is too short", ONLY="language", STEPS="9", VS="torch")
refused("a curve of no steps is refused", "STEPS cannot be '0'", ONLY="language", STEPS="0")
refused("a curve of no windows is refused", "BATCH_SIZE cannot be '0'", ONLY="language", STEPS="12", BATCH_SIZE="0")
refused("a model beside transformers that does not exist is refused", "'bert'", ONLY="transformers/bert")
refused("a missing COMPARE file is refused before anything is measured", "No such file", COMPARE="none/kept.json")

with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.suppress(SystemExit):
    rows.said("false", "", "two words")
check("the command that failed is shown so that a shell runs the same", "false '' 'two words'" in said.getvalue(), said.getvalue())

work = os.path.join(BUILD, "bench-test")
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
kept = os.path.join(work, "kept.json")


def row(name, values, lower=True):
    return rows.Row("step", name, "ms", values, lower=lower)


rows.save(kept, {"machine": "a"}, [row("slower", [10, 11]), row("faster", [10, 11]), row("noisy", [10, 15]), row("rate", [10, 11], False)])
with contextlib.redirect_stdout(io.StringIO()) as said:
    rows.compare(kept, {"machine": "a"}, [row("slower", [12, 13]), row("faster", [8, 9]), row("noisy", [14, 19]), row("rate", [12, 13], False),
                                          row("new", [1])])
lines = {line.split()[1]: line for line in said.getvalue().splitlines() if line.startswith("  step:")}
check("a figure whose range is above is worse, below is better, and with overlapping ranges neither",
      lines["slower"].endswith("worse") and lines["faster"].endswith("better") and lines["noisy"].endswith("%"), said.getvalue())
with contextlib.redirect_stdout(io.StringIO()) as blurred:
    rows.compare(kept, {"machine": "a"}, [rows.Row("step", "slower", "ms", [values], blur=0.02) for values in (11.2, 11.3, 9.9, 9.7)])
check("a blurred figure that is out of range by less than its blur is no difference", [line.split()[-1] for line in
      blurred.getvalue().splitlines()[3:]] == ["%", "worse", "%", "better"], blurred.getvalue())
check("a higher rate is better", lines["rate"].endswith("better"), said.getvalue())
check("a row that was not measured before is not compared", "new" not in lines, said.getvalue())
try:
    rows.save(os.path.join(work, "none", "kept.json"), {}, [])
    check("a file that cannot be written is an error", False, "nothing was said")
except SystemExit as end:
    check("a file that cannot be written is an error", end.code == 2 and os.listdir(work) == ["kept.json"], os.listdir(work))
with open(os.path.join(work, "notes"), "w", encoding="utf-8") as file:
    file.write("notes")
for wrong, others in ("notes", []), ("kept.json", [("COMPARE", f"{work}/./kept.json")]):
    try:
        rows.output.make_room(os.path.join(work, wrong), rows.SAVED, others)
        check(f"SAVE={wrong} is refused", False, "nothing was said")
    except SystemExit as end:
        check(f"SAVE={wrong} is refused", end.code == 2)
rows.output.make_room(kept, rows.SAVED)
os.unlink(os.path.join(work, "notes"))
with open(kept, encoding="utf-8") as file:
    check("SAVE keeps every value", json.load(file)["rows"][2]["values"] == [10, 15])

for wrong, (why, text) in {"no JSON": ("line 1 is not JSON", "ms"), "no text": ("it is not a text", "\xff"), "a list": ("", "[]"),
                           "no rows": ("'rows' is missing", '{"machine": {}}'), "a row without numbers": ("a row has no numbers", json.dumps(
        {"machine": {}, "rows": [{"section": "step", "name": "a", "unit": "ms", "values": [], "lower": True}]}))}.items():
    with open(os.path.join(work, "bad.json"), "w", encoding="latin-1") as file:
        file.write(text)
    refused(f"a COMPARE file with bad content ({wrong}) is refused before anything is measured", f"bad.json holds no measurements: {why}", COMPARE=os.path.join(work, "bad.json"))
with contextlib.redirect_stdout(io.StringIO()) as said:
    rows.compare(kept, {"machine": "a"}, [row("new", [1])])
check("a COMPARE file without any measured row is reported", "none of the rows measured" in said.getvalue(), said.getvalue())

bench = training.Bench(BUILD, work)


def wanted(words, amps=steps.AMPS):
    return bench.cases(words, amps)


# Words select rows; each comma-separated part adds the rows that have all of its words.
for words, names in {"base tp2": ["base tp2", "base tp2 bf16"], "2x2 base-512 bf16, 2x128 serial": ["2x128 serial", "2x128 serial bf16", "base-512 2x2 bf16"],
                     "base serial threads": ["base serial 2 threads", "base serial 2 threads bf16"]}.items():
    check(f"'{words}' selects the rows with these words", list(wanted(words)) == names, list(wanted(words)))
check("AMP=off leaves out bf16, and AMP=bf16 everything else", [len(wanted("serial", amps)) for amps in (("off",), ("bf16",), steps.AMPS)]
      == [8, 8, 16], wanted("serial", ("bf16",)))
with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as complained:
    left = training.those_that_run(lambda amp: "error: no oneDNN", steps.AMPS)
    try:
        ended = training.those_that_run(lambda amp: "error: no oneDNN", ("bf16",))
    except SystemExit as end:
        ended = end.code
check("rows for bf16 are left out, with a message, if it does not run", left == ("off",) and "no oneDNN" in said.getvalue(), said.getvalue())
check("AMP=bf16 is refused if it does not run", ended == 2 and "no oneDNN" in complained.getvalue(), (ended, complained.getvalue()))
check("every target belongs to a row", set(aims.RATIOS) | set(aims.PER_CENT_OF_PEAK) | set(aims.MEGABYTES) | set(aims.SPEED_UP) <= set(wanted("")),
      list(wanted("")))


def fake_torch(version, seconds, resident):
    """A fake Python that reports these figures as PyTorch's."""
    path = os.path.join(work, f"fake-torch-{version}")
    said = json.dumps({"torch": version, "seconds": [9, 9, seconds, seconds], "resident_bytes": resident, "imported_bytes": 5e6})
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho \"$*\" >> {path}.calls\ncase $1 in -c) echo {version} ;; *) echo '{said}' ;; esac\n")
    os.chmod(path, 0o755)
    return path


def lines_of(shown, title):
    """The rows of the table with this title, by the words of two columns."""
    after = shown.partition(f"\n{title}")[2].partition("\n\n")[0].splitlines()[2:]
    return {tuple(re.split(r"  +", line.strip())[:2]): re.split(r"  +", line.strip()) for line in after}


found = peers.find(BUILD, [fake_torch("1.13-fake", 0.021, 2e9), fake_torch("2.99-fake", 0.009, 1e6)])
check("each Python of TORCH= is asked for its version", list(found) == ["1.13-fake", "2.99-fake"], found)
kit = {"seconds": [9, 9, 0.01, 0.01], "resident_bytes": 1e8, "tensor_bytes": 5e7, "profile": [
    {"what": what, "forward_ms": 1, "backward_ms": 1} for what in ("linear", "attention", "gelu", "optimiser", dry.SENT[-1], dry.WAITED)]}
noisy = dict(kit, seconds=[9, 9, 0.01, 0.011], profile=[{"what": "gelu", "forward_ms": 90, "backward_ms": 90}])
once = iter([kit] * 4 + [noisy] * 4)
bench.peak = 250.0
with unittest.mock.patch.object(bench, "run", lambda *_: next(once)), contextlib.redirect_stdout(io.StringIO()) as said:
    kept_rows = bench.measure(turns.Here(BUILD, work, 2, found), wanted("2x128 serial,2x128 dp2,base serial,base tp2", ("off",)))
shown = lines_of(said.getvalue(), "training step")
peer = {key[0]: line for key, line in shown.items() if "PyTorch" in key[0]}
check("PyTorch's ratio is shown with its target, and marked as missed if it is below", all(words in " ".join(peer[key]) for key, words in {
    "2x128 serial, PyTorch 1.13-fake eager": "2.10 2.10 2.2 missed", "2x128 serial, PyTorch 2.99-fake compiled": "0.90 0.90 1 missed"}.items()), said.getvalue())
check("PyTorch runs eager and, from version 2 on, compiled", [who for who in peer if who.startswith("base tp2,")]
      == [f"base tp2, PyTorch {who}" for who in ("1.13-fake eager", "2.99-fake eager", "2.99-fake compiled")], said.getvalue())
check("a ratio without a target, or above it, is not marked", not any("missed" in cell for who in ("2x128 dp2", "base tp2")
      for cell in peer[f"{who}, PyTorch 1.13-fake eager"]), said.getvalue())
check("more memory than PyTorch's is marked as missed", sum("missed" in cell for cell in peer["base tp2, PyTorch 2.99-fake eager"]) == 2, said.getvalue())
alone = {" ".join(key): line for key, line in lines_of(said.getvalue(), "targets of the step alone").items()}
check("two ranks as fast as one miss their target", any("as fast as one rank" in key and line[-1] == "missed" for key, line in alone.items())
      and any("per rank" in key and line[-1] != "missed" for key, line in alone.items()), said.getvalue())
spent = list(lines_of(said.getvalue(), "where the time goes").values())
check("each kind of work, waiting included, has its share of the fastest run's profile", ["base tp2", "12", *["16.7 %"] * 6, "-"] in spent, said.getvalue())
check("with replicas, the exposed part of the reduction is shown", ["2x128 dp2", "12", *["16.7 %"] * 6, "2"] in spent, said.getvalue())
check("rows with PyTorch's times and with the memory are stored", {"step: base tp2", "step: base tp2, PyTorch 1.13-fake eager", "memory: base tp2, per rank"}
      <= {one.key() for one in kept_rows} and len(kept_rows) == 4 * 5, [one.key() for one in kept_rows])
check("memory has a blur of one per cent", {one.section for one in kept_rows if one.blur == 0.01} == {"memory"}, [vars(one) for one in kept_rows])

asked = []
with unittest.mock.patch.object(bench, "run", lambda case: asked.append(case)), unittest.mock.patch.object(bench, "show"):
    bench.measure(turns.Here(BUILD, work, 1, found), wanted("6x256 dp2"))
with open(found["2.99-fake"] + ".calls", encoding="utf-8") as file:
    told = [line.split()[1:] for line in file][-4:]
sizes = [str(size) for size in (2, 1, *training.MODELS["6x256"], 1, steps.VOCABULARY)]
check("the kit and PyTorch get the same layout, sizes and AMP", asked == [training.Case("6x256", "dp2", amp) for amp in steps.AMPS]
      and told == [[*sizes, amp, f"cpu-{how}"] for amp in steps.AMPS for how in ("eager", "compiled")], (asked, told))

ran = []


def fake_pipeline(program, micro, schedule):
    """Records the program, the number of micro-batches and the schedule of a run."""
    ran.append((program, micro, schedule))
    rank = {"peak": dict.fromkeys(on_paper.STATE, 4e6 / 3), "peak_bytes": 1e7, "resident_bytes": 2e7}
    return {"seconds": [9, 9, 0.01], **({"ranks": [rank] * 2} if program == "kit" else {"resident_bytes": [3e7] * 2, "imported_bytes": [1e7] * 2})}


with unittest.mock.patch.multiple(on_paper, stages_of_kit=lambda _, *shape: fake_pipeline("kit", *shape), stages_of_torch=fake_pipeline, train=lambda *_: kit), \
        contextlib.redirect_stdout(io.StringIO()) as said:
    measured = [one.name for one in on_paper.pipeline(turns.Here(BUILD, work, 1, {"2.99-fake": found["2.99-fake"]}))]
few = [case for case in ran if case[1] < on_paper.STAGES]
check("with fewer micro-batches than stages, PyTorch runs GPipe only: its 1F1B refuses them, and the output says so",
      few == [("kit", 1, "gpipe"), (found["2.99-fake"], 1, "gpipe"), ("kit", 1, "1f1b")]
      and "\n  PyTorch's 1F1B refuses" in said.getvalue(), (few, said.getvalue()))
check("of each stage's memory it says what every schedule holds: weights, gradients and the optimiser's",
      re.search(r"^  gpipe, m = 8 .* 4 4 +10 10 +20 20$", said.getvalue(), re.M), said.getvalue())
check("with as many or more, it runs both", len(ran) == 8 + 7 and len(measured) == len(set(measured)) == 8 + 7, (ran, measured))

training.MODELS["tiny"] = (1, 96, 2, 16, 4, 4)  # small enough that only some table rows are sent
steps.write_data(work)
run = bench.run(training.Case("tiny", "2x2", "off"))
check("a step is profiled, and its memory reported", len(run["seconds"]) == 4 and run["resident_bytes"] > run["tensor_bytes"] > 0
      and {"linear", "attention", "optimiser", dry.WAITED, *dry.SENT} <= {one["what"] for one in run["profile"]}, run)
for python in (peers.DISTRIBUTION, f"{BUILD}/venv-torch/bin/python"):
    version, trouble = peers.version_of(python)
    for amp, (_, where) in ((amp, other) for amp in ("off", "bf16") for other in peers.on_cpu({version or "2": python}).values()):
        sentence = f"the PyTorch of {os.path.relpath(python, BUILD) if BUILD in python else python} takes the same steps on 2x2, {where}, AMP={amp}"
        if not version:
            print(f"skip - {sentence}: {trouble}")
            continue
        its = peers.step(python, training.MODELS["tiny"], training.LAYOUTS["2x2"], amp, where)
        check(sentence, its["torch"] == version and len(its["seconds"]) == 4 and its["resident_bytes"] >= its["imported_bytes"] > 1e7, its)
# A small LLaMA on the padded vocabulary of 32,000 tokens.
small = {"LLAMA": (2, 32, 2, 32), "SIZES": (2, 32, 2, 32, stories.ROWS), "CURVE": (2, 32, 2, 32, 2)}
check("the rows of a step are those that the kit draws (common/data/tests/test_batch.c)", windows.permutation(10, 1, 0) == [6, 2, 1, 5, 9, 0, 4, 8, 3, 7]
      and windows.batches(5, 2, 3) == [windows.permutation(5, 1, 0)[:2], windows.permutation(5, 1, 0)[2:4], windows.permutation(5, 1, 1)[:2]])
pythons = {version: python for python in (peers.DISTRIBUTION, f"{BUILD}/venv-torch/bin/python") for version, _ in [peers.version_of(python)] if version}
with unittest.mock.patch.multiple(stories, **small), contextlib.redirect_stdout(io.StringIO()) as said:
    kept_rows = stories.measure(turns.Here(BUILD, work, 1, pythons))
    with unittest.mock.patch.dict(os.environ, STEPS="12", SEQ="24", BATCH_SIZE="4"):
        drawn = stories.measure(turns.Here(BUILD, work, 1, pythons))
check("a LLaMA's step is measured on one rank, tp 2 and dp 2" + (", and PyTorch's losses are the kit's" if pythons else ""),
      [one.name for one in kept_rows if one.section == "language"] ==
      [f"LLaMA {layout}{who}" for layout in ("serial", "tp2", "dp2") for who in ("", *(f", PyTorch {version}" for version in pythons))], said.getvalue())
curve = {key[0].removeprefix("LLaMA "): [*line[:1], *line[4:7]] for key, line in lines_of(said.getvalue(), "12 steps of the LLaMA").items()}
check("SEQ and BATCH_SIZE choose the windows of a curve", "4 windows of 24 tokens" in said.getvalue(), said.getvalue())
check("the LLaMA's loss curves fall and agree, also in PyTorch", len(drawn) == len(curve) == 5 + len(pythons) and
      list(curve) == ["serial", *(f"serial, PyTorch {version}" for version in pythons), "serial, moved", "tp2", "dp2", "pp2"] and
      all(10 < float(line[1]) and float(line[2]) < float(line[1]) and float(line[3]) < 1e-5 for line in curve.values()), said.getvalue())
# The same small models beside transformers, which the fake Python cannot import.
with_library = {version: library for version, python in pythons.items() if (library := peers.version_of(python, module="transformers")[0])}
have_library = {version: pythons[version] for version in with_library}
without = os.path.join(work, "without-transformers")
with open(without, "w", encoding="utf-8") as file:
    file.write("#!/bin/sh\ncase $2 in *transformers*) echo 'no transformers' >&2; exit 1 ;; esac\necho 2.98-fake\n")
os.chmod(without, 0o755)
# A fake Python whose pip installs everything but transformers.
fake_pip = os.path.join(work, "fake-pip")
with open(fake_pip, "w", encoding="utf-8") as file:
    file.write('#!/bin/sh\ncase $* in *" venv "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;; *transformers*) echo unreachable >&2; exit 1 ;; *import*) echo 2.97-fake ;; esac\n')
os.chmod(fake_pip, 0o755)
with unittest.mock.patch.object(peers.sys, "executable", fake_pip), unittest.mock.patch.object(peers, "DISTRIBUTION", "none"), \
        contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as complained:
    try:
        installed = peers.find(work, [])
    except SystemExit:
        installed = {}
check("PyTorch is installed even if transformers cannot be (a fake pip)", list(installed) == ["2.97-fake"], said.getvalue() + complained.getvalue())
check("pip's last line says why", said.getvalue().count("transformers cannot be installed: unreachable\n") == 1, said.getvalue())
with contextlib.redirect_stdout(io.StringIO()) as said:
    left = hugging_face.with_transformers(installed)
check("and only the rows beside transformers say that it is missing, with a hint", not left and said.getvalue().count("\n") == 2 and
      "no rows for 2.97-fake: it has no transformers\n  HINT: " in said.getvalue(), said.getvalue())
with unittest.mock.patch.multiple(stories, **small), unittest.mock.patch.multiple(hugging_face, LENGTH=12, TAUGHT=5), \
        contextlib.redirect_stdout(io.StringIO()) as said:
    here = turns.Here(BUILD, work, 1, {**have_library, "2.98-fake": without})
    kept_rows = [one for one in hugging_face.measure_steps(here) + hugging_face.measure_story(here) if one.section != "memory"]
check("a GPT-2's step, a LLaMA's and a text are measured" + (" beside transformers', with the same losses and the same tokens" if with_library else ""),
      [one.name for one in kept_rows] == [
          f"{kind} serial{who}" for kind, hows in (("GPT-2", (" eager", " compiled")), ("LLaMA", (" eager", " compiled")), ("LLaMA", ("",)))
          for who in ("", *(f", PyTorch {version} with transformers {library}{how}" for version, library in with_library.items() for how in hows))]
      and all(min(one.values) > 0 for one in kept_rows), said.getvalue())
with unittest.mock.patch.multiple(hugging_face, taught=lambda *_: "data/stories/llama", of_kit=lambda *_: (2.0, f"{hugging_face.PROMPT} there was\n")), \
        contextlib.redirect_stdout(io.StringIO()):
    tokens = [2 * one.values[0] for one in hugging_face.measure_story(turns.Here(BUILD, work))]
texts = [hugging_face.ids_of(BUILD, "data/stories/llama", hugging_face.PROMPT + more) for more in ("", " there was")]
check("of a text that ends early, the tokens that were written are counted", tokens == [len(texts[1]) - len(texts[0])] and 0 < tokens[0] < 20, (tokens, texts))
check("a PyTorch without transformers has no rows, and a hint says what to install",
      said.getvalue().count("no rows for 2.98-fake: it has no transformers\n  HINT: ") == 2, said.getvalue())
with unittest.mock.patch.object(programs, "rate_of_kit", lambda *_: 1.0), contextlib.redirect_stdout(io.StringIO()) as said:
    programs.tokenizers(turns.Here(os.path.join(work, "none"), work))
check("without Hugging Face's tokenizers and SentencePiece, a hint says how to install them", "\n  HINT: " in said.getvalue(), said.getvalue())
with contextlib.redirect_stderr(io.StringIO()) as complained:
    try:
        ended = hugging_face.same_text(BUILD, "data/stories/llama", "Once", [3], "2.99")
    except SystemExit as end:
        ended = end.code
check("a different text from the library ends the comparison", ended == 2 and "HINT: " in complained.getvalue(), complained.getvalue())
with contextlib.redirect_stderr(io.StringIO()) as complained:
    ended = []
    for its in ([3.0] * 9 + [3.1], [3.0] * 9, [float("nan")] * 10):
        try:
            stories.must_agree("serial", "PyTorch 2.99", {"losses": [3.0] * 12}, {"losses": its})
        except SystemExit as end:
            ended.append(end.code)
check("other losses, too few and NaN end the comparison", ended == [2, 2, 2] and complained.getvalue().count("HINT: ") == 3, complained.getvalue())

# If the measured steps equal the predicted cost exactly, the fit returns that cost.
middle, link = on_paper.model_of(), on_paper.pace.Link(0, 1)
cluster = on_paper.pace.Cluster(gemm=2e11, attention=1e11, stream=2e10, optimiser=3e10, near=link, far=link)
work_of = steps.work_of_step(middle)
in_gemm, in_norms = work_of["GEMM"] / cluster.gemm, work_of["on x"] / cluster.stream
parts = on_paper.pace.step(cluster, middle, 1, 1)
fitted = on_paper.rates_in(middle, [{"profile": [{"what": what, "forward_ms": 1e3 * seconds, "backward_ms": 0} for what, seconds in
                                                 (("linear", in_gemm), ("attention", parts["compute"] - in_gemm), ("optimiser", parts["optimiser"]),
                                                  ("layer_norm", in_norms), ("gelu", parts["element-wise"] - in_norms))]}])
check("calibrated rates equal the profile's", all(abs(getattr(fitted, name) / getattr(cluster, name) - 1) < 1e-9
                                                    for name in ("gemm", "attention", "stream", "optimiser"))
      and abs(fitted.activation / cluster.stream - 1) < 1e-9, fitted)
check("a figure that doubles with a size grows with its first power, one that quadruples with its second",
      on_paper.powers([1, 2, 4], [3, 6, 24]) == ["", "1.00", "2.00"], on_paper.powers([1, 2, 4], [3, 6, 24]))
spent = sum(one["forward_ms"] + one["backward_ms"] for one in run["profile"]) * 2 / 1e3
check("the times of the profile add up to no more than those of the steps", 0 < spent <= sum(run["seconds"][turns.WARM_UP:]), (spent, run["seconds"]))
sent = steps.train(BUILD, work, 2, 2, 1, (2, 128, 4, 64, 12, 2))["ranks"]
check("bytes over tp match the formula", sum(rank["comm_bytes_tp"] for rank in sent) / 2 == on_paper.sent_on_paper(2, 1, 12)[0])


def memory_of(**patched):
    few = {name: on_paper.SAVING[name] for name in ("plain", "all three")}
    with unittest.mock.patch.multiple(on_paper, SAVING=few, **patched), contextlib.redirect_stdout(io.StringIO()) as shown:
        return on_paper.memory(turns.Here(BUILD, work, part="2x128")), shown.getvalue()


kept_rows, shown = memory_of()
lines = [line.split() for line in shown.splitlines()[4:6]]
sizes = [(one[0].values[0] * 1e6, one[1].values[0]) for one in zip(kept_rows[::2], kept_rows[1::2])]
check("the smallest MEM at which a BERT trains on 4 ranks is the peak that a rank reports, rounded up",
      len(sizes) == 2 and all(mem == math.ceil(peak / on_paper.MIB) for peak, mem in sizes), shown)
check("the peak at that MEM is within 1 % of the predicted one", all(abs(float(line[-3])) < 1 for line in lines), shown)
check("the table fits 80 columns, and a sentence says what all three save",
      max(map(len, shown.splitlines())) <= 80 and shown.splitlines()[-1].startswith(f"  MEM={sizes[1][1]}M (all three) is "), shown)
kept_rows, shown = memory_of(available=lambda: 140e6)
check("what the machine has no memory for is left out, with a message", len(kept_rows) == 2 and "memory    no row for plain: 4 ranks need 160" in shown, shown)
for fits_from in (37, 40, 43):
    found = on_paper.smallest(lambda mem: mem >= fits_from, 40)
    check(f"from a MEM of 40M, the smallest that fits, {fits_from}M, is found", found == fits_from, found)
with contextlib.redirect_stderr(io.StringIO()) as complained:
    try:
        ended = on_paper.fits(turns.Here(BUILD, work), on_paper.cost.Model(1, 7, 2, 8, 4, 100), 40)
    except SystemExit as end:
        ended = end.code
check("a run that ends with another error ends the measurement", ended == 2 and "HINT" in complained.getvalue(), complained.getvalue())
with unittest.mock.patch.object(programs, "said") as graded, unittest.mock.patch.object(os, "utime"), contextlib.redirect_stdout(io.StringIO()), \
     unittest.mock.patch.dict(os.environ, TRANSPORT=""):
    programs.verdicts(turns.Here(BUILD, work))
check("verdicts grades each lab and part 1 over the usual transport", len(graded.call_args_list) == 22 and
      all("TRANSPORT" not in one.kwargs["env"] for one in graded.call_args_list), graded.call_args_list)
