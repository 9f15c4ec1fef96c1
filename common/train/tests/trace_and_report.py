#!/usr/bin/python3
"""make train TRACE= and REPORT=1: spans without gaps add up to the steps, all ranks of a group have
the same exchanges, memory stays below its peak, and the page is one file that a real browser draws.
Also tests their errors."""
import json
import math
import os
import re
import shutil
import subprocess
import tempfile

import pages
from runs import BUILD, ROOT, check, run

SMALL = ["--layers", 1, "--hidden-dim", 32, "--heads", 4, "--batch-size", 8, "--seq", 32, "--samples", 200, "--test", ""]


def traced(folder, ranks, tp, steps, *options, **environment):
    path, metrics = os.path.join(folder, "run.json"), os.path.join(folder, "run.jsonl")
    done = run(ranks, "--tp", tp, *SMALL, "--steps", steps, "--trace", path, "--metrics", metrics, *options, **environment)
    if done.returncode:
        raise SystemExit(f"not ok - a run with a trace runs\n{done.stdout}{done.stderr}")
    with open(path, encoding="utf-8") as file, open(metrics, encoding="utf-8") as lines:
        return json.load(file), [json.loads(line) for line in lines]


def of_rank(trace, rank, category=None):
    return [event for event in trace["traceEvents"] if event["pid"] == rank and event["ph"] == "X" and (event["cat"] == category if category else event["cat"] not in ("step", "pass"))]


def gaps(trace, rank):
    """The gaps between the spans of each step, in microseconds; negative where two overlap."""
    steps, spans = of_rank(trace, rank, "step"), of_rank(trace, rank)
    found = []
    for step in steps:
        inside = [span for span in spans if step["ts"] - 0.01 <= span["ts"] < step["ts"] + step["dur"] - 0.01]
        at = step["ts"]
        for span in inside:
            found.append(span["ts"] - at)
            at = span["ts"] + span["dur"]
        found.append(step["ts"] + step["dur"] - at)
    return found


def look_at_spans(trace, metrics, ranks):
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M" and event["name"] == "process_name"]
    check(names == ["rank 0 (tp 0, dp 0, pp 0)", "rank 1 (tp 1, dp 0, pp 0)", "rank 2 (tp 0, dp 1, pp 0)", "rank 3 (tp 1, dp 1, pp 0)"], "each rank is a process with its place in the mesh", str(names))
    steps = [[step["name"] for step in of_rank(trace, rank, "step")] for rank in range(ranks)]
    check(all(one == [f"step {n}" for n in range(3, 13)] for one in steps), "ten steps are traced, after the first two, on each rank", str(steps))
    widest = max(abs(gap) for rank in range(ranks) for gap in gaps(trace, rank))
    check(widest < 0.01, "the spans of a step leave no gap and do not overlap", f"{widest} microseconds")
    inside = sum(len(of_rank(trace, rank)) for rank in range(ranks))
    check(inside == sum(len(gaps(trace, rank)) - 10 for rank in range(ranks)), "and no span is outside of the steps")
    check(not any(of_rank(trace, rank, "pp") for rank in range(ranks)), "with one stage, no rank waits for another stage")
    check(all(of_rank(trace, rank, "dp under way") for rank in range(ranks)), "between operations, each rank lets the sums over the replicas go on")
    told = {line["step"]: line["step_s"] for line in metrics if "step" in line}
    shares = [sum(span["dur"] for span in of_rank(trace, 0) if step["ts"] - 0.01 <= span["ts"] < step["ts"] + step["dur"] - 0.01) / 1e6 / told[int(step["name"].split()[1])]
              for step in of_rank(trace, 0, "step")]
    check(all(share <= 1.001 for share in shares) and sorted(shares)[5] > 0.8, "the spans of a step add up to its time, except for work after it", str(shares))


