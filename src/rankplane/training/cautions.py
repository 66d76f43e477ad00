"""What speaks against a model, in sentences: it hardly beats a constant answer, or it knows few of the words.

Each sentence says what was found, the likely reason, and what to try.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankplane.options import Wording, named
from rankplane.text import TextVectorizer
from rankplane.text.settings import resolve
from rankplane.training.model import EncodedRows, TrainedModel

N_SAMPLED = 1000  # texts that are looked at: enough to tell what most are like
FEW_ROWS = 200
MOST_ROWS = 0.8  # of one rank, which leaves a model little to gain
# Scripts that put no blanks between words, and how long their runs of letters may be where words were separated all the same.
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
    """How many words of a text a vectorizer has columns for; or of larger terms, if single words are no columns."""

    def __init__(self, vectorizer: TextVectorizer) -> None:
        least = resolve(vectorizer.get_params(deep=False)).ngram_range[0]
        unset = dict.fromkeys(("min_df", "max_df", "max_features", "use_idf", "smooth_idf", "norm"))
        # Hashing needs no vocabulary, so it counts words that are not in it.
        self.counting = clone(vectorizer).set_params(ngram_range=(least, least), hashing=24, verbose=0, **unset)
        has_words = vectorizer.analyzer == "word"
        sizes = [name.count(" ") + 1 if has_words else len(name) for name in vectorizer.get_feature_names_out()]
        self.is_least = np.array(sizes) == least
        self.noun = ("words" if has_words else "characters") if least == 1 else "terms"

    def count(self, texts: Sequence[str], X: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """How many different words of each text are known, and how many there are. The vectorizer has made X of the texts."""
        before = np.concatenate([[0], np.cumsum(self.is_least[X.indices])]).astype(np.intp)
        return np.diff(before[X.indptr]), np.diff(self.counting.transform(texts).indptr).astype(np.intp)


class Familiarity:
    """Looks at texts that a model is given: of how many it knows less than half of the words."""

    def __init__(self, model: TrainedModel) -> None:
        self.vectorizer = model.vectorizer
        self.words: KnownWords | None = None
        self.n_texts = self.n_looked_at = self.n_strange = 0

    def look_at(self, features: Any, X: Any) -> "Familiarity":
        """Look at some of the texts, spread evenly, until enough are seen. X is made of them. Tables have no words to know."""
        n_wanted = N_SAMPLED - self.n_looked_at
        if self.vectorizer is not None and len(features) and n_wanted > 0:
            self.words = self.words or KnownWords(self.vectorizer)
            every = -(-len(features) // n_wanted)
            texts = features[::every]
            known, counted = self.words.count(texts, X[::every])
            self.n_looked_at += len(texts)
            self.n_texts += int(np.sum(counted > 0))
            self.n_strange += int(np.sum(2 * known < counted))
        return self

    @property
    def finding(self) -> str | None:
        """What is wrong, if most texts are strange to the model."""
        if self.words is None or 2 * self.n_strange <= self.n_texts:
            return None
        return f"the model knows less than half of the {self.words.noun} in {self.n_strange / self.n_texts:.0%} of the texts"


def script_without_blanks(texts: Sequence[str]) -> str | None:
    """The script of most letters, if it is written here without blanks between words."""
    runs = [run for text in texts for run in ANY_BLANKLESS.findall(text)]
    n_letters = sum(map(str.isalpha, "".join(texts)))
    if 2 * sum(map(len, runs)) <= n_letters:
        return None
    written = "".join(runs)
    counts = Counter({name: len(re.findall(f"[{letters}]", written)) for name, (letters, _) in BLANKLESS.items()})
    script = counts.most_common(1)[0][0]
    # Japanese is mostly written in the letters of Chinese too; only its own tell the two apart.
    if script == "Chinese" and counts["Japanese"] > 0.1 * counts["Chinese"]:
        script = "Japanese"
    typical = sum(len(run) ** 2 for run in runs) / len(written)  # the run that the average letter is in
    return script if typical > BLANKLESS[script][1] else None


def blank_reason(texts: Sequence[str], vectorizer: Any) -> str | None:
    """Why words are not found, for texts that have no blanks between them."""
    if not isinstance(vectorizer, TextVectorizer) or vectorizer.analyzer != "word" or vectorizer.segmenter is not None:
        return None
    script = script_without_blanks(texts[:N_SAMPLED])
    if script is None:
        return None
    remedy = f"{named('analyzer', 'char')} {named('ngrams', '1-3')}"
    remedy = f"{named('segmenter', 'chinese')} or {remedy}" if script == "Chinese" else remedy
    return f"The texts are {script}, written without blanks between words, so whole clauses count as words. Try {remedy}."


def no_columns(vectorizer: Any, texts: Sequence[str]) -> str:
    """What to say of texts that have no term in common."""
    found = f"No word is in enough of the {len(texts):,} training texts to learn from."
    return f"{found} {blank_reason(texts, vectorizer) or ''}".strip()


def likely_reason(model: TrainedModel, features: Any, trained: NDArray[Any], is_strange: bool) -> Wording:
    """Why a model may be poor on these features, and what to try. ``trained`` has the places of the training ranks."""
    return Wording(reason_for(model, features, trained, is_strange))


def reason_for(model: TrainedModel, features: Any, trained: NDArray[Any], is_strange: bool) -> str:
    is_text = model.inputs.kind == "text"
    if is_text and (reason := blank_reason(features, model.vectorizer)):
        return reason
    counts = np.bincount(trained)
    if len(trained) < FEW_ROWS:
        return f"Likely reason: there are only {len(trained):,} rows to train on. More rows help most."
    if is_strange:
        return (
            "Likely reason: most words occur in too few of the training texts to be learnt from. More texts help most; or try "
            f"{named('analyzer', 'char_wb')} {named('ngrams', '2-5')}, for parts of words."
        )
    if counts.max() > MOST_ROWS * len(trained):
        return (
            f"Likely reason: {counts.max() / len(trained):.0%} of the rows have rank {model.classes[np.argmax(counts)]}. "
            f"Try {named('class_weight', 'balanced')}, and look at the macro MAE, which counts every rank the same."
        )
    if is_text:
        columns = f"{named('text')} and {named('target')} name the right columns"
        return f"Likely reason: the ranks have little to do with the texts. Check that {columns}."
    remedy = f", or try {named('kernel', 'rbf')}, which finds bends" if model.is_linear else ""
    return f"Likely reason: the ranks have little to do with the columns. Check {named('target')}{remedy}."


def find(model: TrainedModel, measured: EncodedRows, trained: NDArray[Any], poor_gain: str | None) -> list[str]:
    """What speaks against a model on the rows that it was measured on, the likely reason last."""
    features = measured.rows.features
    strange = Familiarity(model).look_at(features, measured.X).finding
    findings = [f"{finding[0].upper()}{finding[1:]}." for finding in (poor_gain, strange) if finding]
    return [*findings, likely_reason(model, features, trained, strange is not None)] if findings else []
