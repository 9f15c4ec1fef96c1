#!/usr/bin/python3
"""Bad input ends with one error, printed once and not once per rank, with a HINT and exit status
2."""
import gzip
import math
import os
import re
import shutil
import struct
import subprocess
import tempfile

from runs import BUILD, ROOT, check, command, run

SMALL = ["--layers", 1, "--hidden-dim", 24, "--heads", 2, "--batch-size", 4, "--seq", 16, "--steps", 1, "--test", ""]


def refused(sentence, words, ranks, *options, **environment):
    done = run(ranks, *SMALL, *options, **environment)
    text = done.stderr + done.stdout
    good = (done.returncode == 2 and text.count("error:") == 1 and text.count("HINT:") == 1 and
            all(word in text for word in words) and "Traceback" not in text and "MPI_ABORT" not in text)
    check(good, sentence, f"status {done.returncode}\n{text}")


def file_with(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    refused("8 heads over 3 ranks are refused", ["8 heads", "3 ranks"], 3, "--tp", 3, "--heads", 8, "--hidden-dim", 24)
    refused("a hidden size that the heads do not divide is refused", ["HIDDEN_DIM=100", "HEADS=8"], 1, "--hidden-dim", 100,
            "--heads", 8)
    refused("TP that does not divide NTASKS is refused", ["NTASKS=3 cannot be split by TP=2: NTASKS=2 or 4 can"], 3, "--tp", 2)
    refused("degrees whose product is not NTASKS are refused", ["NTASKS=4 cannot be split by TP=2 DP=2 PP=2: NTASKS=8 can"], 4, "--tp", 2, "--dp", 2,
            "--pp", 2, "--layers", 2)
    refused("fewer blocks than stages are refused", ["PP=3 stages", "LAYERS=2"], 3, "--pp", 3, "--layers", 2)
    refused("LAYERS=2 is not raised to the number of stages", ["PP=3 stages", "LAYERS=2"], 6, "--pp", 3, "--micro", 3, "--layers", 2)
    refused("BATCH_SIZE=32 is not raised to a multiple of the micro-batches", ["16 rows", "3 micro-batches"], 6, "--pp", 3, "--micro", 3, "--layers", 3,
            "--batch-size", 32)
    refused("a batch that the replicas cannot share is refused", ["BATCH_SIZE=5", "2 replicas"], 2, "--tp", 1, "--batch-size", 5)
    refused("micro-batches that do not divide a replica's rows are refused", ["4 rows", "3 micro-batches"], 1, "--micro", 3)
    refused("a ring without replicas is refused", ["ALLREDUCE=ring", "one replica"], 2, "--tp", 2, "--allreduce", "ring")
    refused("a size that stands before MODEL counts", ["cannot share LAYERS=2"], 3, "--layers", 2, "--model", "large", "--pp", 3)
    refused("another name for the sum over the replicas is refused", ["tree", "library or ring"], 1, "--allreduce", "tree")
    refused("a decay before the end of the warm-up is refused", ["DECAY=3", "WARMUP=5"], 1, "--warmup", 5, "--decay", 3)
    refused("AVERAGE without other replicas is refused", ["AVERAGE=4", "one replica"], 2, "--tp", 2, "--average", 4)
    refused("the largest number of steps is printed in full", ["it takes a whole number from 1 to 9007199254740992"], 1, "--steps", 1e16)
    refused("so is that of a real number", ["it takes a number from 0 to 1000000000000"], 1, "--clip", -1)
    for every in ("0", "-1", "often"):
        refused(f"AVERAGE={every} is refused", [every], 2, "--tp", 1, "--average", every)
        refused(f"PRINT={every} is refused", [every], 1, "--print", every)
    refused("a missing CSV is refused", ["nowhere.csv"], 2, "--tp", 2, "--data", f"{folder}/nowhere.csv")
    fifo, huge = os.path.join(folder, "fifo"), file_with(folder, "huge.csv", b"review,label\n")
    os.mkfifo(fifo)
    os.truncate(huge, 1 << 42)
    for option, path, words in [("data", "/dev/zero", "not a file"), ("data", "/dev/urandom", "not a file"), ("data", fifo, "not a file"), ("data", folder, "a folder"),
                                ("data", huge, "this machine's memory"), ("test", "/dev/zero", "not a file"), ("vocab", fifo, "not a file"),
                                ("metrics", fifo, "the metrics cannot be written"),
                                ("metrics", "/dev/full", "the metrics cannot be written: No space left on device"), ("trace", fifo, "not a file")]:
        refused(f"--{option} {path.replace(folder, '.')} is refused", [path, words], 2, "--tp", 2, f"--{option}", path)
    refused("an empty CSV is refused", ["empty.csv"], 2, "--tp", 2, "--data", file_with(folder, "empty.csv", b""))
    for what, name, row, words in [
            ("a row without a label", "label.csv", b"no label here\n", ["row 2"]),
            ("a third column", "third.csv", b"a film,1,2\n", ["row 2"]),
            ("a label that is neither class", "class.csv", b"a film,maybe\n", ["row 2", "maybe"]),
            ("invalid UTF-8", "utf8.csv", b"a \xff film,1\n", ["row 2", "UTF-8"]),
            ("a zero byte", "zero.csv", b"a\x00 film,1\n", ["row 2", "line 3", "zero byte"])]:
        refused(f"{what} is refused with its row", [name, *words], 2, "--tp", 2, "--data",
                file_with(folder, name, b"review,label\ngood,1\n" + row))
    for token in ("[UNK]", "[CLS]", "[SEP]", "[PAD]"):
        rest = [t for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "film") if t != token]
        refused(f"a vocabulary without {token} is refused", [token], 1, "--vocab",
                file_with(folder, "vocab.txt", "\n".join(rest).encode()))
    with open(f"{ROOT}/data/reviews/vocab.txt", "rb") as file:
        words = file.read()
    refused("a zero byte in a vocabulary is refused", ["a zero byte at byte"], 1, "--vocab", file_with(folder, "vocab.txt", words.replace(b"\nfilm\n", b"\nfi\0lm\n")))
    refused("a web page in place of a tokenizer is refused", ["the tokenizer is a web page"], 1, "--model", "llama", "--vocab",
            file_with(folder, "tokenizer.model", b"<!DOCTYPE html><html><head><title>404 Not Found</title></head></html>\n"))
    gpt2 = shutil.copytree(f"{ROOT}/data/stories/gpt2", f"{folder}/gpt2")
    for name in "merges.txt", "vocab.json":
        with open(f"{ROOT}/data/stories/gpt2/{name}", "rb") as file:
            file_with(gpt2, name, file.read() + b"\0\n")
        refused(f"a zero byte in {name} is refused", [name, "a zero byte at byte"], 1, "--model", "gpt2", "--vocab", gpt2)
        shutil.copy(f"{ROOT}/data/stories/gpt2/{name}", gpt2)
    nan, saved = shutil.copytree(f"{ROOT}/common/pretrained/tests/models/bert", f"{folder}/nan"), f"{folder}/saved"
    with open(f"{nan}/model.safetensors", "r+b") as file:
        file.seek(int.from_bytes(file.read(8), "little") + 8)
        file.write(struct.pack("<f", math.nan))
    file_with(nan, "vocab.txt", "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijkl"]).encode())
    done = run(2, "--tp", 2, "--model", f"hf:{nan}", "--batch-size", 4, "--seq", 8, "--steps", 1, "--test", "", "--save", saved)
    check(done.returncode == 2 and " is not finite in the model" in done.stderr and "nothing can be computed from NaN" in done.stderr and done.stderr.count("HINT:") == 1,
          "a model with a weight that is NaN is refused", done.stderr)
    check(not os.path.exists(saved), "a run that was refused leaves no SAVE folder", str(os.listdir(folder)))
    refused("MODEL=hf: without a folder is refused", ["MODEL cannot be 'hf:'", "hf:FOLDER"], 1, "--model", "hf:")
    refused("a LLaMA with dropout is refused by the name that was given", ["MODEL=llama has no DROPOUT"], 1, "--model", "llama", "--dropout", 0.1)
    rows = "review,label\na film,1\n"
    times = ("rows", 1), ("line-breaks", 0x0A0A0A0A), ("quotes", 0x22222222)  # in the file's first bytes
    packed = [(f"{name}.gz", gzip.compress(rows.encode() * 9, mtime=time), "gunzip") for name, time in times]
    for name, content, hint in [("utf16.csv", rows.encode("utf-16"), "iconv -f utf-16"), *packed]:
        refused(f"{name} is refused with a hint that helps", [name, hint], 1, "--data", file_with(folder, name, content))
    refused("OMP_NUM_THREADS that is no number is refused", ["OMP_NUM_THREADS cannot be 'abc'"], 2, "--tp", 2, OMP_NUM_THREADS="abc")
    refused("SEQ below 2 is refused", ["SEQ", "'1'"], 2, "--tp", 2, "--seq", 1)
    refused("a batch larger than the data is refused", ["larger than the data", "64", "32 rows"], 2, "--tp", 2,
            "--batch-size", 64, "--samples", 32)
    refused("fewer rows than replicas are refused", ["larger than the data", "3 rows"], 4, "--tp", 1, "--samples", 3)
    refused("an unknown precision is refused", ["AMP", "'fp8'", "off, bf16"], 2, "--tp", 2, "--amp", "fp8")
    for amp in ("fp16", "tf32"):
        refused(f"{amp} is refused: it needs a GPU", [f"AMP={amp}", "GPU", "AMP=bf16"], 2, "--tp", 2, "--amp", amp)
    needed = subprocess.run(["readelf", "-d", f"{BUILD}/balise-onednn.so"], capture_output=True, text=True, check=True).stdout
    broken = os.path.dirname(file_with(folder, re.search(r"\[(libdnnl[^]]*)\]", needed)[1], b"no library"))
    refused("bf16 without oneDNN is refused", ["oneDNN", "make setup"], 2, "--tp", 2, "--amp", "bf16", LD_LIBRARY_PATH=broken)
    refused("the largest sizes are refused, in seconds", ["do not fit"], 1, "--layers", 10000, "--hidden-dim", 1048576, "--heads", 1048576)
    refused("an unknown option is refused", ["--colour"], 1, "--colour", "red")
    refused("an option whose value is not a number is refused", ["'many'"], 1, "--epochs", "many")
    refused("a metrics file that cannot be written is refused before training", ["metrics"], 2, "--tp", 2, "--metrics",
            f"{folder}/no/such/folder.jsonl")
    full = os.path.join(folder, "full")
    os.mkdir(full)
    script = f'mount -t tmpfs -o size=64k none {full} && (head -c 1M /dev/zero > {full}/all; "$@"; status=$?; ls {full}; exit $status) 2>&1'
    walls = subprocess.run(["unshare", "-rm", "true"], capture_output=True, text=True, check=False).stderr
    if walls:
        print(f"skip - a metrics file on a full disk is refused before training, and removed: {walls.strip()}")
    else:
        dry = subprocess.run(["unshare", "-rm", "bash", "-c", script, "bash", f"{BUILD}/train", "--dry", "1", "--metrics", f"{full}/m.jsonl"], cwd=ROOT,
                             capture_output=True, text=True, check=False)
        check(dry.returncode == 2 and "No space left" in dry.stdout and "free some space" in dry.stdout and dry.stdout.endswith("\nall\n"),
              "a metrics file on a full disk is refused before training, and removed", dry.stdout + dry.stderr)
    earlier = b'{"step":1,"comm_bytes":0}\n'
    kept = file_with(folder, "kept.jsonl", earlier)
    subprocess.run([f"{BUILD}/train", "--dry", "1", "--metrics", kept], cwd=ROOT, check=False)
    check(os.path.getsize(kept) == len(earlier), "an existing metrics file is kept until training begins", str(os.path.getsize(kept)))
    os.symlink("kept.jsonl", f"{folder}/link")
    for option, name, words in ("metrics", "huge.csv", "is not a file of metrics"), ("trace", "kept.jsonl", "is not a trace"), ("trace", "link", "is not a trace"):
        refused(f"--{option} does not replace {name}", [words, "name another file"], 2, "--tp", 2, f"--{option}", f"{folder}/{name}")
    check(os.path.getsize(kept) == len(earlier) and os.path.islink(f"{folder}/link"), "the files are as they were", str(os.listdir(folder)))
    for one in "new", "kept.jsonl":
        refused(f"METRICS={one} and TRACE=./{one} are one file", ["METRICS and TRACE name the same path"], 2, "--tp", 2, "--metrics", f"{folder}/{one}", "--trace",
                f"{folder}/./{one}")
    check(not os.path.exists(f"{folder}/new"), "a refused run creates no metrics")
    refused("SAVE and METRICS with the same new path are refused", ["METRICS and SAVE name the same path"], 2, "--tp", 2, "--metrics", f"{folder}/new", "--save", f"{folder}/./new")
    refused("also in a run without its data", ["nowhere.csv"], 2, "--tp", 2, "--metrics", f"{folder}/new", "--data", f"{folder}/nowhere.csv")
    subprocess.run([f"{BUILD}/train", "--dry", "1", "--metrics", f"{folder}/new"], cwd=ROOT, check=False)
    check(not os.path.exists(f"{folder}/new"), "neither leaves a file or a folder")
    refused("a cache that cannot be written is refused", ["cache"], 2, "--tp", 2, "--cache", "/proc/nowhere")
    refused("a run that does not fit in MEM is refused, with what the memory holds",
            ["do not fit", "weights", "gradients", "optimiser", "activations"], 2, "--tp", 2, "--mem", "2M", "--hidden-dim",
            256, "--heads", 4)