def look_at_groups(trace, metrics, ranks):
    for name, members in (("tp", ((0, 1), (2, 3))), ("dp", ((0, 2), (1, 3)))):
        told = [event["args"][f"{name}_group"] for event in trace["traceEvents"] if event["name"] == "balise_rank"]
        check(all(told[rank] == list(group) for group in members for rank in group), f"the trace lists the members of each {name} group", str(told))
        counts = [len(of_rank(trace, rank, name)) for rank in range(ranks)]
        check(counts[0] > 0 and len(set(counts)) == 1, f"the ranks of a group have the same number of exchanges over {name}", str(counts))
        exact = all(abs(a["dur"] - b["dur"]) < 0.01 and a["name"] == b["name"] for one, other in members for a, b in zip(of_rank(trace, one, name), of_rank(trace, other, name)))
        check(exact, f"without waiting, an exchange over {name} takes equally long on both ranks")
        waits = [[span["args"]["for"] for span in of_rank(trace, rank, "waiting")].count(name) for rank in range(ranks)]
        check(all(sum(waits[rank] for rank in group) <= counts[0] for group in members), f"at most one of two ranks waits in an exchange over {name}", str(waits))
        sent = [sum(span.get("args", {}).get(f"{name}_bytes", 0) for span in of_rank(trace, rank)) for rank in range(ranks)]
        line = sum(line[f"comm_bytes_{name}"] for line in metrics if 3 <= line.get("step", 0) <= 12)
        check(sent[0] == line, f"the bytes over {name} equal those in the metrics", f"{sent[0]} {line}")


def look_at_stages(trace, metrics):
    borders, step = (1, 2, 1), 8 * 32 * 32 * 4
    check(trace["otherData"]["pp"] == 3, "the trace says how many stages there are")
    told = [event["args"]["pp_group"] for event in trace["traceEvents"] if event["name"] == "balise_rank"]
    check(told == [[0, 1, 2]] * 3, "the trace lists the stages of a pipeline", str(told))
    messages = [sum(span["name"] == "receive from another stage" for span in of_rank(trace, rank, "pp")) / len(of_rank(trace, rank, "step")) for rank in range(3)]
    check(messages == [2 * n for n in borders], "a micro-batch crosses each boundary twice, and each crossing is a span of the stage that receives", str(messages))
    sent = [sum(span.get("args", {}).get("pp_bytes", 0) for span in of_rank(trace, rank)) / len(of_rank(trace, rank, "step")) for rank in range(3)]
    summary = next(line["ranks"] for line in metrics if "ranks" in line)
    check(sent == [n * step for n in borders] and [row["comm_bytes_pp"] for row in summary] == [6 * n * step for n in borders],
          "each boundary carries the activations of the batch, and their gradients back", f"{sent} {summary}")
    check([row["blocks"] for row in summary] == [[0, 1], [1, 2], [2, 3]] and [row["stage"] for row in summary] == [0, 1, 2], "the metrics say which blocks a stage runs")


def look_at_passes(trace, micros):
    """The passes of the micro-batches of 1F1B, in three stages."""
    for stage in range(3):
        ahead = min(2 - stage, micros)
        order = [f"F{i}" for i in range(ahead)]
        for i in range(micros):
            order += [f"F{i + ahead}"] * (i + ahead < micros) + [f"B{i}"]
        passes, steps = of_rank(trace, stage, "pass"), of_rank(trace, stage, "step")
        check([one["name"] for one in passes] == order * len(steps), f"stage {stage} runs the passes of 1F1B", str([one["name"] for one in passes]))
        outside = [span["name"] for span in of_rank(trace, stage, "forward") + of_rank(trace, stage, "backward")
                   if span["name"] != "gradient reduction, exposed" and not any(one["ts"] - 0.01 <= span["ts"] and span["ts"] + span["dur"] <= one["ts"] + one["dur"] + 0.01 for one in passes)]
        check(not outside, "and each operation is part of one", str(outside))
        inside = [span["name"] for span in of_rank(trace, stage, "pp") if any(one["ts"] < span["ts"] + span["dur"] / 2 < one["ts"] + one["dur"] for one in passes)]
        check(not inside, "no message is", str(inside))


