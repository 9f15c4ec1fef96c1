#!/usr/bin/python3
"""A damaged checkpoint, one of another model, or a folder that cannot be written ends a run before
its first step, with one error and exit status 2, and without changing anything on disk."""
import fcntl
import json
import math
import os
import shutil
import stat
import struct
import subprocess
import tempfile

from checkpoints import ON_TWO, SMALL, contents, newest, read_file, refusal, succeed, tool, train, write_file
from runs import BUILD, check, command


class Case:
    """A copy of a checkpoint, which a test damages."""

    def __init__(self, good):
        self.folder = good + "-damaged"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(good, self.folder)
        self.checkpoint = newest(self.folder)
        self.index = os.path.join(self.checkpoint, "index.json")
        self.shard = os.path.join(self.checkpoint, "rank-1-of-2.safetensors")

    def edit_index(self, edit):
        with open(self.index, encoding="utf-8") as file:
            index = json.load(file)
        del index["xxh3"]
        edit(index)
        with open(self.index, "w", encoding="utf-8") as file:
            json.dump(index, file)

    def edit_shard(self, edit):
        tensors, metadata = read_file(self.shard)
        metadata, tensors = edit(metadata, tensors) or (metadata, tensors)
        header, data = {"__metadata__": metadata}, b""
        for name, (shape, values) in tensors.items():
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
        write_file(self.shard, header, data)


def refused(sentence, words, done, folder, before):
    why = refusal(done)
    text = done.stderr + done.stdout
    if not why and not all(word in text for word in words):
        why = f"it does not say {words}\n{text}"
    if not why and contents(folder) != before:
        why = f"the folder was changed: {sorted(set(contents(folder)) ^ set(before))}"
    check(not why and "step 3" not in done.stdout, sentence, why or text)


def damaged(good, sentence, words, damage):
    """Tests that both training and build/checkpoint reject a damaged checkpoint."""
    case = Case(good)
    damage(case)
    before = contents(case.folder)
    done = train(2, *ON_TWO, "--steps", 4, "--save", case.folder, "--resume", case.folder)
    refused(f"{sentence} is refused by training", words, done, case.folder, before)
    info, merge = tool("info", case.folder), tool("merge", case.folder, f"{case.folder}/merged")
    check(not refusal(info) and not refusal(merge) and contents(case.folder) == before, f"{sentence} is refused by checkpoint",
          refusal(info) + refusal(merge))


def cut(case, size):
    os.truncate(case.shard, size)


def transpose(case):
    def edit(metadata, tensors):
        tensors["weight/embedding.weight"] = (tensors["weight/embedding.weight"][0][::-1], tensors["weight/embedding.weight"][1])
    case.edit_shard(edit)


def shorter(case):
    def edit(metadata, tensors):
        (rows, columns), data = tensors["m/blocks.0.attention.query"]
        tensors["m/blocks.0.attention.query"] = ([rows - 1, columns], data[:-4 * columns])
    case.edit_shard(edit)


def without(name):
    def damage(case):
        def edit(metadata, tensors):
            del tensors[name]
        case.edit_shard(edit)
    return damage


def other_step(case):
    def edit(metadata, tensors):
        metadata["step"] = "1"
    case.edit_shard(edit)


def reversing_step(case):
    def edit(metadata, tensors):
        metadata["step"] = "\u202e1"
    case.edit_shard(edit)


def other_rank(case):
    shutil.copy(os.path.join(case.checkpoint, "rank-0-of-2.safetensors"), case.shard)


def of_run(other):
    """The shard of a run with another seed."""
    return lambda case: shutil.copy(os.path.join(newest(other), "rank-1-of-2.safetensors"), case.shard)


