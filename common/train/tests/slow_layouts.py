#!/usr/bin/python3
"""One model in every layout, as in layouts.py, with the other optimisers; and make layouts with
language models."""
import os
import shlex
import subprocess

from layouts_apart import at_every_layout
from runs import BUILD, ROOT, check

for name in ("SGD, dropout 0", "AdamW, dropout 0"):
    at_every_layout(name)


def make_layouts(steps, terminal=False, **settings):
    options = f"--layers 4 --hidden-dim 72 --heads 12 --batch-size 12 --seq 16 --steps {steps}"
    command = ["common/train/layouts.sh", BUILD]
    return subprocess.run(["script", "-qec", shlex.join(command), "/dev/null"] if terminal else command, cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "OPTIONS": options, **settings})


done = make_layouts(2, terminal=True, MODEL="gpt2")
rows = [line.split() for line in done.stdout.splitlines() if line[-1:] in ("✓", "✗")]
check(done.returncode == 0 and {row[-1] for row in rows} == {"✓"} and [row[-4] for row in rows[13:]] == ["3", "3", "3", "13", "13"],
      "on a terminal, make layouts prints one table, and a line for each other setting", done.stdout + done.stderr)
check(max(map(len, done.stdout.splitlines())) <= 80 and "In all 48 layouts" in done.stdout, "in 80 columns, with the sentence about all layouts", done.stdout)
for settings in ({"MODEL": "llama"}, {"MODEL": "bert", "TASK": "mlm"}, {"TASK": "mlm", "DATA": "data/stories/test.txt", "VOCAB": "data/reviews/vocab.txt"}):
    done = make_layouts(2, **settings)
    rows = [line.split() for line in done.stdout.splitlines() if line[-1:] in ("✓", "✗")]
    check(done.returncode == 0 and len(rows) == (48 if "MODEL" in settings else 54) and all(row[-1] == "✓" and 6 < float(row[3]) < 7.5 for row in rows),
          f"make layouts {settings} trains a language model, with one loss at thirteen layouts", done.stdout + done.stderr)
    check(max(map(len, done.stdout.splitlines())) <= 80, "and its table has 80 columns", done.stdout)
for settings, named in (({"MODEL": "large"}, "MODEL=large"), ({"MODEL": "hf:folder"}, "hf:folder"), ({"TASK": "mlm", "MODEL": "gpt2"}, "TASK=mlm"),
                        ({"DATA": "none.txt"}, "none.txt")):
    done = make_layouts(1, **settings)
    check(done.returncode == 2 and not done.stdout and done.stderr.count("error: ") == done.stderr.count("HINT: ") == 1 and named in done.stderr,
          f"make layouts {settings} is one error with a HINT", done.stdout + done.stderr)
