"""Messages in the reader's language, for scripts, as in common/base/language.h; LANGUAGE is the
language's code."""
import gettext
import io
import os
import sys
import textwrap


def sentences():
    """gettext's translations; none in the locale C."""
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return gettext.translation("balise", os.environ.get("TEXTDOMAINDIR", ""), ["C"] if locale in ("C", "POSIX") else None, fallback=True)


TRANSLATION = sentences()
LANGUAGE = TRANSLATION.info().get("language", "en")
_ = TRANSLATION.gettext


def counted(one, many, number):
    """"{n} rank" or "{n} ranks"."""
    return TRANSLATION.ngettext(one, many, number).format(n=number)


def give_up(what, hint, where=""):
    """Prints an error and its hint, on a terminal in 80 columns; ends the program with status 2."""
    text = _("error: ") + what + ("\n" + _("  at %s") % where if where else "") + "\n" + _("  HINT: ") + hint
    if sys.stderr.isatty():
        text = "\n".join(textwrap.fill(line, 80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    print(text, file=sys.stderr)
    sys.exit(2)


class Output(io.TextIOWrapper):
    """The standard output. Ends the program with an error if it cannot be written; without one if its
    reader has gone, as in make progress | head."""

    def _all_of(self, write, *arguments):
        try:
            return write(*arguments)
        except BrokenPipeError:
            os._exit(0)
        except OSError:
            print(_("error: ") + _("the output could not be written completely") + "\n" + _("  HINT: ") + _("free some space, then run the command again"), file=sys.stderr, flush=True)
            os._exit(2)

    def write(self, text):
        return self._all_of(super().write, text)

    def flush(self):
        self._all_of(super().flush)


if isinstance(sys.stdout, io.TextIOWrapper):  # not in a test that reads the output
    form = {"encoding": sys.stdout.encoding, "errors": sys.stdout.errors, "line_buffering": sys.stdout.line_buffering}
    sys.stdout = sys.__stdout__ = Output(sys.stdout.detach(), **form)  # shutil.get_terminal_size() reads __stdout__
