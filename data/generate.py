#!/usr/bin/env python3
"""Writes the committed reviews and their vocabulary: generate.py [FOLDER] (default: reviews beside
this script).

The films, people and sentences are invented here, so the files may be used for anything. A review
has positive, negative and neutral sentences. Most of its opinions agree with its label, but some
are negated, so counting words classifies most reviews, but not all.
"""

import collections
import csv
import os
import random
import re
import string
import sys
import unicodedata

SEED = 1909_08053
TRAIN_ROWS, TEST_ROWS = 2000, 400
RARE = 4  # words that occur fewer times in the training reviews are spelled with pieces

ADJECTIVES = {
    1: """wonderful brilliant moving superb charming gripping delightful touching clever beautiful funny honest
          fresh memorable tense elegant warm splendid thoughtful witty graceful absorbing stunning inspired""",
    0: """awful dull boring terrible clumsy lifeless predictable annoying ugly lazy silly hollow tedious shallow
          messy dreadful pointless weak flat pretentious painful wooden ridiculous stale""",
}
VERBS = {
    1: "loved admired enjoyed adored cherished treasured",
    0: "hated disliked regretted endured loathed despised",
}
ADVERBS = {
    1: "beautifully perfectly convincingly brilliantly gracefully superbly",
    0: "badly poorly lazily carelessly clumsily dreadfully",
}
OUTCOMES = {
    1: """stayed with me for days|made the whole room laugh|had me in tears|never loses its grip|earns every minute
          |kept me on the edge of my seat|deserves a much wider audience|rewards a second viewing
          |left me with a smile|is worth every cent""",
    0: """sent half the room to sleep|made me check my watch|falls apart after an hour|goes nowhere at all
          |wastes a good idea|insults the audience|made me want my money back|drags on for ever
          |left me cold|is not worth the ticket""",
}
ADVICE = {
    1: """Go and see it.|Highly recommended!|Do not miss this one.|I will watch it again, and soon.
          |One of the best of the year.|Bring your friends.|Ten out of ten.|A small miracle.""",
    0: """Avoid it.|Save your money.|Do not bother with this one.|I want those two hours back.
          |One of the worst of the year.|Read a book instead.|Two out of ten.|A complete waste of time.""",
}
PARTS = """plot story script acting dialogue music score ending camera editing pacing cast direction
           photography design scenery sound opening finale humour""".split()
GENRES = """comedy|drama|thriller|western|romance|mystery|documentary|musical|cartoon|war film|horror film
            |road movie"""
ROLES = "detective teacher sailor painter widow farmer thief doctor singer soldier nurse baker clerk pilot".split()
PLACES = "village harbour city valley hotel desert island factory hospital station theatre".split()
THINGS = "letter map song secret dog suitcase photograph key diary storm wedding trial".split()
ACCENTED = "café naïve cliché fiancée décor déjà-vu protégé soirée entrée mêlée façade señor".split()
SYLLABLES = "ba ri lo men tar vi sel dor ka nu el mi ra so ven tho gra li pe zan".split()
NEUTRAL = """The film was shot in a {place} over {number} weeks.|{name} plays a {role} who finds a {thing}.
    |It begins in a small {place} near the sea.|The {role} and the {role2} meet again after {number} years.
    |I saw it on a Tuesday with my brother.|It runs for {minutes} minutes.|{name} wrote it and {name2} directed.
    |There is a {thing}, a {role} and a long train ride.|The story takes place in a {place} in {year}.
    |My neighbour lent me the disc.|It is the second {genre} by {name}.|The {role} says: "Where is the {thing}?"
    |A {accented} scene, then a {thing}, then the {place}.|Based on a novel by {name2}, published in {year}."""
OPINION = """The {part} is {adjective}.|The {part} and the {part2} are {adjective}, {adverb} put together.
    |I {verb} the {part}.|What a {adjective} {genre}!|{name} is {adjective} as the {role}.
    |This {genre} {outcome}.|It {outcome}.|A {adjective}, {adjective2} {genre}.|The {part} was {adverb} done.
    |Everyone I know {verb} it, and so did I.|{advice}|{advice}|The {role}'s part is {adverb} written.
    |My friends said it was "{adjective}" and they were right.|Even the {part} felt {adjective}."""
