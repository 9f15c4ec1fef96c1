"""The judge's verdict on one case: the reasons with their hints, and a table of the checks."""
from page import escape, paragraph, table
from language import _

MARKS = {"passed": "✓", "held back": "○", "to do": "–", "not run": "·", "not started": "·"}


def reason_text(check, others):
    """Why a check earns nothing, with the checks that fail for the same reason."""
    lines = check["own" if "own" in check else "reason"].split("\n")
    texts = [f'<p class="hint">{escape(line)}</p>' if line.startswith(_("HINT: ")) else f"<p>{escape(line)}</p>" for line in lines if line]
    if others:
        texts.append(paragraph(_("also failing for this reason: %s") % ", ".join(_(other["name"]) for other in others)))
    return section([check], "".join(texts))


def section(checks, text):
    """A section about checks of one status."""
    held = " held" if checks[0]["status"] == "held back" else ""
    return f'''<section class="reason{held}"><h2>{MARKS.get(checks[0]["status"], "✗")} {escape(", ".join(_(check["name"]) for check in checks))} <span>{escape(_(checks[0]["status"]))}</span></h2>{text}</section>'''


def held_back(checks):
    """A section for each reason for which points are held back."""
    return [section([check for check in checks if check["reason"] == reason], paragraph(reason)) for reason in dict.fromkeys(check["reason"] for check in checks)]


def reasons_text(found):
    """The reasons at the beginning of the page: one for each cause, as make grade prints them."""
    failed = [check for check in found["checks"] if "cause" in check]
    first = [check for check in failed if check["own"]]
    told = [reason_text(check, [one for one in failed if one["cause"] == check["name"] != one["name"]]) for check in first]
    return "\n".join(told + held_back([check for check in found["checks"] if check["status"] == "held back"]))


def checks_text(found):
    rows = [[_(check["name"]), MARKS.get(check["status"], "✗") + " " + (_(check["status"]) if check["status"] != "not run" else _("not in this case"))] for check in found["checks"]]
    return table(_("The judge's result for this case."), [_("check"), _("result")], rows, (1,))