def damages(good):
    size = os.path.getsize(Case(good).shard)
    for what, bytes_left in (("in its length", 5), ("in its header", 500), ("in its data", size - 4)):
        damaged(good, f"a shard cut short {what}", ["rank-1-of-2.safetensors", "cut short"],
                lambda case, left=bytes_left: cut(case, left))
    damaged(good, "a missing shard", ["rank-1-of-2.safetensors", "missing", "should have 2 of them"],
            lambda case: os.remove(case.shard))
    damaged(good, "a shard of another step", ["step 1,", "from step 2"], other_step)
    damaged(good, "a shard whose step would reverse the direction of text", ["from step ?1,"], reversing_step)
    damaged(good, "the shard of another rank", ["rank-1-of-2.safetensors", "of rank 0, not of rank 1"], other_rank)
    other = good + "-other"
    succeed(2, *ON_TWO, "--steps", 2, "--seed", 8, "--save", other)
    damaged(good, "a shard of another run", ["rank-1-of-2.safetensors", "another checkpoint"], of_run(other))
    damaged(good, "a shard with a transposed shape", ["embedding.weight", "[32,968]", "[968,64]"], transpose)
    damaged(good, "a shard with a shorter part", ["m of blocks.0.attention.query", "63", "[64,64]"], shorter)
    damaged(good, "a shard without a parameter's state", ["v of classifier.head.up.weight", "missing"],
            without("v/classifier.head.up.weight"))
    damaged(good, "an index that is cut short", ["index.json"], lambda case: os.truncate(case.index, 300))
    damaged(good, "an index of a later version", ["index.json", "version 1"],
            lambda case: case.edit_index(lambda index: index.update(version=2)))
    damaged(good, "an index with another shape", ["embedding.weight"],
            lambda case: case.edit_index(lambda index: index["parameters"]["embedding.weight"].update(shape=[969, 64])))
    damaged(good, "an index without a parameter's placement", ["index.json"],
            lambda case: case.edit_index(lambda index: index["parameters"]["embedding.weight"].pop("placement")))
    damaged(good, "a name with control characters", ["index.json"],
            lambda case: case.edit_index(lambda index: index["parameters"].update({"a\n\x1b[31m": index["parameters"]["embedding.weight"]})))
    damaged(good, "an index whose optimiser has done more steps than the run", ["index.json"],
            lambda case: case.edit_index(lambda index: index["optimizer"].update(steps=2**63 - 1)))
    for part, key, value in (("epoch", "loss_sum", -1), ("epoch", "correct", 1e9), ("model", "dropout", 2), ("model", "epsilon", -1)):
        damaged(good, f"an index in which {key} is {value}", ["index.json"],
                lambda case, part=part, key=key, value=value: case.edit_index(lambda index: index[part].update({key: value})))
    for name in ("index", "shard"):
        damaged(good, f"a FIFO instead of the {name}", ["is not a file"], lambda case, name=name: replace_by_fifo(getattr(case, name)))


def replace_by_fifo(path):
    os.remove(path)
    os.mkfifo(path)


def flipped_bits(good):
    """Damage anywhere in a shard's numbers or in the index is rejected, with the older checkpoint
    in the hint."""
    for name in ("shard", "index"):
        accepted = []
        for bit in range(20):
            case = Case(good)
            with open(getattr(case, name), "r+b") as file:
                size = file.seek(0, os.SEEK_END)
                header = 8 + struct.unpack("<Q", read_at(file, 0, 8))[0] if name == "shard" else 0
                at = header + (size - header) * bit // 20 + bit % 4
                byte = read_at(file, at, 1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 1 << bit % 8]))
            info, merge = tool("info", case.folder), tool("merge", case.folder, f"{case.folder}/merged")
            if refusal(info) or "beside it is intact" not in info.stderr or (name == "index" and refusal(merge)):
                accepted.append((at, bit % 8, info.stderr, merge.stderr))
            if bit % 5 == 0:
                done = train(2, *ON_TWO, "--steps", 4, "--resume", case.folder)
                if refusal(done) or "beside it is intact" not in done.stderr:
                    accepted.append((at, bit % 8, done.stdout + done.stderr))
        check(not accepted, f"a bit that flipped in {'the numbers of a shard' if name == 'shard' else 'the index'} is detected, in 20 of 20 cases", str(accepted))


def read_at(file, offset, count):
    file.seek(offset)
    return file.read(count)


