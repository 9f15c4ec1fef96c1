"""The versions of PyTorch with which the kit's step is compared: the distribution's, and the
newest, installed below the build folder."""
import json
import os
import subprocess
import sys

from cost import VOCABULARY
from rows import _, give_up, run_alone

HERE = os.path.dirname(os.path.abspath(__file__))
DISTRIBUTION = "/usr/bin/python3"
WITHOUT_CUDA = "https://download.pytorch.org/whl/cpu"
HINT = _("apt-get install python3-torch, or TORCH=python of an environment that has it")


def said_last(done):
    return ((done.stderr or "").strip().splitlines() or [f"it ended with {done.returncode}"])[-1]


def version_of(python, first="", module="torch"):
    """The version of this Python's PyTorch or of another module, or None; and the error.

    @param first a statement that must succeed before the version is printed"""
    try:
        done = subprocess.run([python, "-c", f"import {module}; {first} print({module}.__version__)"], capture_output=True, text=True, check=False)
    except OSError as error:
        return None, error.strerror
    return (None, said_last(done)) if done.returncode else (done.stdout.split()[-1], "")


def install(folder):
    """Installs PyTorch, then transformers, into an environment; returns the error, or an empty
    text. If transformers cannot be installed, prints why. Only its comparisons are then missing,
    and with_module() says so. On a terminal, pip shows its progress."""
    pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check", "--retries", "0", "install",
           *([] if sys.stdout.isatty() else ["--quiet"])]
    torch = [*pip, "torch", "numpy"]
    # pytorch.org has a build without CUDA, a tenth of the size.
    for attempt in (([sys.executable, "-m", "venv", "--clear", folder],), ([*torch, "--index-url", WITHOUT_CUDA], torch)):
        for command in attempt:
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
            if not done.returncode:
                break
        else:
            return said_last(done)
    done = subprocess.run([*pip, "transformers"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"PyTorch   transformers cannot be installed: {said_last(done)}", flush=True)
    with open(f"{folder}/complete", "w", encoding="utf-8"):
        return ""


def newest(build):
    """The Python of an environment that has the newest PyTorch as of its installation, or None; and
    the error, or an empty text."""
    folder = f"{build}/venv-torch"
    if not os.path.exists(f"{folder}/complete"):
        print(f"PyTorch   installing the newest version in {folder}, once: 0.2 GB to download, or 3 GB from PyPI, "
              "whose version includes CUDA, if pytorch.org cannot be reached", flush=True)
        trouble = install(folder)
        if trouble:
            return None, trouble
    return f"{folder}/bin/python", ""


def find(build, given):
    """{version: its Python}, at least one; otherwise ends with an error.

    @param given the Pythons of TORCH="""
    found = {}
    for python in given:
        version, trouble = version_of(python)
        if not version:
            give_up(_("{python} has no PyTorch: {trouble}").format(python=python, trouble=trouble), HINT)
        found[version] = python
    if not given:
        version, trouble = version_of(DISTRIBUTION)
        if version:
            found[version] = DISTRIBUTION
        else:
            print(f"PyTorch   {DISTRIBUTION} has none: apt-get install python3-torch adds its column ({trouble})")
        python, trouble = newest(build)
        version, trouble = version_of(python) if python else (None, trouble)
        if version:
            found[version] = python
        else:
            print(f"PyTorch   the newest version cannot be installed: {trouble}")
    if not found:
        give_up(_("there is no PyTorch here to compare with"), HINT)
    return found


def with_module(pythons, module, why, hint=None):
    """The Pythons that can import a module; says why the others have no rows."""
    found = {version: python for version, python in pythons.items() if version_of(python, f"import {module};")[0]}
    for version in pythons:
        if version not in found:
            print(f"PyTorch   no rows for {version}: {why}" + (f"\n  HINT: {hint}" if hint else ""), flush=True)
    return found


def find_on_gpu(given):
    """{version: its Python}, for the Pythons in TORCH=, or else for the first that sees a GPU."""
    found = {}
    for python in given or ("python3", DISTRIBUTION):
        version, trouble = version_of(python, "torch.cuda.init();")
        if version:
            found[version] = python
        elif given:
            give_up(_("{python} has no PyTorch that sees a GPU: {trouble}").format(python=python, trouble=trouble), _("TORCH=python of an environment that has one"))
        if version and not given:
            break
    return found or give_up(_("there is no PyTorch here that sees a GPU"), _("TORCH=python of an environment that has one"))


def on_cpu(pythons):
    """{who: (its Python, where torch_twin.py runs)}: each version eager; since version 2, also
    compiled."""
    return {f"{version} {how}": (python, f"cpu-{how}") for version, python in pythons.items()
            for how in ("eager", "compiled") if how == "eager" or not version.startswith("1.")}


def step(python, sizes, layout, amp, where):
    """The output of torch_twin.py for one run."""
    return run(python, "torch_twin.py", layout.threads, layout.ranks, layout.tp, *sizes, layout.threads, VOCABULARY, amp, where)


def run(python, script, threads, *arguments):
    """The output of a script of this folder."""
    # The settings with which PyTorch is fastest: it keeps memory, and threads do not spin.
    tuned = dict(os.environ, OMP_WAIT_POLICY="PASSIVE", OMP_NUM_THREADS=str(threads), MALLOC_MMAP_THRESHOLD_=str(4 << 30),
                 MALLOC_TRIM_THRESHOLD_=str(16 << 30))
    command = [python, os.path.join(HERE, script), *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=tuned)
    if done.returncode:
        give_up(_("{python} cannot run PyTorch's step: {trouble}").format(python=python, trouble=said_last(done)), run_alone(command))
    return json.loads(done.stdout.splitlines()[-1])
