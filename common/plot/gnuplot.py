"""Pictures by gnuplot, written atomically."""
import os
import shutil
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../base"))
from language import _, give_up  # pylint: disable=wrong-import-position

TERMINALS = {".svg": 'svg size {width},{height} font "sans,12" background "white"', ".png": 'pngcairo size {width},{height} font "sans,12"'}


def is_there():
    return shutil.which("gnuplot") is not None


def run(program):
    """Runs a gnuplot program; returns its output."""
    if not is_there():
        give_up(_("gnuplot is not installed"), _("make setup installs it"))
    done = subprocess.run(["gnuplot"], input=program, capture_output=True, text=True, check=False)
    if done.returncode:
        said = _("gnuplot ended with {status}: {words}")
        give_up(said.format(status=done.returncode, words=done.stderr.strip()[:300]),
                _("is the disk full?"))
    return done.stdout


def draw(picture, program, width=900, height=360):
    """Writes a picture, .svg or .png by its name, atomically."""
    terminal = TERMINALS[os.path.splitext(picture)[1]].format(width=width, height=height)
    beside = f"{picture}.{os.getpid()}"
    try:
        run(f'set terminal {terminal}\nset output "{beside}"\n{program}')
        os.replace(beside, picture)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
