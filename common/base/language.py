"""Messages in the reader's language, for scripts, as in common/base/language.h; LANGUAGE is the
language's code."""
import gettext
import os
import sys


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
    """Prints an error and its hint; ends the program with status 2."""
    print(_("error: ") + what + ("\n" + _("  at %s") % where if where else "") + "\n" + _("  HINT: ") + hint, file=sys.stderr)
    sys.exit(2)