refused("ranks that MPI does not connect are one error", ["3 ranks were started", "each sees a world of 2", "make doctor"], 2, "--tp", 2, "--ranks", 3)
dry = subprocess.run([f"{BUILD}/train", "--dry", "1", "--ranks", "3", "--tp", "2"], cwd=ROOT, capture_output=True, text=True)
check(dry.returncode == 2 and "TP=2" in dry.stderr and dry.stderr.count("HINT:") == 1 and not dry.stdout,
      "a dry run refuses options that do not fit", dry.stderr)
lost = subprocess.run([f"{BUILD}/train", "--dry", "1", "--data", "/nowhere"], cwd=ROOT, capture_output=True, text=True)
check(lost.returncode == 2 and lost.stderr.startswith("error: the file cannot be read: No such file or directory\n  at /nowhere\n"),
      "a dry run refuses files that do not exist", lost.stderr)
good = subprocess.run([f"{BUILD}/train", "--dry", "1", "--ranks", "4", "--tp", "2"], cwd=ROOT, capture_output=True, text=True)
check(good.returncode == 0 and not good.stdout + good.stderr, "a dry run prints nothing if the options fit", good.stderr + good.stdout)

sizes = ["--hidden-dim", 24, "--heads", 2, "--seq", 16, "--samples", 48, "--steps", 1, "--test", ""]
for sentence, options, words in [
        ("without LAYERS and BATCH_SIZE, three stages get a block each, and the micro-batches six rows each", [6, "--pp", 3, "--micro", 3],
         ["BERT, 3 layers", "3 micro-batches of 6 rows", "steps of 36 rows"]),
        ("with one stage and replicas that share 32 rows evenly, they are 2 and 32", [2, "--tp", 1], ["BERT, 2 layers", "steps of 32 rows"]),
        ("three replicas get 33 rows", [3], ["BERT, 2 layers", "steps of 33 rows"])]:
    done = run(*options, *sizes)
    check(done.returncode == 0 and all(word in done.stdout for word in words), sentence, done.stdout + done.stderr)

