"""Pictures by gnuplot, written atomically."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../base"))  # the tests have a language.py, too
from language import _, give_up  # pylint: disable=wrong-import-position

TERMINALS = {".svg": 'svg size {width},{height} font "sans,12" background "white"', ".png": 'pngcairo size {width},{height} font "sans,12"'}


def is_there():
    return shutil.which("gnuplot") is not None


def run(program):
    """Runs gnuplot; returns the bytes that it writes to its standard output."""
    if not is_there():
        give_up(_("gnuplot is not installed"), _("make setup installs it"))
    done = subprocess.run(["gnuplot"], input=program.encode(), capture_output=True, check=False)
    if done.returncode:
        said = _("gnuplot ended with {status}: {words}")
        give_up(said.format(status=done.returncode, words=done.stderr.decode(errors="replace").strip()[:300]),
                _("is gnuplot installed completely? make setup installs it"))
    return done.stdout


def draw(picture, program, width=900, height=360):
    """Writes a picture, .svg or .png by its name, atomically."""
    terminal = TERMINALS[os.path.splitext(picture)[1]].format(width=width, height=height)
    beside = f"{picture}.{os.getpid()}"
    drawn = run(f"set terminal {terminal}\n{program}")  # gnuplot itself would not notice a full disk
    try:
        with open(beside, "wb") as file:
            file.write(drawn)
        os.replace(beside, picture)
    except OSError as error:
        give_up(f"{picture}: {error.strerror}", _("name a file in a writable folder; is the disk full?"))
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
