"""For gdb: prints a tensor (print *x) as its shape, its placement and its first numbers. print/r *x
shows the fields. make debug loads this script."""
import gdb

PLACEMENTS = {"WHOLE": "whole", "COPIED": "copied", "SHARD": "shard({dim})", "PARTIAL": "partial sum", "UNKNOWN": "unknown", "UNDECIDED": "undecided"}
SHOWN = 6


class TensorPrinter:
    """Prints a struct Tensor."""

    def __init__(self, tensor):
        self.tensor = tensor

    def sizes(self):
        shape = self.tensor["shape"]
        return [int(shape["size"][i]) for i in range(int(shape["rank"]))]

    def numbers(self, count):
        """The first numbers as text, or why there are none."""
        if int(self.tensor["data"]) == 0:
            return "no numbers" if count == 0 else "not computed yet (call tensor_print computes it), or released"
        is_real = str(self.tensor["dtype"]) == "REAL"
        first = self.tensor["data"].cast(gdb.lookup_type("real" if is_real else "int").pointer())
        try:
            shown = [format(float(first[i]), ".4g") if is_real else str(int(first[i])) for i in range(min(count, SHOWN))]
        except gdb.MemoryError:
            return "its numbers are not in this process's memory"
        return " ".join(shown + ["..."] * (count > SHOWN))

    def to_string(self):
        sizes, placement = self.sizes(), self.tensor["placement"]
        count = 1
        for size in sizes:
            count *= size
        kind = str(placement["kind"])
        if kind.isdigit():  # in the Placement of balise.h, kind is an int
            kind = list(PLACEMENTS)[int(kind)]
        return f"[{','.join(map(str, sizes))}] {PLACEMENTS[kind].format(dim=int(placement['dim']))}: {self.numbers(count)}"


def printer_of(value):
    kind = value.type.strip_typedefs()
    return TensorPrinter(value) if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag == "Tensor" else None


gdb.pretty_printers.append(printer_of)
