#!/usr/bin/env -S python3 -EsB
"""Turns aclImdb_v1.tar.gz into train.csv and test.csv: archive_to_csv.py ARCHIVE FOLDER.

Each aclImdb/{train,test}/{pos,neg}/ID_STARS.txt in the archive is a review; train/unsup has no
labels. Rows are in the order of ID, a negative one before the positive one with the same ID, so
that classes alternate.
"""

import csv
import os
import re
import sys
import tarfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common/base"))
sys.dont_write_bytecode = True
from language import _, give_up  # pylint: disable=wrong-import-position

REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/(\d+)_(\d+)\.txt")


def read_reviews(archive):
    """Reads {"train": {(id, label): text}, "test": ...} in one pass over the compressed stream."""
    reviews = {"train": {}, "test": {}}
    with tarfile.open(archive, "r|gz") as tar:
        for member in tar:
            match = REVIEW.fullmatch(os.path.normpath(member.name))
            if not match or not member.isfile():
                continue
            split, label, number = match.groups()[:3]
            text = tar.extractfile(member).read().decode()
            reviews[split][int(number), int(label == "pos")] = text
    return reviews


def write_csv(path, rows):
    """Writes a temporary file and renames it, so that a file that exists is complete."""
    beside = path + ".part"
    with open(beside, "w", encoding="utf-8", newline="") as stream:
        rows = ((text, label) for (_number, label), text in sorted(rows.items()))
        csv.writer(stream, lineterminator="\n").writerows([("review", "label"), *rows])
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)


def main():
    if len(sys.argv) != 3:
        give_up(_("two arguments are needed"), "archive_to_csv.py ARCHIVE FOLDER", sys.argv[0])
    archive, folder = sys.argv[1:]
    try:
        reviews = read_reviews(archive)
        for split, rows in reviews.items():
            if not rows:
                give_up(_("the archive has no reviews in {folder}/pos and neg").format(folder=f"aclImdb/{split}"),
                        _("delete it and run `make data` again"), archive)
        os.makedirs(folder, exist_ok=True)
        for split, rows in reviews.items():
            write_csv(os.path.join(folder, split + ".csv"), rows)
            print(_("wrote {n} reviews to {file}").format(n=len(rows), file=os.path.join(folder, split + ".csv")))
    except (OSError, EOFError, UnicodeDecodeError, tarfile.TarError) as error:
        give_up(_("the archive cannot be turned into CSV: {why}").format(why=error),
                _("check the space on the disk, or delete the archive and run `make data` again"), archive)


if __name__ == "__main__":
    main()
