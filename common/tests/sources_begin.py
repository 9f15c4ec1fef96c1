#!/usr/bin/env python3
"""Every source file begins with a comment that says what it is. The kit's own programs in Python
ignore PYTHONPATH and the like: a json.py of the user's must not stand in for Python's."""
import os
import re
import subprocess
import sys

os.chdir(os.environ.get("ROOT", "."))
listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False).stdout.split()
paths = [path for path in listed or (os.path.join(folder, name)[2:] for folder, _, names in os.walk(".") for name in names)
         if re.search(r"(^|/)Makefile$|\.(c|h|cc|cu|cuh|py|sh|bash|mk|js)$", path) and os.path.exists(path) and
         not path.startswith(("build/", "labs/", "solutions/")) and not re.search(r"/(start|mutants|accepts)/", path)]
BEFORE = r"(#!.*\n|# shellcheck .*\n|\"use strict\";\n|\s)*"
COMMENT = r"(/\*|//|#|r?\"\"\")(?!include|define|if|pragma)[\s*`]*(@file)?[\s*`]*\w"
PYTHON = ("#!/usr/bin/python3 -EsB\n", "#!/usr/bin/env -S python3 -EsB\n")
silent, open_to_users = [], []
for path in paths:
    with open(path, encoding="utf-8") as file:
        text = file.read(2000)
    if not re.match(COMMENT, text[re.match(BEFORE, text).end():]):
        silent.append(path)
    if path.endswith(".py") and text.startswith("#!") and not text.startswith(PYTHON) and not re.search("/tests/|/torch_|^slides/|/docs/|^data/gen", path):
        open_to_users.append(path)
print("not ok" if silent else "ok", "- every source file begins by saying what it is")
print("".join(f"    {path}\n" for path in silent), end="")
print("not ok" if open_to_users else "ok", "- the kit's programs ignore the user's settings of Python")
print("".join(f"    {path}\n" for path in open_to_users), end="")
sys.exit(bool(silent or open_to_users))
