"""Schedules of one step of a case: a pipeline's by the judge's clock, and the predicted one on a
cluster."""
from page import escape, paragraph, timeline_figure
from language import _

PASSES = [[_("forward"), "sky", "plain"], [_("backward"), "blue", "plain"], [_("idle"), "grey", "level"]]
OVERLAP = [[_("work"), "sky", "plain"], [_("sum over replicas"), "orange", "rising"], [_("idle"), "grey", "level"]]


def with_idle(boxes, length, names):
    """The spans of a row, from boxes (begin, length, kind, name) in order of time, with idle time
    between them."""
    spans, at = [], 0
    for begin, lasts, kind, name in boxes + [(length, 0, None, None)]:
        if begin > at:
            spans.append([at, begin - at, 2, names.setdefault(_("idle"), len(names))])
        if name is not None:
            spans.append([begin, lasts, kind, names.setdefault(name, len(names))])
        at = max(at, begin + lasts)
    return spans


def schedule_of(stages, length):
    """A pipeline's schedule: one row per stage, one box per pass; idle time is grey."""
    names = {}
    rows = [{"label": _("stage {stage}").format(stage=number),
             "spans": with_idle([(one["begin"], one["length"], int(one["backward"]), "FB"[one["backward"]] + str(one["micro"])) for one in passes], length, names)}
            for number, passes in enumerate(stages)]
    return {"kinds": PASSES, "names": list(names), "rows": rows, "marks": []}


def slots_of(found):
    length = max((one["begin"] + one["length"] for passes in found["schedule"] for one in passes), default=0)
    return {**schedule_of(found["schedule"], length), "slots": True} if length else None


def overlap_of(cluster, tp):
    """Data parallelism: the work of each replica, and the sums over all of them."""
    names = {}
    rows = [{"label": _("rank {rank}").format(rank=number * tp), "spans": with_idle([(*span, 0, _("work")) for span in work], cluster["takes"], names)}
            for number, work in enumerate(cluster["work"])]
    sums = [[*span, 1, names.setdefault(_("sum {number}").format(number=number), len(names))] for number, span in enumerate(cluster["sums"])]
    return {"kinds": OVERLAP, "names": list(names), "rows": rows + [{"label": _("sums"), "spans": sums}], "marks": []}


def on_cluster(found):
    cluster = found["cluster"]
    if not cluster:
        return None
    return schedule_of(cluster["stages"], cluster["takes"]) if cluster["stages"] else overlap_of(cluster, found["tp"])


def time_text(microseconds):
    return f"{microseconds:.1f} us" if microseconds < 1e3 else f"{microseconds / 1e3:.2f} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.2f} s"


def cluster_text(cluster):
    """The heading, the sentences and the drawing of a step on a cluster, if there is one."""
    if not cluster:
        return paragraph(_("This case has no whole step to replay on a cluster.")) if cluster is False else ""
    heading = _("Step 1 on {cluster}").format(cluster=cluster["name"])
    sentences = [_("The step takes {takes}.").format(takes=time_text(cluster["takes"])),
                 _("It would take {time} if messages took no time.").format(time=time_text(cluster["free"])) if cluster["free"] else "",
                 _("{time} of the sums over replicas is exposed: no computation overlaps it.").format(time=time_text(cluster["exposed"])) if not cluster["stages"] else "",
                 _("If the sums over replicas followed the backward pass, the step would take {time}.").format(time=time_text(cluster["late"])) if cluster["late"] else ""]
    return f"<h2>{escape(heading)}</h2>\n{paragraph(' '.join(filter(None, sentences)))}\n{timeline_figure(heading, 'cluster', strip=False)}"


def schedule_text():
    words = _("Step 1 by the judge's clock: a pass of a stage takes one slot, messages take no time. F is the forward pass of a micro-batch, B its "
              "backward pass, each with the micro-batch's number. Grey is the bubble.")
    heading = _("Schedule of the pipeline")
    return f"<h2>{heading}</h2>\n{paragraph(words)}\n{timeline_figure(heading, 'schedule', strip=False)}"
