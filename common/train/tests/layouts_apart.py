"""How far two runs are apart."""
import subprocess

from runs import BUILD


def deviation(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def weights_apart(one, other):
    """The largest difference of a weight between two saved runs."""
    said = subprocess.run([f"{BUILD}/checkpoint", "compare", one, other], capture_output=True, text=True, check=True).stdout
    return float(said.partition("largest difference of a weight: ")[2].split()[0])
