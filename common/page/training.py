#!/usr/bin/python3 -EsB
"""training.py begin OUT: before a run, checks that its page can be written to OUT.  training.py
TRACE METRICS OUT: makes the page of a finished run from the files of make train TRACE= and METRICS=."""
import json
import sys
from bisect import bisect

from page import give_up, make_room, matrix, paragraph, escape, size_text, table, timeline_figure, write
from language import _, counted

KINDS = {"forward": [_("forward"), "sky", "plain"], "backward": [_("backward"), "blue", "plain"], "tp": [_("exchange over tp"), "orange", "rising"],
         "pp": [_("waiting for another stage"), "grey", "level"], "dp": [_("gradient reduction, exposed"), "pink", "falling"], "dp under way": [_("gradient reduction, under way"), "pink", "level"],
         "waiting": [_("waiting for other ranks"), "ground", "empty"], "optimiser": [_("optimiser"), "green", "upright"], "reading": [_("reading the batch"), "grey", "dots"]}
CATEGORIES = {"weights": [_("weights"), "blue", "plain"], "gradients": [_("gradients"), "orange", "rising"], "optimiser": [_("optimiser"), "green", "upright"],
              "activations": [_("activations"), "sky", "dots"]}
# Names of spans that are not operations.
WORK = {"waiting": _("waiting"), "gradient reduction, under way": _("gradient reduction, under way"), "gradient reduction, exposed": _("gradient reduction, exposed"),
        "optimiser": _("optimiser"), "reading the batch": _("reading the batch")}


# The parts of the bar of a rank's time, each with its words and its colour; then the part to which
# each kind of span belongs.
SHARES = {"computing": (_("computing"), "blue"), "exchanging": (_("exchanging"), "orange"), "waiting": (_("waiting"), "ground"), "reading": (_("reading the batch"), "grey")}
SHARE_OF = {"forward": "computing", "backward": "computing", "optimiser": "computing", "tp": "exchanging", "dp": "exchanging", "dp under way": "exchanging", "waiting": "waiting",
            "pp": "waiting", "reading": "reading"}

GROUPS = ("tp", "dp", "pp")


class Rank:
    def __init__(self):
        self.name, self.groups, self.steps, self.passes, self.spans, self.memory = "", {}, [], [], [], []
        self.unknown = []


def read_trace(path):
    try:
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        ranks = [Rank() for _ in range(trace["otherData"]["ranks"])]
        for event in trace["traceEvents"]:
            rank = ranks[event["pid"]]
            if event["ph"] == "M" and event["name"] == "process_name":
                rank.name = event["args"]["name"].replace("rank ", _("rank {rank}").format(rank=""), 1)
            elif event["ph"] == "M" and event["name"] == "balise_rank":
                rank.groups = {"tp": event["args"]["tp_group"], "dp": event["args"].get("dp_group", []), "pp": event["args"].get("pp_group", [])}
                rank.unknown = [group for group in ("tp", "dp") if event["args"][f"waiting_unknown_{group}"]]
            elif event["ph"] == "C":
                rank.memory.append([event["ts"], *(event["args"][category] for category in CATEGORIES)])
            elif event["ph"] == "X":
                {"step": rank.steps, "pass": rank.passes}.get(event["cat"], rank.spans).append(event)
    except OSError as error:
        give_up(f"{path}: {error.strerror}", _("make train REPORT=1 makes the trace and the page"))
    except (ValueError, KeyError, IndexError, TypeError):
        give_up(_("{path} is not a trace of this kit").format(path=path), _("make train TRACE=run.json writes one"))
    return trace["otherData"], ranks


def read_metrics(path):
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    except OSError as error:
        give_up(f"{path}: {error.strerror}", _("make train METRICS=run.jsonl writes one"))
    except ValueError:
        give_up(_("{path} contains lines that are not metrics").format(path=path), _("make train METRICS=run.jsonl writes such a file; was it cut short?"))
    return lines


def loss_of(lines):
    points, evaluations = [], []
    for line in lines:
        if "step" in line:
            points.append([line["step"], line["loss"]])
        elif "test_loss" in line and line["test_loss"] is not None:
            evaluations.append([points[-1][0] if points else 0, line["test_loss"]])
    return {"points": points, "evaluations": evaluations}


def number_of(step):
    return step["name"].split()[-1]