NEGATED = """The {part} is not {adjective} at all.|I would not call the {part} {adjective}.
    |It is hardly a {adjective} {genre}.|Nothing about the {part} is {adjective}.
    |Some people {verb} it; I did not.|I never found it {adjective} or {adjective2}.
    |They promised a {adjective} {genre}, and it is anything but that."""


class Writer:
    """Draws with random() only, which gives the same numbers in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, count):
        return int(self.random() * count)

    def one_of(self, items):
        return items[self.below(len(items))]

    def chance(self, probability):
        return self.random() < probability

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def two_of(self, items):
        first = self.below(len(items))
        return items[first], items[(first + 1 + self.below(len(items) - 1)) % len(items)]

    def name(self):
        first, last = ("".join(self.one_of(SYLLABLES) for _ in range(2 + self.below(2))).title() for _ in range(2))
        return ("Zoë " if self.chance(0.05) else first + " ") + last

    def fill(self, template, mood):
        adjective, adjective2 = self.two_of(ADJECTIVES[mood].split())
        part, part2 = self.two_of(PARTS)
        role, role2 = self.two_of(ROLES)
        words = {
            "adjective": adjective, "adjective2": adjective2, "part": part, "part2": part2, "role": role, "role2": role2,
            "verb": self.one_of(VERBS[mood].split()), "adverb": self.one_of(ADVERBS[mood].split()),
            "outcome": self.one_of(choices(OUTCOMES[mood])), "advice": self.one_of(choices(ADVICE[mood])),
            "genre": self.one_of(choices(GENRES)), "place": self.one_of(PLACES), "thing": self.one_of(THINGS),
            "accented": self.one_of(ACCENTED), "name": self.name(), "name2": self.name(),
            "number": str(2 + self.below(150)), "minutes": str(70 + self.below(90)), "year": str(1920 + self.below(100)),
        }
        return re.sub(r"\b([Aa]) (?=[aeiou]|honest)", r"\1n ", template.format(**words))

    def sentence(self, label):
        kind = self.random()
        if kind < 0.33:
            return self.fill(self.one_of(choices(NEUTRAL)), label)
        mood = label if self.chance(0.87) else 1 - label
        if kind < 0.42:
            return self.fill(self.one_of(choices(NEGATED)), 1 - mood)
        return self.fill(self.one_of(choices(OPINION)), mood)

    def review(self, label):
        sentences = []
        while len(sentences) < 3 or (len(sentences) < 12 and not self.chance(0.16)):
            sentence = self.sentence(label)
            if sentence not in sentences:
                sentences.append(sentence)
        gap = self.one_of([" "] * 14 + ["<br /><br />"] * 5 + ["\n"])
        text = sentences[0]
        for sentence in sentences[1:]:
            text += (gap if self.chance(0.4) else " ") + sentence
        return text

    def reviews(self, count):
        labels = [row % 2 for row in range(count)]
        self.shuffle(labels)
        return [(self.review(label), label) for label in labels]


def choices(text):
    return [" ".join(choice.split()) for choice in text.split("|")]


def words_of(text):
    plain = unicodedata.normalize("NFD", text.lower())
    plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
    return re.findall(r"[a-z0-9]+", plain)


def vocabulary(reviews):
    counts = collections.Counter(word for text, _ in reviews for word in words_of(text))
    letters = string.ascii_lowercase + string.digits
    frequent = sorted(word for word, count in counts.items() if count >= RARE and len(word) > 1)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    endings = ["##ed", "##er", "##est", "##ing", "##ly", "##ness"]
    punctuation = string.punctuation + "\u2018\u2019\u201c\u201d\u2026"
    return [*specials, *punctuation, *letters, *("##" + c for c in letters), *endings, *frequent]


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reviews")
    folder = sys.argv[1] if len(sys.argv) > 1 else here
    writer = Writer(SEED)
    train, test = writer.reviews(TRAIN_ROWS), writer.reviews(TEST_ROWS)
    os.makedirs(folder, exist_ok=True)
    for name, reviews in (("train.csv", train), ("test.csv", test)):
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([("review", "label"), *reviews])
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as stream:
        stream.writelines(word + "\n" for word in vocabulary(train))


if __name__ == "__main__":
    main()
