"""Files that scripts write for the user, as common/base/replacement.h does in C: a file replaces only
an earlier one of its kind, and only once it is complete."""
import os
from typing import NamedTuple

from language import _, give_up


class Kind(NamedTuple):
    """Outputs of one kind."""
    name: str    # with an article: "the file exists, and is not {name}"
    mark: bytes  # in the first 1000 bytes of each output of this kind


def must_be_of(kind, path):
    """Ends with an error if `path` names a file that is neither empty nor of this kind."""
    with open(path, "rb") as file:
        begin = file.read(1000)
    if begin and kind.mark not in begin:
        give_up(_("the file exists, and is not %s") % kind.name, _("name another file, or move this one away"), path)


def cannot_write(path, why):
    give_up(_("{path} cannot be written: {why}").format(path=path, why=why), _("name a file in a writable folder; is the disk full?"))


def make_room(path, kind, others=(), remove=False):
    """Call this before the work: ends with an error if the file cannot be written, or would replace a
    file of another kind.

    @param others what the command reads or also writes: pairs of a setting and its path
    @param remove whether to remove an earlier file, so none remains after a failed run"""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        give_up(_("there is no folder {folder}").format(folder=folder), _("create it with mkdir, or name another file"))
    if os.path.lexists(path) and not os.path.isfile(path):
        give_up(_("{path} is not a file").format(path=path), _("name another file, or move this one away"))
    for setting, other in others:
        if other and os.path.realpath(other) == os.path.realpath(path):
            give_up(_("{path} is also the file of {setting}").format(path=path, setting=setting), _("name two files"))
    try:
        if os.path.isfile(path):
            must_be_of(kind, path)
            if remove:
                os.unlink(path)
        with open(f"{path}.new", "wb"):
            pass
        os.unlink(f"{path}.new")
    except OSError as error:
        cannot_write(path, error.strerror)


def write(path, kind, content):
    """Writes these bytes atomically. Ends with an error if that fails; an earlier file then stays."""
    beside = f"{path}.{os.getpid()}"
    try:
        if os.path.isfile(path):
            must_be_of(kind, path)
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        cannot_write(path, error.strerror)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