def timeline_of(rows_of_spans, steps):
    """@param rows_of_spans [(label, spans)]"""
    names, kinds = {}, list(KINDS)
    used = [kind for kind in kinds if any(span["cat"] == kind for _label, row in rows_of_spans for span in row)]
    rows = []
    for label, row in rows_of_spans:
        spans = []
        for span in row:
            sent = sum(span.get("args", {}).get(f"{group}_bytes", 0) for group in GROUPS)
            entry = [span["ts"], span["dur"], used.index(span["cat"]), names.setdefault(WORK.get(span["name"], span["name"]), len(names))]
            spans.append(entry + [sent] if sent else entry + [_("in an exchange over {group}").format(group=span["args"]["for"])] if span["cat"] == "waiting" else entry)
        rows.append({"label": label, "spans": spans})
    marks = [[step["ts"], step["ts"] + step["dur"], _("step {step}").format(step=number_of(step))] for step in steps]
    return {"kinds": [KINDS[kind] for kind in used], "names": list(names), "rows": rows, "marks": marks}


def with_passes(rank):
    """The spans of a rank, with all spans of a micro-batch's pass replaced by one."""
    passes = [{**one, "cat": "backward" if one["name"].startswith("B") else "forward"} for one in rank.passes]
    begins = [one["ts"] for one in passes]

    def is_inside(span):
        middle = span["ts"] + span["dur"] / 2
        last = bisect(begins, middle) - 1
        return last >= 0 and middle <= begins[last] + passes[last]["dur"]

    return sorted(passes + [span for span in rank.spans if not is_inside(span)], key=lambda span: span["ts"])


def schedule_of(ranks):
    """The stages of rank 0's pipeline."""
    stages = [ranks[member] for member in ranks[0].groups["pp"]]
    return timeline_of([(_("stage {stage}").format(stage=number), with_passes(rank)) for number, rank in enumerate(stages)], ranks[0].steps)


def schedule_text():
    drawn = _("Each stage of rank 0's pipeline is a row. F is the forward pass of a micro-batch, B its backward pass, each with the micro-batch's number. "
              "Grey is time spent in messages, which is mostly waiting for another stage: the bubble.")
    heading = _("Schedule of the pipeline")
    return f"<h2>{heading}</h2>\n{paragraph(drawn)}\n{timeline_figure(heading, 'schedule')}"


def sent_over(ranks, group):
    """The bytes that each rank sends to each other rank per step. A collective records how many
    bytes a rank sends, but not to whom, so they are divided equally among the other ranks of the
    group. Bytes between stages are divided among a stage's neighbours."""
    amounts = [[0] * len(ranks) for _ in ranks]
    for number, rank in enumerate(ranks):
        members = rank.groups[group]
        others = [other for place, other in enumerate(members) if other != number and (group != "pp" or abs(place - members.index(number)) == 1)]
        sent = sum(span.get("args", {}).get(f"{group}_bytes", 0) for span in rank.spans)
        for other in others:
            amounts[number][other] = sent / len(others) / max(1, len(rank.steps))
    return amounts


def shares_of(rank):
    """The shares of a rank's time, by SHARES, in percent; None without spans."""
    spent = {share: sum(span["dur"] for span in rank.spans if SHARE_OF[span["cat"]] == share) for share in SHARES}
    total = sum(spent.values())
    return {share: 100 * time / total for share, time in spent.items()} if total else None


def finding_of(other, shares):
    """A sentence about where the ranks' time goes, and why they wait if they outnumber the
    cores."""
    percents = {share: f"{sum(one[share] for one in shares) / len(shares):.0f}" for share in SHARES}
    where, cores = counted("{n} rank", "{n} ranks", other["ranks"]), other.get("cores")
    if cores:
        where = _("{ranks} on {cores}").format(ranks=where, cores=counted("{n} core", "{n} cores", cores))
    told = _("{where}: {computing} % of the time is computing, {exchanging} % exchanging, {waiting} % waiting.").format(where=where, **percents)
    if cores and cores < other["ranks"]:
        told += " " + _("The ranks share cores: exchanging and waiting include the time in which another rank has the core.")
    return told


