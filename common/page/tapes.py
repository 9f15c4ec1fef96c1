"""The tape of each rank, for a lab's page: the operations of its first pass, and how the gradient
flows through them."""
from page import escape, paragraph, table
from language import _


def operation_of(row):
    return _("%s of %s") % (row["name"], row["of"]) if row["of"] else row["name"]


def arguments_of(row):
    """What an operation takes, except results of others."""
    tensors = [" ".join(filter(None, (one["name"], one["shape"], one["placement"]))) for one in row["inputs"]]
    return "; ".join(filter(None, [*tensors, row["with"]]))


def tape_text(tape):
    forward = [[str(row["number"]), row["line"], operation_of(row), arguments_of(row), row["shape"], row["placement"]] for row in tape["forward"]]
    backward = [[str(row["number"]), row["line"], row["name"], row["shape"], row["placement"], row["to"]] for row in tape["backward"]]
    parts = [table(tape["where"][0], [_("number"), _("line"), _("operation"), _("from outside"), _("shape"), _("placement")], forward, (2, 3, 4, 5))]
    if backward:
        caption = _("%s: the gradient of each result") % tape["where"][1]
        parts.append(table(caption, [_("number"), _("line"), _("operation"), _("shape"), _("placement"), _("goes to")], backward, (2, 3, 4, 5)))
    if tape["without"]:
        parts.append(paragraph(_("no gradient reaches the result of %s") % tape["without"]))
    return "\n".join(parts)


def tapes_text(found):
    """The tapes of all ranks that have one; all except the first are folded."""
    parts = [(_("rank {rank}").format(rank=number), tape_text(tape)) for number, tape in enumerate(found["tapes"]) if tape["forward"]]
    if not parts:
        return ""
    told = _("The operations that a rank has recorded in its first pass, with the lines of the lab. A number stands for the result of that operation. The "
             "gradient of each result goes to the arguments of the operation.")
    (first, shown), *others = parts
    folded = "\n".join(f"<details><summary>{escape(rank)}</summary>{text}</details>" for rank, text in others)
    heading = _("The tape")
    return f'<h2>{escape(heading)}</h2>\n{paragraph(told)}\n<h3>{escape(first)}</h3>\n{shown}\n{folded}'
