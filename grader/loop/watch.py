#!/usr/bin/python3 -EsB
"""make watch LAB=6: grades a lab whenever its file is saved, and prints what has changed. Ctrl-C
ends it."""
import contextlib
import glob
import os
import re
import shlex
import subprocess
import sys
import time

from labs import _, bad, give_up, good, quiet, the_lab

LOOK_EVERY = 0.2  # seconds; polls, because inotify does not work on Windows and network folders


def saved(lab):
    """When a file of the lab's folder was last written. Hidden files do not count: Emacs keeps a link
    to nowhere beside a file with unsaved changes."""
    times = [0]
    for file in glob.glob(f"{lab.folder}/*.[ch]"):
        with contextlib.suppress(FileNotFoundError):
            times.append(os.stat(file).st_mtime_ns)
    return max(times)


def grade(lab, command):
    """The checks of a new verdict, or nothing if there is none. Shows errors, except make's own
    line."""
    before = lab.verdict() or {"when": None}
    with subprocess.Popen([*command, "grade", f"LAB={lab.number}"], stderr=subprocess.PIPE, text=True) as run:
        sys.stderr.writelines(line for line in run.stderr if "*** [" not in line)
    found = lab.verdict() or before
    return {check["name"]: check for check in found["checks"]} if found["when"] != before["when"] else {}


def cause(check):
    """Why a check fails, without the numbers and sizes, which depend on the seed."""
    return re.sub(r"\(.*?\)|[-+.\w]*\d[-+.\w]*", "", check.get("reason", ""), flags=re.DOTALL)


def place(check):
    """The line that the reason names, such as attention.c:29."""
    return "".join(re.findall(r"[-\w]+\.c:\d+", check.get("reason", ""))[:1])


def tell_changes(before, now):
    """Prints what has changed: a line for each check, or one line if all changed alike."""
    changes = {name: (before[name]["status"], check["status"]) for name, check in now.items() if name in before and before[name]["status"] != check["status"]}
    if len(now) == len(changes) > 1 and len(set(changes.values())) == 1:
        changes = {_("all checks"): next(iter(changes.values()))}
    for name, (was, status) in changes.items():
        words = _("{check}: {before} → {now}").format(check=_(name), before=_(was), now=_(status))
        print("  " + (good(words) if status == "passed" else bad(words) if was == "passed" else words))
    for name in [name for name in now if name in before and name not in changes]:
        was, check = before[name], now[name]
        if cause(was) != cause(check):
            changes[name] = _("{check}: the reason has changed").format(check=_(name))
        elif place(was) != place(check):
            changes[name] = _("{check}: the same reason, now at {place}").format(check=_(name), place=place(check))
        if name in changes:
            print("  " + changes[name])
    points = [sum(check["points"] for check in checks.values()) for checks in (before, now)]
    if before and points[0] != points[1]:
        print(_("  {before} → {now} points").format(before=points[0], now=points[1]))
    elif before and not changes:
        print(quiet(_("  the verdict has not changed")))


def watch():
    lab, command = the_lab("watch"), shlex.split(os.environ["GRADING"])
    if not os.path.exists(lab.file):
        give_up(_("there is no {file}").format(file=lab.file), f"make start LAB={lab.number}")
    checks, seen = {}, None
    while True:
        now = saved(lab)
        if now == seen:
            time.sleep(LOOK_EVERY)
            continue
        seen = now
        print(quiet(f"---- {time.strftime('%H:%M:%S')} " + "-" * 60), flush=True)
        found = grade(lab, command)
        if found:
            tell_changes(checks, found)
        checks = found or checks
        print(quiet(_("waiting for {file} to be saved; Ctrl-C ends this").format(file=os.path.basename(lab.file))), flush=True)


try:
    watch()
except KeyboardInterrupt:
    print()
    sys.exit(0)