def shares_table(ranks, shares):
    """One bar per rank, and the same numbers as text."""
    of_time, caption = escape(_("share of the time")), escape(_("The share of each activity in a rank's time, in the steps shown below."))
    lines = [f'<div class="scrolls" tabindex="0"><table class="list"><caption>{caption}</caption>',
             f'<thead><tr><th scope="col" class="text">{escape(_("rank"))}</th><th scope="col" class="text">{of_time}</th>'
             + "".join(f'<th scope="col">{escape(words)}</th>' for words, _colour in SHARES.values()) + "</tr></thead><tbody>"]
    for rank, one in zip(ranks, shares):
        bar = "".join(f'<i class="{SHARES[share][1]}" style="width:{percent:.2f}%"></i>' for share, percent in one.items() if percent)
        cells = "".join(f'<td data-label="{escape(SHARES[share][0])}"><span class="key {SHARES[share][1]}"></span>{percent:.0f} %</td>' for share, percent in one.items())
        lines.append(f'<tr><th scope="row">{escape(rank.name)}</th><td class="bar"><div>{bar}</div></td>{cells}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def finding_text(other, ranks):
    shares = [shares_of(rank) for rank in ranks]
    if not all(shares):
        return ""
    return f'<p class="finding">{escape(finding_of(other, shares)).replace(" %", "&nbsp;%")}</p>\n{shares_table(ranks, shares)}'


def time_table(ranks):
    used = [kind for kind in KINDS if any(span["cat"] == kind for rank in ranks for span in rank.spans)]
    rows = []
    for rank in ranks:
        steps = max(1, len(rank.steps))
        each = [sum(span["dur"] for span in rank.spans if span["cat"] == kind) / steps / 1000 for kind in used]
        rows.append([rank.name, *(f"{ms:.2f}" for ms in each), f"{sum(each):.2f}"])
    return table(_("Milliseconds per step, by activity: the mean over the steps shown."), [_("rank"), *(KINDS[kind][0] for kind in used), _("in all")], rows)


def summary_table(summary, tests):
    loss, accuracy = (_("test loss"), _("test accuracy")) if tests else (_("loss"), _("accuracy"))
    number = lambda value, form: "—" if value is None else format(value, form)
    rows = [[_("rank {rank}").format(rank=one["rank"]), number(one["loss"], ".4f"), number(one["accuracy"], ".4f"), f"{one['parameters'] / 1e6:.2f}", f"{1e3 * one['step_s']:.1f}",
             *(size_text(one[f"comm_bytes_{group}"]) for group in GROUPS)] for one in summary]
    return table(_("The whole run: the last loss and accuracy, the median step, bytes sent in all steps."),
                 [_("rank"), loss, accuracy, _("parameters held, M"), _("step, ms"), _("sent over tp"), _("sent over dp"), _("sent over pp")], rows)


def memory_table(summary):
    rows = [[_("rank {rank}").format(rank=one["rank"]), f"{one['peak_bytes'] / 1e6:.2f}", *(f"{one['peak'][category] / 1e6:.2f}" for category in CATEGORIES)] for one in summary]
    return table(_("The peak of the whole run in MB, and what it was made of."), [_("rank"), _("peak"), *(words for words, *_style in CATEGORIES.values())], rows)


def traced_text(ranks):
    steps = [number_of(step) for step in ranks[0].steps]
    if len(steps) > 1:
        return _("Steps {first} to {last} of this run.").format(first=steps[0], last=steps[-1])
    return _("Step {step} of this run.").format(step=steps[0]) if steps else _("No step of this run.")


def matrices_text(ranks, other):
    parts = []
    for group, degree, what in (("tp", other["tp"], _("Bytes per step between the ranks that split a model (tp).")), ("dp", other["dp"], _("Bytes per step between the replicas (dp).")),
                                ("pp", other["pp"], _("Bytes per step between the stages (pp)."))):
        if degree > 1:
            parts.append(f"<div>{matrix(what, sent_over(ranks, group))}</div>")
    return f'<div class="side">{"".join(parts)}</div>' if parts else paragraph(_("A single rank sends nothing."))


def body_of(other, ranks, summary, lines):
    losses = [line["loss"] for line in lines if "step" in line]
    tests = [line for line in lines if "test_loss" in line]
    interrupted = any(line.get("interrupted") for line in lines)
    unknown = sorted({group for rank in ranks for group in rank.unknown})
    facts = [counted("{n} step before it was interrupted", "{n} steps before it was interrupted", len(losses)) if interrupted else counted("{n} step", "{n} steps", len(losses)),
             _("kernels: {kernels}").format(kernels=other["kernels"])]
    if losses and losses[0] is not None and losses[-1] is not None:
        facts.insert(1, _("loss from {first:.4f} to {last:.4f}").format(first=losses[0], last=losses[-1]))
    if tests and tests[-1]["test_loss"] is not None:
        rows = counted("{n} row", "{n} rows", tests[-1]["test_rows"])
        facts.insert(2, _("test loss {loss:.4f}, accuracy {accuracy:.4f} on {rows}").format(loss=tests[-1]["test_loss"], accuracy=tests[-1]["test_accuracy"], rows=rows))
    notes = []
    if other["device"]:
        notes.append(_("The ranks computed on GPUs, but the spans are the host's: queued work is shown where the host waits for it, not where it ran."))
    if unknown:
        notes.append(_("Ranks of one group made different numbers of exchanges over {groups}: waiting time cannot be separated there, and counts as part of the exchange.")
                     .format(groups=_(" and ").join(unknown)))
    evaluations = table(_("Evaluations."), [_("after epoch"), _("test loss"), _("test accuracy"), _("rows")],
                        [[str(t["epoch"]), "—" if t["test_loss"] is None else f"{t['test_loss']:.4f}", f"{t['test_accuracy']:.4f}", str(t["test_rows"])] for t in tests]) if tests else ""
    notes, facts = " ".join(notes), _("; ").join(facts)
    doing, memory, sending, losing, spending = _("What each rank does, and when"), _("Memory"), _("Who sends to whom"), _("Loss"), _("Time and bytes")
    no_curves, no_curve = _("JavaScript draws the curves, and it is off here."), _("JavaScript draws the curve, and it is off here.")
    timeline = timeline_figure(_("timeline of each rank"))
    heading = _("Training on {ranks}: tensor parallel {tp}, data parallel {dp}, pipeline parallel {pp}").format(
        ranks=counted("{n} rank", "{n} ranks", other["ranks"]), **{group: other[group] for group in GROUPS})
    clocks = _("Each rank's clock was set to 0 as it left one barrier; across the machines of a cluster, rows may be off by tens of microseconds. In an "
               "exchange, the time beyond that of the fastest rank in the group is waiting; it is drawn first.")
    held = _("Bytes of live tensors after each span, in the time range shown above. The dashed line is the peak of the whole run, which may fall within "
             "a span.")
    shares = _("A collective defines how many bytes each rank contributes, but not who receives them: the page splits them evenly over the other members of the group, and the bytes of a stage over its neighbours. A rank's total is exact.")
    points = _("Point: the loss of a step on its batch. Line: the mean of nearby points. Diamond: the loss on the test rows. Horizontal axis: the step.") if tests else \
        _("Point: the loss of a step on its batch. Line: the mean of nearby points. Horizontal axis: the step.")
    return f"""<h1>{escape(heading)}</h1>
<p>{escape(facts)}</p>
<h2>{losing}</h2>
<figure><div id="loss"><p class="needs-script">{no_curve}</p></div>
<figcaption>{points}</figcaption></figure>
{evaluations}
<h2>{spending}</h2>
{finding_text(other, ranks)}
{summary_table(summary, tests)}
<h2>{doing}</h2>
<p>{escape(traced_text(ranks))} {escape(notes)} {clocks}</p>
{timeline}
{time_table(ranks)}
{schedule_text() if other["pp"] > 1 else ""}
<h2>{memory}</h2>
<p>{held}</p>
<div id="memory"><p class="needs-script">{no_curves}</p><ul class="legend"></ul><div class="multiples"></div></div>
{memory_table(summary)}
<h2>{sending}</h2>
<p>{shares}</p>
{matrices_text(ranks, other)}"""


def main(arguments):
    if arguments[0] == "begin":
        make_room(arguments[3], zip(("TRACE", "METRICS"), arguments[1:3]), remove=True)
        return
    trace_path, metrics_path, out = arguments
    other, ranks = read_trace(trace_path)
    lines = read_metrics(metrics_path)
    summary = next((line["ranks"] for line in reversed(lines) if "ranks" in line), None)
    if not summary or len(summary) != len(ranks):
        give_up(_("{metrics} and {trace} are from different runs").format(metrics=metrics_path, trace=trace_path), _("make train REPORT=1 makes both, and the page"))
    memory = {"kinds": list(CATEGORIES.values()), "rows": [{"label": rank.name, "peak": one["peak_bytes"], "points": rank.memory} for rank, one in zip(ranks, summary)]}
    rows = [(_("rank {rank}").format(rank=number), rank.spans) for number, rank in enumerate(ranks)]
    data = {"timeline": timeline_of(rows, ranks[0].steps), **({"schedule": schedule_of(ranks)} if other["pp"] > 1 else {}), "memory": memory, "loss": loss_of(lines)}
    write(out, _("Training, tp {tp}, dp {dp}, pp {pp}").format(**{group: other[group] for group in GROUPS}), body_of(other, ranks, summary, lines), data, ["timeline.js", "curves.js", "start.js"])


main(sys.argv[1:])
