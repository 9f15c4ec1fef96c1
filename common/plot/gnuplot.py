"""Pictures by gnuplot, written atomically."""
import os
import re
import shutil
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../base"))  # the tests have a language.py, too
import output  # pylint: disable=wrong-import-position
from language import _, give_up  # pylint: disable=wrong-import-position

PICTURE = output.Kind(_("a picture of make plot"), b"drawn by Balise")
PNG_BEGINS, PNG_HEADER = b"\x89PNG\r\n\x1a\n", 25  # the signature, and the bytes of the chunk IHDR

TERMINALS = {".svg": 'svg size {width},{height} font "sans,12" background "white"', ".png": 'pngcairo size {width},{height} font "sans,12"'}


def is_there():
    return shutil.which("gnuplot") is not None


def quoted(text):
    """A string of gnuplot that holds just this text, on one line. In double quotes, gnuplot would run
    what stands between backquotes as a command."""
    return "'" + re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("'", "''") + "'"


def run(program):
    """Runs gnuplot; returns the bytes that it writes to its standard output."""
    if not is_there():
        give_up(_("gnuplot is not installed"), _("make setup installs it"))
    done = subprocess.run(["gnuplot"], input=program.encode(), capture_output=True, check=False)
    if done.returncode:
        said = _("gnuplot ended with status {status}: {words}")
        give_up(said.format(status=done.returncode, words=done.stderr.decode(errors="replace").strip()[:300]),
                _("is gnuplot fully installed? make setup installs it"))
    return done.stdout


def marked(picture):
    """The picture of gnuplot, with a comment: before the elements of SVG, or in a chunk of PNG."""
    if not picture.startswith(PNG_BEGINS):
        return picture.replace(b"?>", b"?>\n<!-- " + PICTURE.mark + b" -->", 1)
    text = b"tEXtSoftware\0" + PICTURE.mark
    first = len(PNG_BEGINS) + PNG_HEADER
    return picture[:first] + (len(text) - 4).to_bytes(4, "big") + text + zlib.crc32(text).to_bytes(4, "big") + picture[first:]


def draw(picture, program, width=900, height=360):
    """Writes a picture, .svg or .png by its name, atomically."""
    terminal = TERMINALS[os.path.splitext(picture)[1]].format(width=width, height=height)
    output.write(picture, PICTURE, marked(run(f"set terminal {terminal}\n{program}")))  # gnuplot itself would not notice a full disk
