"""Reviews made up by chance, whose stars show in their words: as rows, as files, and as training takes them."""

import csv
import random

from rankplane.inputs.batches import Batch
from rankplane.inputs.schema import Inputs, prepare

GOOD = ["great", "lovely", "best", "superb"]
BAD = ["awful", "broken", "terrible", "waste"]
PLAIN = ["the", "phone", "was", "and", "very", "with"]


# A few whose words repeat, for what need not be learnt well.
REVIEWS = ["awful, broke at once", "bad", "it is okay", "good value", "great, love it", "très bon!"] * 8
STARS = [1, 2, 3, 4, 5, 5] * 8


def make_words(rng, stars, n_plain, plain=PLAIN, good=GOOD, bad=BAD):
    """Four words of praise or blame among others."""
    words = [rng.choice(plain) for _ in range(n_plain)] + [rng.choice(good if rng.random() * 5 < stars else bad) for _ in range(4)]
    rng.shuffle(words)
    return words


def make_rows(n_rows, seed=0):
    rng = random.Random(seed)
    rows = []
    for number in range(n_rows):
        stars = rng.randint(1, 5)
        words = make_words(rng, stars, 6)
        rows.append({"id": number, "title": words[0], "review": " ".join(words), "stars": stars})
    return rows


def write_csv(path, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def batch_of(rows):
    return Batch({name: [row[name] for row in rows] for name in rows[0]}, list(range(2, len(rows) + 2)))


def rows_of(rows, **inputs):
    return prepare(batch_of(rows), "t.csv", Inputs("stars", ["review"], **inputs))
