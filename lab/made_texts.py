"""Texts that need no files: words as frequent as Zipf's law has it, sentences, and lengths like those of reviews. And texts that
look like others, word for word, but in another order.
"""

import itertools
from collections.abc import Iterator

import numpy as np

SYLLABLES = [first + second for first, second in itertools.product("bdfgklmnprstvz", "aeiou")]
N_WORDS = 200_000
MEAN_WORDS = 230
SENTENCE = 14


def make_texts(n_texts: int, seed: int = 0, batch: int = 10_000) -> Iterator[list[str]]:
    """Batches of texts; the first ones are the same for any number of them."""
    # Frequent words are short: word i is i in base 70, digit by syllable.
    words = [_word(i) for i in range(N_WORDS)]
    edges = np.cumsum(1.0 / (np.arange(N_WORDS) + 2.7))
    for first in range(0, n_texts, batch):
        n = min(batch, n_texts - first)
        own = np.random.default_rng((seed, first))
        # Lengths differ by an order of magnitude. A lognormal's mean lies above its median, hence the factor.
        lengths = np.maximum(3, own.lognormal(np.log(MEAN_WORDS), 0.6, batch) * np.exp(-(0.6**2) / 2)).astype(np.int64)
        drawn = np.searchsorted(edges, own.random(int(lengths.sum())) * edges[-1]).tolist()
        ends = np.cumsum(lengths).tolist()
        yield [_text([words[i] for i in drawn[begin:end]]) for begin, end in zip([0, *ends], ends, strict=False)][:n]


def _word(number: int) -> str:
    syllables = []
    while True:
        number, digit = divmod(number, len(SYLLABLES))
        syllables.append(SYLLABLES[digit])
        if number == 0:
            return "".join(syllables)
        number -= 1


def _text(words: list[str]) -> str:
    return ". ".join(" ".join(words[i : i + SENTENCE]).capitalize() for i in range(0, len(words), SENTENCE)) + "!"


def shuffled(text: str, rng: np.random.Generator) -> str:
    """The same words in another order within each sentence. No real text, but as long, and with the same words."""
    words = text.split()
    sentences = np.cumsum([0, *(word[-1] in ".!?" for word in words[:-1])]) if words else np.zeros(0)
    return " ".join([words[i] for i in np.argsort(sentences + rng.random(len(words)), kind="stable")])
