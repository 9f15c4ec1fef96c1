#!/usr/bin/python3
"""The teaching notes' quotations of the grader are sentences that the grader prints, in each
language."""
import glob
import os
import re
import sys

os.chdir(os.environ["ROOT"])

# Numbers, shapes, names and placements, which vary in a sentence of the grader.
VARIES = (r"\.\.\.|-?\d+(?:\.\d+)?|\[[^]]*\]|\{[^}]*\}|shard\(\d\)|first\.[a-z._]+\d*|mesh->[td]p|\bcount\b|\b[a-z_]+ ?: "
          r"|\b(?:whole|copied|partial sum|entier|copié|somme partielle)\b")
LISTS = {"solutions/README.md": ("msgid", "Mistakes that the grader knows", '"([^"]+)"'),
         "solutions/README.fr.md": ("msgstr", "Les erreurs que connaît le correcteur", "« ([^»]+) »")}
failed = 0


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def in_a_line(text):
    return re.sub(r"\s+", " ", text)


def sentences(which):
    """All msgid or msgstr texts of the catalogue, joined into one."""
    found = re.findall(rf'^{which}(?:\[\d\])?((?: ".*"\n)(?:".*"\n)*)', text_of("common/po/fr.po"), re.M)
    return "\n".join(in_a_line(re.sub(r'"\n"', "", text.strip())[1:-1].replace('\\"', '"').replace("\\n", " ")) for text in found)


for path, (which, heading, quotation) in LISTS.items():
    said = sentences(which).replace("%%", "%")
    lists = re.findall(rf"\*\*{heading}\.\*\*(.*?)\n\*\*", text_of(path), re.S)
    pieces = [(quote, piece.strip(" ;:,.?()")) for one in lists for quote in re.findall(quotation, in_a_line(one)) for piece in re.split(VARIES, quote)]
    pieces = [(quote, piece) for quote, piece in pieces if piece.count(" ") >= 2]
    wrong = [quote for quote, piece in pieces if piece not in said]
    if len(lists) != len(glob.glob("labs/[0-9]*")) or len(pieces) < 60:
        wrong.append(f"there are {len(lists)} lists of mistakes, with {len(pieces)} pieces of sentences")
    print("not ok -" if wrong else "ok -", f"the sentences that {path} quotes are the grader's")
    for quote in wrong:
        print(f"    {quote}")
    failed += len(wrong)
sys.exit(failed > 0)
