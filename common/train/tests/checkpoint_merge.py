#!/usr/bin/env python3
"""checkpoint merge writes the full weights to one file that Python's safetensors can read.

The package comes from PyPI, into its own environment below the build folder.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

from checkpoints import newest, read_file, succeed, tool, undivided
from runs import BUILD, check

PACKAGE = "safetensors==0.7.0"
READ = """
import json, sys, hashlib, safetensors
with open(sys.argv[1], "rb") as file:
    tensors = safetensors.deserialize(file.read())
print(json.dumps({name: [t["dtype"], t["shape"], hashlib.sha256(t["data"]).hexdigest()] for name, t in tensors}))
"""


def environment():
    """The Python that has the package, or None; and the reason why there is none."""
    folder = os.path.join(BUILD, "venv-safetensors")
    python = os.path.join(folder, "bin", "python")
    probe = f"import safetensors; assert safetensors.__version__ == '{PACKAGE.partition('==')[2]}'"
    if os.path.exists(python) and not subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode:
        return python, ""
    for step in ([sys.executable, "-m", "venv", folder],
                 [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", PACKAGE]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return None, ((done.stderr + done.stdout).strip().splitlines() or ["no message"])[-1]
    return python, ""


def peer_reads(sentence, path, tensors):
    """Tests that the package reads the same names, shapes and bytes."""
    python, reason = environment()
    if not python:
        print(f"skip - {sentence}: pip cannot get {PACKAGE}: {reason}")
        return
    done = subprocess.run([python, "-c", READ, path], capture_output=True, text=True, check=False)
    expected = {name: ["F32", shape, hashlib.sha256(data).hexdigest()] for name, (shape, data) in tensors.items()}
    check(done.returncode == 0 and json.loads(done.stdout) == expected, sentence, done.stderr or done.stdout)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
    for ranks in (1, 2, 4):
        saved, merged = f"{temporary}/saved{ranks}", f"{temporary}/merged{ranks}"
        succeed(ranks, "--tp", ranks, "--test", "", "--steps", 2, "--save", saved)
        done = tool("merge", saved, merged)
        tensors, metadata = read_file(merged) if done.returncode == 0 else ({}, {})
        keys = {"format", "step", *(f"xxh3:{name}" for name in tensors)}
        check(tensors == undivided(newest(saved), "weight") and len(tensors) == 23 and metadata["format"] == "pt" and metadata["step"] == "2" and set(metadata) == keys,
              f"the merged weights of {ranks} ranks equal those of the shards", done.stderr)
        for folder in (saved, newest(saved), f"{temporary}/saved1"):
            done = tool("merge", saved, folder, "--hf")
            check(done.returncode == 2 and "holds a checkpoint" in done.stderr and not os.path.exists(f"{folder}/config.json"),
                  f"merge --hf of {ranks} ranks does not write into {os.path.basename(folder)}, which holds a checkpoint", done.stderr)
        shard = f"{newest(saved)}/rank-0-of-{ranks}.safetensors"
        over, again = tool("merge", saved, shard), tool("merge", saved, merged)
        check(over.returncode == 2 and "is not a merged checkpoint" in over.stderr and tool("info", saved).returncode == 0, "a shard is not replaced by the merged weights",
              over.stdout + over.stderr)
        check(again.returncode == 0 and read_file(merged) == (tensors, metadata), "an earlier merged file is replaced", again.stderr)
        check(not [name for name in os.listdir(temporary) if name.startswith(f"merged{ranks}.")], "no temporary file is left beside the merged file")
    peer_reads("Python's safetensors reads the merged file", merged, tensors)
    shard = os.path.join(newest(saved), "rank-1-of-4.safetensors")
    peer_reads("Python's safetensors reads a shard", shard, read_file(shard)[0])