def look_at_memory(trace, metrics):
    summary = next(line["ranks"] for line in metrics if "ranks" in line)
    good, seen = True, []
    for rank, row in enumerate(summary):
        held = [event["args"] for event in trace["traceEvents"] if event["pid"] == rank and event["ph"] == "C"]
        totals = [sum(one.values()) for one in held]
        seen.append((max(totals), row["peak_bytes"]))
        good = good and max(totals) <= row["peak_bytes"] and max(totals) > 0.5 * row["peak_bytes"] and totals[-1] < 0.9 * max(totals) and all(one["weights"] == row["peak"]["weights"] for one in held)
    check(good, "memory by category comes near the peak in the table, never exceeds it, and falls again", str(seen))


def is_time(value):
    return isinstance(value, (int, float)) and math.isfinite(value) and value >= 0


def look_at_format(trace, sentence):
    """Tests the subset of the Trace Event Format that the kit uses: complete events (X), counters
    (C) and metadata (M) in an object."""
    events, wrong = trace["traceEvents"], []
    named = {name: {(event["pid"], event.get("tid")) for event in events if event["ph"] == "M" and event["name"] == name} for name in ("process_name", "thread_name")}
    series, at = {}, {}
    for event in events:
        good = event["ph"] in ("X", "C", "M") and isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event.get("args", {}), dict)
        good = good and (event["pid"], None) in named["process_name"]
        if event["ph"] != "M":
            row = (event["pid"], event.get("tid"), event["ph"])
            good = good and is_time(event["ts"]) and event["ts"] >= at.get(row, 0)
            at[row] = event["ts"]
        if event["ph"] == "X":
            good = good and isinstance(event["tid"], int) and is_time(event["dur"]) and isinstance(event["cat"], str) and (event["pid"], event["tid"]) in named["thread_name"]
        if event["ph"] == "C":
            good = good and all(map(is_time, event["args"].values())) and series.setdefault((event["pid"], event["name"]), list(event["args"])) == list(event["args"])
        if event["ph"] == "M" and event["name"].endswith("_name"):
            good = good and isinstance(event["args"]["name"], str)
        wrong += [] if good else [event]
    check(trace["displayTimeUnit"] in ("ms", "ns") and events and not wrong, sentence, str(wrong[:3]))


def look_at_page(path, sentence_of):
    page = pages.Page(path)
    check(not page.unclosed, f"{sentence_of}: each element is closed", str(page.unclosed))
    check(page.loads() == [], f"{sentence_of}: nothing is loaded from elsewhere", str(page.loads()))
    return page