def older_kit(good):
    """A run resumes from files without checksums, with a warning that their numbers cannot be
    checked."""
    case = Case(good)
    case.edit_index(lambda index: None)
    for rank in range(2):
        case.shard = os.path.join(case.checkpoint, f"rank-{rank}-of-2.safetensors")
        case.edit_shard(lambda metadata, tensors: ({"step": metadata["step"]}, tensors))
    done, info = train(2, *ON_TWO, "--steps", 4, "--resume", case.folder), tool("info", case.folder)
    check(done.returncode == 0 and done.stderr.count("has no checksums") == 1, "a run resumes from a checkpoint without checksums, with one warning", done.stdout + done.stderr)
    check(info.returncode == 0 and "checksums   none" in info.stdout, "build/checkpoint reports that there are none", info.stdout + info.stderr)
    case.edit_shard(lambda metadata, tensors: (metadata, {name: (shape, b"\0\0\xc0\x7f" * (len(data) // 4) if name == "weight/classifier.head.up.weight" else data)
                                                          for name, (shape, data) in tensors.items()}))
    before = contents(case.folder)
    done = train(2, *ON_TWO, "--steps", 4, "--save", case.folder, "--resume", case.folder)
    refused("weights that are not numbers are refused", ["classifier.head.up.weight is not finite", "had diverged"], done, case.folder, before)


def divergence(folder):
    """A run that diverges ends with an error and keeps its last good checkpoint, whether the loss
    or a weight shows the divergence first."""
    for sentence, options, words in [
            ("in the loss", ["--every", 100], ["the loss after step"]), ("in the weights, before they are saved", ["--every", 1], ["no longer finite", "still has the checkpoint of step"])]:
        place = f"{folder}/diverged"
        shutil.rmtree(place, ignore_errors=True)
        done = train(2, "--tp", 2, "--test", "", "--steps", 40, "--save", place, *options, "--lr", 1e6)
        why = refusal(done)
        steps = [name for name in (os.listdir(place) if os.path.exists(place) else []) if name.startswith("step-")]
        kept = [tool("merge", f"{place}/{name}", f"{folder}/kept") for name in steps]
        finite = not kept or all(math.isfinite(x) for _, data in read_file(f"{folder}/kept")[0].values() for (x,) in struct.iter_unpack("<f", data))
        check(not why and all(word in done.stderr for word in ["diverged", "smaller LR", *words]) and "rank  peak" not in done.stdout and finite and bool(kept) == ("--every" in options and options[1] == 1),
              f"a run that diverges ends with an error {sentence}", why or done.stdout + done.stderr + str(steps))



def older_beside(good):
    """The error names the older checkpoint only if that is intact; after the damaged one is moved
    away, the run resumes from the older one."""
    case = Case(good)
    cut(case, 500)
    older = f"{case.folder}/step-000001"
    resume = ["--steps", 4, "--save", case.folder, "--resume", case.folder]
    for name, done in (("training", train(2, *ON_TWO, *resume)), ("checkpoint", tool("info", case.folder))):
        hint = [line for line in done.stderr.splitlines() if "HINT:" in line]
        check(not refusal(done) and f"the older {older} beside it is intact" in "".join(hint),
              f"{name} names the older checkpoint beside a damaged one", done.stderr)
    os.rename(case.checkpoint, case.folder + "/away")
    done = train(2, *ON_TWO, *resume)
    check(done.returncode == 0 and "continues after step 1" in done.stdout, "and the run resumes from that one, as the hint says", done.stderr)
    case = Case(good)
    cut(case, 500)
    os.truncate(f"{older}/rank-0-of-2.safetensors", 500)
    done = train(2, *ON_TWO, *resume)
    check(not refusal(done) and older not in done.stderr, "an older one that is damaged too is not named", done.stderr)


def other_runs(good, folder):
    vocabulary, reviews = f"{folder}/vocabulary", f"{folder}/reviews"
    with open("data/reviews/vocab.txt", encoding="utf-8") as file:
        tokens = file.read()
    with open(vocabulary, "w", encoding="utf-8") as file:
        file.write(tokens.rstrip("\n") + "\nonemoretoken\n")
    with open(reviews, "w", encoding="utf-8") as file:
        file.write("review,label\n" + "a film,1\nno film,0\n" * 64)
    before = contents(folder)
    for words, options in [
            (["HIDDEN_DIM=64", "HIDDEN_DIM=32"], ["--hidden-dim", 32]), (["LAYERS=2", "LAYERS=3"], ["--layers", 3]),
            (["HEADS=4", "HEADS=8"], ["--heads", 8]), (["position count of 0", "position count of 48"], ["--positions", 1]),
            (["vocabulary", "968", "969"], ["--vocab", vocabulary]), (["SEED=1", "SEED=7"], ["--seed", 7]),
            (["BATCH_SIZE=8", "BATCH_SIZE=16"], ["--batch-size", 16]), (["SEQ=48", "SEQ=40"], ["--seq", 40]),
            (["row count of 128", "row count of 120"], ["--samples", 120]), (["other data"], ["--data", reviews]),
            (["OPTIMIZER=adamw", "OPTIMIZER=sgd"], ["--optimizer", "sgd"]), (["step 2", "step 1"], ["--steps", 1])]:
        done = train(1, "--tp", 1, "--test", "", "--steps", 4, "--save", good, "--resume", good, *options)
        name = " ".join(map(str, options)).replace(folder, "...")
        refused(f"a run with {name} does not resume from this checkpoint", words, done, folder, before)


def folders(good, folder):
    empty, file = f"{folder}/empty", f"{folder}/file"
    os.mkdir(empty)
    with open(file, "w", encoding="utf-8"):
        pass
    before = contents(folder)
    for sentence, words, options in [
            ("a SAVE folder that is a device", ["/dev/null"], ["--save", "/dev/null"]),
            ("a SAVE folder that cannot be made", ["/proc/nowhere"], ["--save", "/proc/nowhere"]),
            ("a SAVE folder that cannot be written", ["/proc", "cannot be saved here: "], ["--save", "/proc"]),
            ("a SAVE folder that is a file", [file], ["--save", file]),
            ("a SAVE folder with another run's checkpoints", [good, "step 2"], ["--save", good]),
            ("a SAVE folder with newer checkpoints than the run's", [good, "step 2"],
             ["--save", good, "--resume", f"{good}/step-000001"]),
            ("a missing RESUME folder", [f"{folder}/nowhere"], ["--resume", f"{folder}/nowhere"]),
            ("a RESUME folder without checkpoints", [empty], ["--resume", empty]),
            ("an empty RESUME folder that is not SAVE", [empty], ["--resume", empty, "--save", f"{folder}/new"]),
            ("EVERY without SAVE", ["EVERY=5", "SAVE"], ["--every", 5])]:
        refused(f"{sentence} is refused", words, train(2, *ON_TWO, "--steps", 4, *options), folder, before)
    with open(f"{good}/.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = train(2, *ON_TWO, "--steps", 4, "--save", good, "--resume", good)
        refused("a SAVE folder that another run saves into is refused", ["another run"], done, folder, before)


def full_disk(folder):
    """Files of rank 1 may not exceed 8 MB, but its shard has 11. Rank 0 reports rank 1's error."""
    place, big = f"{folder}/full", [*SMALL, *ON_TWO, "--hidden-dim", 256]
    saved = [*big, "--steps", 2, "--save", place]
    subprocess.run(command(2, *saved), check=True, capture_output=True)
    before = contents(place)
    limited = f"{folder}/limited.sh"
    with open(limited, "w", encoding="utf-8") as file:
        file.write('#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" != 1 ] || ulimit -f 8000\n' f'exec {BUILD}/train "$@"\n')
    os.chmod(limited, 0o755)
    words = command(2, *big, "--steps", 4, "--save", place, "--resume", place)
    done = subprocess.run([limited if word == f"{BUILD}/train" else word for word in words], capture_output=True, text=True,
                          check=False)
    why = refusal(done)
    check(not why and "rank-1-of-2.safetensors" in done.stderr and "cannot be written: File too large" in done.stderr and
          contents(place) == before, "a full disk on one rank leaves the last checkpoint, and nothing else",
          why or done.stderr + str(os.listdir(place)))
    done = subprocess.run(command(2, *big, "--steps", 4, "--save", place, "--resume", place), capture_output=True, text=True,
                          check=False)
    check(done.returncode == 0 and "continues after step 2" in done.stdout, "and the run resumes from it later", done.stderr)
    target = f"{folder}/merged"
    with open(target, "wb") as file:
        file.write(b"what was here before")
    before = contents(folder)
    merge = subprocess.run(["bash", "-c", f'ulimit -f 1000; exec {BUILD}/checkpoint merge {place} {target}'],
                           capture_output=True, text=True, check=False)
    check(not refusal(merge) and contents(folder) == before, "a merged file for which there is no space replaces nothing",
          refusal(merge))
    fifo, device = f"{folder}/fifo", f"{folder}/device"
    os.mkfifo(fifo)
    os.symlink("/dev/null", device)
    for what, where in (("no folder", f"{folder}/nowhere/merged"), ("a folder", folder), ("no name", ""), ("a FIFO", fifo), ("a device", device)):
        why = refusal(tool("merge", place, where))
        check(not why and stat.S_ISFIFO(os.stat(fifo).st_mode) and os.path.islink(device), f"a merged file that cannot be created is refused ({what})", why)
    os.unlink(fifo)
    os.unlink(device)
    check(contents(folder) == before, "and no file has changed")


os.chdir(os.environ["ROOT"])
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
    SAVED = f"{temporary}/good"
    succeed(2, *ON_TWO, "--steps", 2, "--save", SAVED, "--every", 1)
    damages(SAVED)
    flipped_bits(SAVED)
    older_kit(SAVED)
    older_beside(SAVED)
    other_runs(SAVED, temporary)
    folders(SAVED, temporary)
    full_disk(temporary)
    divergence(temporary)
