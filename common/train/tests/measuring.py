"""Shared by the tests of make bench and make model: the commands' own modules, and checks of their
output and their errors."""
import os
import subprocess
import sys

import runs

ROOT, BUILD = runs.ROOT, runs.BUILD
sys.path.insert(0, os.path.join(ROOT, "common/bench"))
os.chdir(ROOT)

OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BACKEND", "TRANSPORT", "NTASKS", "TP", "MODEL", "LAYERS", "HIDDEN_DIM", "HEADS", "SEQ", "BATCH_SIZE", "CLUSTER", "WEAK",
           "AMP")


def check(sentence, good, seen=""):
    runs.check(good, sentence, str(seen))


def run(*command, **given):
    """Runs a program without the settings of make or of the user's shell."""
    clean = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    return subprocess.run(command, env=dict(clean, **given), capture_output=True, text=True, check=False)


def refused(program, sentence, word, silent=True, **given):
    """Tests that a program ends with one error and one HINT and, if `silent`, prints nothing
    else."""
    done = run(program, BUILD, **given)
    check(sentence, done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("HINT: ") == 1 and word in done.stderr
          and not (silent and done.stdout), done.stdout + done.stderr)
