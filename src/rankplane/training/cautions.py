"""Warnings about a model: it is hardly better than a constant prediction, or few of the words are in its vocabulary.

Each states what was found, the likely reason, and what to try.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankplane.options import Wording, named
from rankplane.table_vectorizer import TableVectorizer
from rankplane.text import TextVectorizer
from rankplane.text.settings import resolve
from rankplane.training.model import EncodedRows, TrainedModel

N_SAMPLED = 1000  # texts to check
FEW_ROWS = 200
MOST_ROWS = 0.8  # share of one rank that leaves a model little to gain
# Scripts written without spaces between words, and the mean length of a run of letters from which texts count as unsegmented.
BLANKLESS = {
    "Chinese": ("\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", 3),
    "Japanese": ("\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f", 4),
    "Thai": ("\u0e01-\u0e4e", 10),
    "Lao": ("\u0e81-\u0ecd", 10),
    "Burmese": ("\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f", 10),
    "Khmer": ("\u1780-\u17d3", 10),
}
ANY_BLANKLESS = re.compile(f"[{''.join(letters for letters, _ in BLANKLESS.values())}]+")


class KnownWords:
    """Counts the words of a text that are in the vocabulary; or the shortest n-grams, if single words are not in it."""

    def __init__(self, vectorizer: TextVectorizer) -> None:
        # Of several analyzers, that of words says most to a reader.
        settings = resolve(vectorizer.get_params(deep=False))
        place = next((place for place, own in enumerate(settings) if own.analyzer == "word"), 0)
        own, firsts = settings[place], vectorizer._column_starts()
        least = own.ngram_range[0]
        unset = dict.fromkeys(("min_df", "max_df", "max_features", "use_idf", "smooth_idf", "norm"))
        # Hashing has no vocabulary, so it also counts words that are not in it.
        counted = {"analyzer": own.analyze or own.analyzer, "ngram_range": (least, least), "hashing": 24, "vocabulary": None}
        self.counter = clone(vectorizer).set_params(verbose=0, **counted, **unset)
        self.is_least = vectorizer._ngram_sizes() == least
        self.is_least[: firsts[place]] = self.is_least[firsts[place + 1] :] = False
        self.noun = ("words" if own.analyzer == "word" else "characters") if least == 1 else "terms"

    def count(self, texts: Sequence[str], X: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Per text, the number of distinct known words, and of all distinct words. X is the matrix of the texts."""
        is_known = self.is_least[np.minimum(X.indices, len(self.is_least) - 1)] & (X.indices < len(self.is_least))
        before = np.concatenate([[0], np.cumsum(is_known)]).astype(np.intp)
        return np.diff(before[X.indptr]), np.diff(self.counter.transform(texts).indptr).astype(np.intp)


