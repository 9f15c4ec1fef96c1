"""Runs with checkpoints, and a Python reader for their files, for the tests beside this file."""
import json
import os
import struct
import subprocess

from runs import BUILD, ROOT, command

SMALL = ["--layers", 2, "--hidden-dim", 64, "--heads", 4, "--batch-size", 8, "--seq", 48, "--samples", 128, "--threads", 1,
         "--lr", 1e-3]
ON_TWO = ["--tp", 2, "--test", ""]


def train(ranks, *options, **how):
    """The finished process, with its output as text."""
    return subprocess.run(command(ranks, *SMALL, *options), cwd=ROOT, capture_output=True, text=True, check=False, **how)


def succeed(ranks, *options):
    done = train(ranks, *options)
    if done.returncode:
        raise SystemExit(f"not ok - training runs\n    {' '.join(map(str, options))}\n{done.stdout}{done.stderr}")
    return done


def tool(*options):
    return subprocess.run([f"{BUILD}/checkpoint", *options], capture_output=True, text=True, check=False)


def curve(path):
    """The part of a metrics file that repeats exactly: step numbers, losses, learning rates,
    evaluations."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    times = {"step_s", "tokens_per_s", "comm_s", "comm_exposed_s"}
    return [{key: value for key, value in line.items() if key not in times} for line in lines if "ranks" not in line]


def losses(path):
    return [line["loss"] for line in curve(path) if "step" in line]


def refusal(done):
    """The reason why the output is not one clear error; an empty text if it is one."""
    text = done.stderr + done.stdout
    good = (done.returncode == 2 and text.count("error:") == 1 and text.count("HINT:") == 1 and
            not any(word in text for word in ("MPI_ABORT", "Sanitizer", "Segmentation", "signal")))
    return "" if good else f"status {done.returncode}\n{text}"


def contents(folder):
    """All files below a folder except the lock."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            place = os.path.join(path, name)
            if name != ".lock" and os.path.isfile(place):
                with open(place, "rb") as file:
                    found[place] = file.read()
    return found


def newest(folder):
    return os.path.join(folder, max(name for name in os.listdir(folder) if name.startswith("step-")))


# ---- safetensors, as documented ----


def read_file(path):
    """{name: (shape, bytes)}, and the metadata."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32"
        tensors[name] = (entry["shape"], data[8 + length + begin:8 + length + end])
    return tensors, metadata


def write_file(path, header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text) if length is None else length) + text + data)


def joined(parts, dim):
    """The bytes of the joined parts: matrices side by side (dim 1), or one after the other (dim
    0)."""
    if dim == 0 or len(parts) == 1:
        return b"".join(data for _, data in parts)
    rows = parts[0][0][0]
    assert all(len(shape) == 2 and shape[0] == rows for shape, _ in parts)
    return b"".join(data[r * len(data) // rows:(r + 1) * len(data) // rows] for r in range(rows) for _, data in parts)


def undivided(checkpoint, state):
    """{name: (shape, bytes)} of all weights, m or v, in full."""
    with open(os.path.join(checkpoint, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    tp = index["tp"]
    files = [read_file(os.path.join(checkpoint, f"rank-{k}-of-{tp}.safetensors"))[0] for k in range(tp)]
    whole = {}
    for name, entry in index["parameters"].items():
        dim = int(entry["placement"][6:-1]) if entry["placement"].startswith("shard(") else 0
        parts = [file[f"{state}/{name}"] for file in files if f"{state}/{name}" in file]
        whole[name] = (entry["shape"], joined(parts, dim))
    return whole