started = file_with("/tmp", f"balise-started-{os.getpid()}", b"")
counting = file_with("/tmp", f"balise-train-{os.getpid()}", f'#!/bin/sh\necho x >> {started}\nexec {BUILD}/train "$@"\n'.encode())
os.chmod(counting, 0o755)
words = [counting if word == f"{BUILD}/train" else word for word in command(200, "--tp", 200, "--heads", 8)]
many = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
with open(started, encoding="utf-8") as file:
    check(many.returncode == 2 and "8 heads" in many.stderr and many.stderr.count("HINT:") == 1 and len(file.readlines()) == 1,
          "options that do not fit 200 ranks are refused before the ranks start", many.stderr)
os.unlink(started)
os.unlink(counting)
no_mpi = subprocess.run(["/bin/bash", *command(2, "--tp", 2)], cwd=ROOT, capture_output=True, text=True,
                        env={**os.environ, "PATH": f"{BUILD}/nothing-here"})
check(no_mpi.returncode == 2 and "MPI is not installed" in no_mpi.stderr and "HINT" in no_mpi.stderr,
      "a missing MPI is named", no_mpi.stderr)
for flag, limit, words in ("v", 300000, "address space"), ("n", 20, "open files"):
    done = subprocess.run(["bash", "-c", f'ulimit -{flag} {limit} && exec timeout 20 "$@"', "bash", *command(2, "--tp", 2)], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    check(done.returncode == 2 and f"ulimit -{flag} is {limit}" in done.stderr and words in done.stderr and done.stderr.count("\n") == 2,
          f"ulimit -{flag} {limit} is refused before anything starts", done.stderr)
if not BUILD.endswith("/sanitized"):  # AddressSanitizer needs terabytes of address space
    done = subprocess.run(["bash", "-c", 'ulimit -v 900000 && exec "$@"', "bash",
                           *command(2, "--tp", 2, "--layers", 8, "--hidden-dim", 1024, "--heads", 8, "--steps", 1, "--test", "")],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    check(done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 2,
          "ulimit -v below what a model needs ends with one error, and mpirun adds nothing", done.stderr)
done = subprocess.run(["bash", "-c", 'ulimit -t 1 && exec "$@"', "bash",
                       *command(1, "--layers", 4, "--hidden-dim", 256, "--heads", 4, "--batch-size", 32, "--test", "")], cwd=ROOT, capture_output=True, text=True, check=False)
check("was killed by signal" in done.stderr and "HINT: ulimit -t limits a rank to 1 s of CPU time" in done.stderr, "a run that ulimit -t kills says so", done.stderr)
unsplit = subprocess.run(command(2, "--pp", 2, stage=11), cwd=ROOT, capture_output=True, text=True)
check(unsplit.returncode == 2 and "before lab 12" in unsplit.stderr and unsplit.stderr.count("HINT:") == 1,
      "before lab 12, more than one stage is refused", unsplit.stderr)
early = subprocess.run(command(2, "--tp", 1, stage=7), cwd=ROOT, capture_output=True, text=True)
check(early.returncode == 2 and "before lab 9" in early.stderr, "before lab 9, TP smaller than NTASKS is refused",
      early.stderr)
computed = subprocess.run(command(2, "--dp", 1, *SMALL, stage=7), cwd=ROOT, capture_output=True, text=True)
check(computed.returncode == 0 and "tensor parallel 2, data" in computed.stdout, "before lab 9, DP=1 leaves all ranks to TP", computed.stderr)
stages = subprocess.run(command(2, "--tp", 2, stack="serial", stage=0), cwd=ROOT, capture_output=True, text=True)
check(stages.returncode == 2 and "STACK=serial" in stages.stderr, "the serial stack on two ranks is refused", stages.stderr)