class VocabularyCheck:
    """Counts the texts of which a model knows less than half of the words, on a sample."""

    def __init__(self, model: TrainedModel) -> None:
        self.model, self.vectorizer = model, model.vectorizer
        self.words: KnownWords | None = None
        self.n_texts = self.n_checked = self.n_unfamiliar = 0

    def add(self, features: Any, X: Any) -> "VocabularyCheck":
        """Check an evenly spread sample of the texts, whose matrix is X, until `N_SAMPLED` were checked. Tables are ignored."""
        n_wanted = N_SAMPLED - self.n_checked
        if self.vectorizer is not None and n_wanted > 0 and (texts := self.model.texts(features)):
            self.words = self.words or KnownWords(self.vectorizer)
            every = -(-len(texts) // n_wanted)
            texts = texts[::every]
            known, counted = self.words.count(texts, X[::every])
            self.n_checked += len(texts)
            self.n_texts += int(np.sum(counted > 0))
            self.n_unfamiliar += int(np.sum(2 * known < counted))
        return self

    @property
    def finding(self) -> str | None:
        """What is wrong, if most of the texts are unfamiliar to the model."""
        if self.words is None or 2 * self.n_unfamiliar <= self.n_texts:
            return None
        return f"the model knows less than half of the {self.words.noun} in {self.n_unfamiliar / self.n_texts:.0%} of the texts"


def script_without_blanks(texts: Sequence[str]) -> str | None:
    """The script of most letters, if it is written without spaces between words."""
    runs = [run for text in texts for run in ANY_BLANKLESS.findall(text)]
    n_letters = sum(map(str.isalpha, "".join(texts)))
    if 2 * sum(map(len, runs)) <= n_letters:
        return None
    written = "".join(runs)
    counts = Counter({name: len(re.findall(f"[{letters}]", written)) for name, (letters, _) in BLANKLESS.items()})
    script = counts.most_common(1)[0][0]
    # Japanese texts consist mostly of Chinese characters; only the kana distinguish them.
    if script == "Chinese" and counts["Japanese"] > 0.1 * counts["Chinese"]:
        script = "Japanese"
    typical = sum(len(run) ** 2 for run in runs) / len(written)  # mean over letters of the length of their run
    return script if typical > BLANKLESS[script][1] else None


def blank_reason(texts: Sequence[str], vectorizer: Any) -> str | None:
    """Why no words are found in texts without spaces, and what to try."""
    vectorizer = vectorizer.vectorizer if isinstance(vectorizer, TableVectorizer) else vectorizer
    if not isinstance(vectorizer, TextVectorizer) or vectorizer.analyzer != "word" or vectorizer.segmenter is not None:
        return None  # whoever asks for characters has found a way around
    script = script_without_blanks(texts[:N_SAMPLED])
    if script is None:
        return None
    remedy = f"{named('analyzer', 'char')} {named('ngrams', '1-3')}"
    remedy = f"{named('segmenter', 'chinese')} or {remedy}" if script == "Chinese" else remedy
    return f"The texts are {script}, written without spaces between words, so whole clauses count as words. Try {remedy}."


def no_columns(vectorizer: Any, texts: Sequence[str], n_texts: int) -> str:
    """The message if no term occurs in enough of so many texts; some of them show why."""
    found = f"No word occurs in enough of the {n_texts:,} training texts to learn from."
    return f"{found} {blank_reason(texts, vectorizer) or ''}".strip()


def likely_reason(model: TrainedModel, features: Any, trained: NDArray[Any], is_unfamiliar: bool) -> Wording:
    """Why a model may be poor on these features, and what to try. ``trained`` has the rank numbers of the training rows."""
    return Wording(reason_for(model, features, trained, is_unfamiliar))


def reason_for(model: TrainedModel, features: Any, trained: NDArray[Any], is_unfamiliar: bool) -> str:
    texts = model.texts(features)
    if texts is not None and (reason := blank_reason(texts, model.vectorizer)):
        return reason
    counts = np.bincount(trained)
    if len(trained) < FEW_ROWS:
        return f"Likely reason: there are only {len(trained):,} rows to train on. More rows would help most."
    if is_unfamiliar:
        return (
            "Likely reason: most words occur in too few training texts to learn from. More texts would help most; or try "
            f"{named('analyzer', 'char_wb')} {named('ngrams', '2-5')}, for parts of words."
        )
    if counts.max() > MOST_ROWS * len(trained):
        return (
            f"Likely reason: {counts.max() / len(trained):.0%} of the rows have rank {model.classes[np.argmax(counts)]}. "
            f"Try {named('class_weight', 'balanced')}, and look at the macro MAE, which weights all ranks equally."
        )
    if texts is not None:
        columns = f"{named('text')} and {named('target')} name the right columns"
        return f"Likely reason: the ranks have little to do with the texts. Check that {columns}."
    remedy = f", or try {named('kernel', 'rbf')}, which fits nonlinear boundaries" if model.is_linear else ""
    return f"Likely reason: the ranks have little to do with the columns. Check {named('target')}{remedy}."


def find(model: TrainedModel, measured: EncodedRows, trained: NDArray[Any], poor_gain: str | None) -> list[str]:
    """Warnings about a model on the rows that it was measured on, the likely reason last."""
    features = measured.rows.features
    unfamiliar = VocabularyCheck(model).add(features, measured.X).finding
    findings = [f"{finding[0].upper()}{finding[1:]}." for finding in (poor_gain, unfamiliar) if finding]
    return [*findings, likely_reason(model, features, trained, unfamiliar is not None)] if findings else []