def looked_at_in_browser(path, ranks):
    dom = pages.drawn(path)
    if dom is None:
        print("skip - a browser draws the page: chromium is not installed")
        return
    check(pages.attribute(dom, "data-ready") == "yes" and pages.attribute(dom, "data-error") is None, "a browser draws the page without an error", pages.attribute(dom, "data-error") or dom[-300:])
    check(int(pages.attribute(dom, "data-spans") or 0) > 20 * ranks, "the timeline has spans", str(pages.attribute(dom, "data-spans")))
    check(dom.count('class="area"') == 4 * ranks, "memory is drawn by category on each rank", str(dom.count('class="area"')))
    check(dom.count('class="curve"') == 1, "the loss is drawn")
    sides = re.findall(r'class="point"[^>]* width="([\d.]+)"', dom)
    check(len(sides) == 6 and min(map(float, sides)) > 3, "the points of a short run are visible beside the line", str(sides))
    heights = [float(y) + float(side) / 2 for y, side in re.findall(r'class="point"[^>]* y="([\d.]+)" width="([\d.]+)"', dom)]
    line = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", re.search(r'class="curve" d="([^"]*)"', dom)[1])]
    check(len(line) == len(heights) and sum(abs(a - b) > 0.5 for a, b in zip(line, heights)) > 3, "the line is a mean of nearby points, and passes beside them", f"{line} {heights}")


HANDS = """<script>
const canvas = document.querySelector('#timeline > canvas'), readout = document.querySelector('.readout'), seen = [];
const begin = () => +canvas.dataset.view.split(' ')[0], length = () => +canvas.dataset.view.split(' ')[1] - begin();
const press = key => { canvas.dispatchEvent(new KeyboardEvent('keydown', {key, cancelable: true})); return length(); };
const click = text => { [...document.querySelectorAll('button')].find(button => button.textContent === text).click(); return length(); };
const step = length(), first = readout.textContent, whole = press('Home');
let before = begin();
seen.push(whole > step, press('+') < whole, press('PageDown') < whole && begin() > before);
before = begin();
seen.push(click('all') === whole, click('+') < whole, click('next step') < whole && begin() > before);
canvas.focus();
press('Home');
const wheel = new WheelEvent('wheel', {deltaY: -100, cancelable: true});
canvas.dispatchEvent(wheel);
seen.push(wheel.defaultPrevented && length() < whole);
canvas.blur();
const passing = new WheelEvent('wheel', {deltaY: -100, cancelable: true}), zoomed = canvas.dataset.view;
canvas.dispatchEvent(passing);
seen.push(!passing.defaultPrevented && canvas.dataset.view === zoomed);
press('n');
const told = readout.textContent;
press('ArrowDown');
seen.push(told !== first && told.startsWith('rank 0: ') && readout.textContent.startsWith('rank 1: '));
document.body.dataset.hands = seen.join(' ');
</script></body>"""


def look_at_schedule(page, path):
    """Tests the schedule of a page: four steps by 1F1B, with two stages and two micro-batches."""
    schedule = page.data["schedule"]
    names = [[schedule["names"][span[3]] for span in row["spans"]] for row in schedule["rows"]]
    passes = [[name for name in row if re.fullmatch(r"[FB]\d", name)] for row in names]
    check([row["label"] for row in schedule["rows"]] == ["stage 0", "stage 1"] and passes == [["F0", "F1", "B0", "B1"] * 4, ["F0", "B0", "F1", "B1"] * 4],
          "the page of a pipeline has a row a stage, with a box a pass in the order of its schedule", str(passes))
    greys = [sum(span[1] for span in row["spans"] if schedule["kinds"][span[2]][1:] == ["grey", "level"]) for row in schedule["rows"]]
    gaps_between = [sum(abs(a[0] + a[1] - b[0]) > 0.01 for a, b in zip(row["spans"], row["spans"][1:])) for row in schedule["rows"]]
    check(min(greys) > 0 and max(gaps_between) < len(schedule["marks"]), "between them the bubble is grey; only steps are apart", f"{greys} {gaps_between}")
    dom = pages.drawn(path)
    if dom is not None:
        spans = re.findall(r'data-spans="(\d+)"', dom)
        check(pages.attribute(dom, "data-ready") == "yes" and pages.attribute(dom, "data-error") is None and len(spans) == 2 and int(spans[1]) >= 8,
              "a browser draws it below the timeline of the ranks", str(spans) + str(pages.attribute(dom, "data-error")))


def used_by_hands(path):
    """The page with a script at its end that presses keys and buttons."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    used = path.replace(".html", "-used.html")
    with open(used, "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", HANDS))
    dom = pages.drawn(used)
    found = (pages.attribute(dom, "data-hands") or "").split()
    for good, sentence in zip(found + ["nothing"] * 9, (
            "Home shows all steps", "plus zooms in", "PageDown goes to the next step", "the buttons do what the keys do", "the button + zooms in", "the button for the next step works",
            "the wheel zooms after a click on the timeline", "otherwise the page scrolls", "n describes the next span, and the down arrow that of the next rank")):
        check(good == "true", sentence, str(found) + str(pages.attribute(dom, "data-error")))


def make(folder, *arguments):
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "OUT", "METRICS", "TRACE", "REPORT", "BUILD")}
    small = ["LAYERS=1", "HIDDEN_DIM=32", "HEADS=4", "BATCH_SIZE=8", "SEQ=32", "SAMPLES=120", "STEPS=6"]
    return subprocess.run(["make", "--silent", "train", f"BUILD={BUILD}", *small, "REPORT=1", f"OUT={folder}/page.html", *arguments], cwd=ROOT, env=clean, capture_output=True, text=True, check=False)


def refused(sentence, words, done):
    check(done.returncode == 2 and done.stderr.count("error: ") == 1 and done.stderr.count("HINT: ") == 1 and all(word in done.stderr for word in words), sentence, done.stdout + done.stderr)


def main(folder):
    trace, metrics = traced(folder, 4, 2, 14)
    check(trace["otherData"]["tp"] == 2 and trace["otherData"]["dp"] == 2 and not trace["otherData"]["device"], "the trace says the layout")
    look_at_format(trace, "a trace is in the Trace Event Format: names, processes and threads, times that do not go back, durations, counters")
    look_at_spans(trace, metrics, 4)
    look_at_groups(trace, metrics, 4)
    look_at_memory(trace, metrics)
    staged, metrics = traced(folder, 3, 1, 6, "--layers", 3, "--pp", 3, "--micro", 2)
    look_at_format(staged, "a pipeline's trace is in the Trace Event Format")
    look_at_stages(staged, metrics)
    look_at_passes(staged, 2)
    profiled, _ = traced(folder, 2, 2, 5, "--profile", 1)
    check(len(of_rank(profiled, 0, "step")) == 3 and max(map(abs, gaps(profiled, 0))) < 0.01, "with PROFILE=1, the spans leave no gap either")
    short, _ = traced(folder, 1, 1, 2)
    check(len(of_rank(short, 0, "step")) == 2 and not of_rank(short, 0, "tp") and not of_rank(short, 0, "waiting"), "both steps of a run of two are traced; one rank exchanges nothing")
    if os.path.exists(f"{BUILD}/train-emulated"):
        done = subprocess.run(["common/train/launch.sh", "2", "solutions", "11", f"{BUILD}/train-emulated", "--cache", f"{BUILD}/cache", "--tp", "2", *map(str, SMALL), "--steps", "3",
                               "--trace", f"{folder}/gpu.json"], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "EMULATED_GPUS": "1"}, check=False)
        with open(f"{folder}/gpu.json", encoding="utf-8") as file:
            other = json.load(file)["otherData"]
        check(done.returncode == 0 and other["device"] and "of the host" in other["times"], "on a GPU the trace says that times are those of the host", done.stderr)

    done = make(folder, "NTASKS=2", "TP=1")
    path = f"{folder}/page.html"
    check(done.returncode == 0 and done.stdout.rstrip().endswith(f"page      {path}"), "REPORT=1 says where the page is", done.stdout + done.stderr)
    page = look_at_page(path, "the page of a run")
    check(all(f"rank {rank} (tp 0, dp {rank}, pp 0)" in page.text for rank in range(2)), "the page names the ranks", page.text[:400])
    check("Training on 2 ranks: tensor parallel 1, data parallel 2" in page.text and len(page.data["loss"]["points"]) == 6, "the page has the layout and each step's loss")
    finding = re.search(r"2 ranks on (\d+) cores?: (\d+)\s% of the time is computing, (\d+)\s% exchanging, (\d+)\s% waiting\.", page.text)
    cores = int(subprocess.run(["env", "-u", "OMP_NUM_THREADS", "nproc"], capture_output=True, text=True, check=True).stdout)
    check(finding and int(finding[1]) == cores, "the page says in a sentence where the ranks' time goes, and on how many cores", page.text[:600])
    with open(path, encoding="utf-8") as file:
        bars = [{name: float(width) for name, width in re.findall(r'<i class="(\w+)" style="width:([\d.]+)%"', bar)} for bar in re.findall(r'<td class="bar">.*?</td>', file.read())]
    told = dict(zip(("blue", "orange", "ground"), map(int, finding.groups()[1:])))
    check(all(abs(percent - sum(bar.get(name, 0) for bar in bars) / 2) < 0.52 for name, percent in told.items()), "the sentence has the mean of the ranks' bars", f"{told} {bars}")
    bars = [sum(bar.values()) for bar in bars]
    check(len(bars) == 2 and all(abs(bar - 100) < 0.1 for bar in bars), "each rank has a bar of what it does", str(bars))
    looked_at_in_browser(path, 2)
    if pages.BROWSER:
        used_by_hands(path)
    done = make(folder, "PP=2", "LAYERS=2", "MICRO=2")
    page = look_at_page(path, "the page of a pipeline")
    check(done.returncode == 0 and "pipeline parallel 2" in page.text and "waiting for another stage" in page.text and "between the stages (pp)" in page.text,
          "the page of a pipeline shows what the stages send, and where they wait", page.text[:400])
    look_at_schedule(page, path)
    done = make(folder, "NTASKS=2", "TP=1", "MEM=1K")
    check(done.returncode == 2 and not os.path.exists(path), "a run that fails leaves no page, not even an earlier one", done.stdout + done.stderr)
    check(not os.path.exists(f"{BUILD}/report/trace.json"), "and no trace")
    done = make(folder, "NTASKS=1", f"METRICS={folder}/kept.jsonl", f"TRACE={folder}/kept.json")
    check(done.returncode == 0 and all(os.path.exists(f"{folder}/{name}") for name in ("kept.jsonl", "kept.json", "page.html")), "files named by METRICS and TRACE are kept beside the page")

    with open(f"{folder}/kept.json", encoding="utf-8") as file:
        nasty = json.load(file)
    evil = "</script><script>document.body.dataset.error='escaped'</script><b>\u2028&\"'"
    for event in nasty["traceEvents"]:
        if event["ph"] == "X" and event["cat"] == "forward":
            event["name"] = evil
        elif event["name"] == "process_name":
            event["args"]["name"] = evil
    with open(f"{folder}/nasty.json", "w", encoding="utf-8") as file:
        json.dump(nasty, file)
    page_of = [f"{ROOT}/common/page/training.py"]
    subprocess.run([*page_of, f"{folder}/nasty.json", f"{folder}/kept.jsonl", f"{folder}/nasty.html"], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, check=True)
    page = look_at_page(f"{folder}/nasty.html", "with names that are HTML")
    check(evil in page.data["timeline"]["names"] and not any(tag == "b" for tag, _ in page.elements), "names that are HTML stay texts")
    dom = pages.drawn(f"{folder}/nasty.html")
    if dom is not None:
        check(pages.attribute(dom, "data-error") is None and pages.attribute(dom, "data-ready") == "yes", "in a browser too", str(pages.attribute(dom, "data-error")))

    refused("a trace in a missing folder is refused before training", ["none/run.json"], run(2, "--tp", 2, *SMALL, "--trace", f"{folder}/none/run.json"))
    refused("a trace that would replace a device is refused", ["/dev/null", "not a file"], run(1, *SMALL, "--trace", "/dev/null"))
    dry = subprocess.run([f"{BUILD}/train", "--dry", "1", "--trace", f"{folder}/none/run.json"], cwd=ROOT, capture_output=True, text=True, check=False)
    refused("a dry run refuses it without starting ranks", ["none/run.json"], dry)
    shutil.copy(f"{folder}/kept.jsonl", f"{folder}/precious.html")
    done = make(folder, "NTASKS=1", f"OUT={folder}/precious.html")
    check(done.returncode == 2 and "is not a page" in done.stderr and "step 1/" not in done.stdout and os.path.getsize(f"{folder}/precious.html") > 100,
          "a page does not replace another file", done.stdout + done.stderr)
    for setting in "METRICS", "TRACE":
        done = make(folder, "NTASKS=1", f"OUT={folder}/one", f"{setting}={folder}/./one")
        refused(f"a page that would be written over {setting} is refused before training", [f"is also the file of {setting}"], done)
    check(not os.path.exists(f"{folder}/one"), "and nothing is written")
    done = make(folder, "NTASKS=1", f"OUT={folder}/none/page.html")
    check(done.returncode == 2 and "there is no folder" in done.stderr and "step 1/" not in done.stdout, "a page in a missing folder is refused before training", done.stderr)
    words = ("import resource, signal, sys; sys.path.insert(0, 'common/page'); import page; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
             "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); page.write(sys.argv[1], 'title', '', {}, [])")
    done = subprocess.run(["python3", "-c", words, f"{folder}/full.html"], cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False)
    refused("a page that does not fit on the disk is one error", ["full.html", "File too large"], done)
    left = [name for name in os.listdir(folder) if re.search(r"\.new$|\.[A-Za-z0-9]{6}$", name)]
    check(not left, "no half-written file is left", str(left))


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
    main(temporary)
