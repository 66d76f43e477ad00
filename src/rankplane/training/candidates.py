"""The right features and model by measurement: candidates are fitted to a sample of the training rows, and compared on rows of the
sample that none of them has seen.

Candidates are compared in two rounds, the second on a larger sample. All are judged on the same rows, so what these rows have in
common cancels out in the difference ``d_i`` between the errors of two candidates on row i. After the first round, a candidate is
dropped if half of the others are better, or if it is worse than the best by more than the noise,

    mean(d) > 2 sd(d) / sqrt(n).

More rows gain words more than characters, which few rows suffice for. So words are never dropped after the first round, and where
there are more rows than in the samples, the difference is continued to all rows, along a straight line over the logarithm of the
number of rows. A sample has a limited number of characters, so the choice costs a few fits of few rows.

The best of many candidates is partly the luckiest. So one that is hardly ever much worse than the best is taken unless it is worse
by more than one standard error: words together with parts of words where there are no more rows than in the samples, and Committee
among the models. Else the first one is taken that is worse than the best by less than a quarter of the standard error.
"""

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from rankplane.base import OrdinalModel
from rankplane.docstrings import documented
from rankplane.inputs.schema import take
from rankplane.modelfile import MODELS
from rankplane.prediction.decisions import cost_matrix
from rankplane.search import CSearchCV
from rankplane.solver.folds import assign_parts
from rankplane.text import TextVectorizer
from rankplane.text.packed import Texts
from rankplane.text.parts import NoColumnsError
from rankplane.training.cautions import script_without_blanks
from rankplane.validation import check_choice, rank_numbers, rank_order

ROUNDS = ((4_000, 2_500_000), (16_000, 9_000_000))  # rows of a sample, and characters of its texts, at most
FEWEST_ROWS = 500  # of a sample; fewer say too little
N_PARTS = 3  # of a sample, of which candidates are compared on one
MOST_ROWS_IN_TURN = 10_000  # If there are no more in all, candidates are compared on all parts in turn.
CS = tuple(2.0**k for k in range(-5, 4, 2))
N_LOOKED_AT = 1000  # texts, for their script
SCALES = (1.0, 0.25, 4.0)
TRUSTED = 1.0  # the margin of candidates that are hardly ever much worse than the best

Errors = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """Features and a model, by the parameters in which candidates differ."""

    words: str = "words 1-2"
    text: Mapping[str, Any] = field(default_factory=dict)  # parameters of TextVectorizer
    model: str = "NPSVOR"
    column_weight: str | None = "ranks"
    column_scale: float = 1.0
    is_kept: bool = False  # even where it is worse on few rows
    margin: float = 0.25  # standard errors by which it may be worse than the best and still be taken

    def __hash__(self) -> int:
        return hash(in_words(self))


Make = Callable[[Candidate], tuple[Any, Any]]  # the first step, None for matrices, and the model

WORDS = Candidate("words 1-2", is_kept=True)
TRIPLES = Candidate("words 1-3", {"ngram_range": (1, 3)}, is_kept=True)
CHARS = Candidate("characters 1-4", {"analyzer": "char", "ngram_range": (1, 4)})
CHARS_IN_WORDS = Candidate("characters within words 2-5", {"analyzer": "char_wb", "ngram_range": (2, 5)})
WORDS_AND_CHARS = Candidate("words 1-2 and characters 1-4", {"analyzer": {"word": (1, 2), "char": (1, 4)}})
WORDS_AND_PARTS = Candidate("words 1-2 and characters within words 2-5", {"analyzer": {"word": (1, 2), "char_wb": (2, 5)}})
FEW_CHARS = Candidate("characters 1-2", {"analyzer": "char", "ngram_range": (1, 2)})
SOME_CHARS = Candidate("characters 1-3", {"analyzer": "char", "ngram_range": (1, 3)})
SEGMENTED = Candidate("Chinese words 1-2", {"segmenter": "chinese"})
SEGMENTED_AND_CHARS = Candidate(
    "Chinese words 1-2 and characters 1-3", {"segmenter": "chinese", "analyzer": {"word": (1, 2), "char": (1, 3)}}
)


def text_candidates(texts: Sequence[str]) -> list[Candidate]:
    """Features for texts of their script, the cheapest first; the very first is what few texts get."""
    script = script_without_blanks(texts[:N_LOOKED_AT])
    if script is None:
        are_few = len(texts) <= ROUNDS[-1][0]
        union = replace(WORDS_AND_PARTS, is_kept=True, margin=TRUSTED) if are_few else WORDS_AND_PARTS
        return [WORDS, TRIPLES, CHARS_IN_WORDS, CHARS, union, WORDS_AND_CHARS]
    with_jieba = script == "Chinese" and importlib.util.find_spec("jieba") is not None
    return [SOME_CHARS, FEW_CHARS, CHARS, *([SEGMENTED, SEGMENTED_AND_CHARS] if with_jieba else [])]


def model_candidates(best: Candidate) -> list[Candidate]:
    return [replace(best, model="Committee", margin=TRUSTED), replace(best, margin=Candidate.margin)]


def scale_candidates(best: Candidate) -> list[Candidate]:
    """How much columns beside texts weigh."""
    return [replace(best, column_scale=scale, margin=Candidate.margin) for scale in SCALES]


@dataclass(frozen=True)
class Round:
    """The error of each candidate, how much worse it is than that of the best, and the standard error of this difference."""

    n_rows: int
    errors: dict[Candidate, float]
    losses: dict[Candidate, float]
    noise: dict[Candidate, float]

    @classmethod
    def of(cls, n_rows: int, errors: dict[Candidate, Errors]) -> "Round | None":
        if not errors:
            return None
        means = {one: float(own.mean()) for one, own in errors.items()}
        best = min(means, key=means.__getitem__)
        noise = {one: float((own - errors[best]).std() / np.sqrt(len(own))) for one, own in errors.items()}
        return cls(n_rows, means, {one: mean - means[best] for one, mean in means.items()}, noise)

    def record(self) -> dict[str, Any]:
        named = {"errors": self.errors, "noise": self.noise}
        return {"rows": self.n_rows} | {
            name: {in_words(one): value for one, value in values.items()} for name, values in named.items()
        }


def expected_losses(rounds: list[Round], n_rows: int) -> dict[Candidate, tuple[float, float]]:
    """How much worse each candidate of the last round will be than the best one there with all rows, and the standard error."""
    last = rounds[-1]
    best = min(last.errors, key=last.errors.__getitem__)
    if len(rounds) == 1 or n_rows <= last.n_rows:
        return {one: (last.losses[one], last.noise[one]) for one in last.errors}
    first = rounds[0]
    share = float(np.log(n_rows / last.n_rows) / np.log(last.n_rows / first.n_rows))
    found = {}
    for one in last.errors:
        before = first.errors[one] - first.errors[best]
        loss = last.losses[one] + share * (last.losses[one] - before)
        found[one] = loss, float(np.hypot((1 + share) * last.noise[one], share * first.noise[one]))
    return found


class Comparison:
    """Compares candidates on samples of rows, of which there are ``n_rows`` in all, unless these are all. ``cost`` is the error of
    predicting a rank (column) for another one (row).
    """

    def __init__(
        self,
        features: Any,
        labels: NDArray[Any],
        groups: NDArray[Any],
        *,
        ranks: NDArray[Any],
        cost: NDArray[Any],
        make: Make,
        measure: str,
        Cs: Sequence[float] = CS,
        seed: int = 0,
        n_rows: int | None = None,
    ) -> None:
        self.n_rows = len(labels) if n_rows is None else n_rows
        self.features, self.labels, self.groups = features, labels, groups
        self.ranks, self.places, self.cost = ranks, rank_numbers(labels, ranks), cost
        self.make, self.measure, self.Cs, self.seed = make, measure, Cs, seed
        self.order = np.random.default_rng(seed).permutation(len(labels))
        self.known: dict[tuple[int, str], Errors | None] = {}

    def sizes(self, n_characters: float) -> list[int]:
        """Numbers of rows of the samples, for texts of so many characters each."""
        n_all = len(self.places)
        found = [min(n_all, n_rows, int(most / max(n_characters, 1))) for n_rows, most in ROUNDS]
        found = [max(size, min(n_all, FEWEST_ROWS)) for size in found]
        return sorted({size for size in found if size >= FEWEST_ROWS and (size == found[0] or size > 1.5 * found[0])})

    def choose(self, what: str, candidates: list[Candidate], sizes: list[int]) -> tuple[Candidate, dict[str, Any] | None]:
        """The best candidate, and a record of the rounds; the first one without a record if there are too few rows."""
        if not sizes or len(candidates) < 2:
            return candidates[0], None
        left, rounds = candidates, list[Round]()
        for size in sizes:
            found = Round.of(size, {one: errors for one in left if (errors := self.errors_of(one, size)) is not None})
            if found is None:
                return candidates[0], None
            rounds.append(found)
            best = sorted(found.losses, key=found.losses.__getitem__)[: -(-len(left) // 2)]
            left = [one for one in found.losses if one.is_kept or (one in best and found.losses[one] <= 2 * found.noise[one])]
        expected = expected_losses(rounds, self.n_rows)
        least = min(loss for loss, _ in expected.values())
        near = [one for one, (loss, noise) in expected.items() if loss - least <= one.margin * noise]
        chosen = max(near, key=lambda one: one.margin)  # the first listed, if several have the same
        record = {"what": what, "measure": self.measure, "rounds": [one.record() for one in rounds], "chosen": in_words(chosen)}
        return chosen, record

    def errors_of(self, candidate: Candidate, n_rows: int) -> Errors | None:
        """The error of the candidate on each row to compare on, of a sample of so many rows; None if it cannot be fitted there."""
        key = (n_rows, in_words(candidate))
        if key not in self.known:
            self.known[key] = self._fitted(candidate, np.sort(self.order[:n_rows]))
        return self.known[key]

    def _fitted(self, candidate: Candidate, sample: NDArray[np.intp]) -> Errors | None:
        part_of = assign_parts(self.groups[sample], self.places[sample], np.full(N_PARTS, 1 / N_PARTS), self.seed)
        is_all = len(sample) == len(self.places) <= MOST_ROWS_IN_TURN
        found = [
            self._on_part(candidate, sample[part_of != part], sample[part_of == part]) for part in range(N_PARTS if is_all else 1)
        ]
        errors = [own for own in found if own is not None]
        return np.concatenate(errors) if len(errors) == len(found) else None

    def _on_part(self, candidate: Candidate, training: NDArray[np.intp], tested: NDArray[np.intp]) -> Errors | None:
        step, model = self.make(candidate)
        model.set_params(ranks=self.ranks.tolist())  # a sample may lack some
        X, Z = take(self.features, training), take(self.features, tested)
        # One split within, for C and the calibrator: the rows to compare on choose nothing of a candidate.
        own = self.places[training]
        is_held = assign_parts(self.groups[training], own, np.array([0.75, 0.25]), self.seed) == 1
        folds = [(np.flatnonzero(~is_held), np.flatnonzero(is_held))]
        search = CSearchCV(model, Cs=self.Cs, cv=folds, scoring=self.measure)
        try:
            X, Z = (X, Z) if step is None else (step.fit_transform(X), step.transform(Z))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of fits that most likely are not chosen
                search.fit(X, self.labels[training])
        except (NoColumnsError, np.linalg.LinAlgError):  # nor can scores be calibrated that say nothing
            return None
        return np.asarray(self.cost[self.places[tested], rank_numbers(search.predict(Z), self.ranks)])


def in_words(candidate: Candidate) -> str:
    """The name of a candidate, with what differs from the usual."""
    scale = "" if candidate.column_scale == 1 else f", columns of length {candidate.column_scale:g}"
    return f"{candidate.words}, {candidate.model}{scale}"


def mean_length(texts: Any) -> float:
    """Of some texts, in characters."""
    if isinstance(texts, Texts):
        return texts.n_bytes / max(len(texts), 1)
    some = texts[:N_LOOKED_AT]
    return sum(map(len, some)) / max(len(some), 1)


@dataclass(frozen=True)
class Choice:
    """Features and a model that `choose_features` found, neither of them fitted, and how they were found."""

    vectorizer: TextVectorizer
    model: OrdinalModel
    records: list[dict[str, Any]]


@documented()
def choose_features(
    X: Sequence[str],
    y: ArrayLike,
    *,
    model: OrdinalModel | None = None,
    scoring: str = "mae",
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Choice:
    """Choose features of texts, and a model, by measurement.

    Words, pairs and triples of words, characters, unions of both, and segmented Chinese where jieba is installed are tried,
    depending on the script of the texts. Each is fitted to a sample of the texts and judged on rows of the sample that it has not
    seen. Those that are clearly worse are not tried on larger samples, so that the choice costs a few fits. This is what
    ``rankplane train --preset auto`` does.

    Parameters
    ----------
    X : sequence of str
        Texts to train on. Hold out test rows before.
    y : array-like of shape (n_samples,)
        Their labels.
    model : object
        The model to choose features for. If None, the model is chosen, too: ``Committee`` or ``NPSVOR``, with column weights and
        probabilities.
    scoring : str
        ``"mae"``, ``"mse"`` or ``"accuracy"``: the error to choose by, and the decision of the model that is chosen.
    ranks : array-like of shape (n_ranks,)
        The labels in order, lowest first. Required for text labels. Numbers are sorted if None.
    groups : array-like of shape (n_samples,)
        Groups of rows that stay together on one side of each split. If None, copies of a text do.
    random_state : int
        Seed of the samples and splits.
    n_jobs : int
        Number of threads. None means 1, -1 all processors.

    Returns
    -------
    Choice
        With ``vectorizer`` and ``model``, which are not fitted, and ``records``: what was chosen, and for each round the number of
        rows, the error of each candidate, and the standard error of its difference from the best. Fewer than 500 texts are too few
        to choose by; then there are no records.

    See Also
    --------
    TextVectorizer : Encode texts.
    CSearchCV : Choose C of the model that was found.

    Examples
    --------
    >>> from rankplane import choose_features
    >>> texts = [f"{word} thing number {i}" for i in range(250) for word in ("awful", "fine", "superb")]
    >>> choice = choose_features(texts, [1, 2, 3] * 250)
    >>> [record["what"] for record in choice.records]
    ['features', 'model']
    """
    check_choice("scoring", scoring, ("mae", "mse", "accuracy"))
    if isinstance(X, str | bytes) or not isinstance(X, Sequence) or not all(isinstance(text, str) for text in X):
        raise TypeError(f"X must be a list of texts. Got a {type(X).__name__}.")
    labels = np.asarray(y)
    if len(labels) != len(X):
        raise ValueError(f"X and y must have the same length. Got {len(X)} texts and {len(labels)} labels.")
    order = rank_order(labels, ranks)
    texts = Texts.of(X)

    def make(candidate: Candidate) -> tuple[TextVectorizer, OrdinalModel]:
        vectorizer = TextVectorizer(**{"n_jobs": n_jobs} | dict(candidate.text))
        if model is not None:
            return vectorizer, clone(model)
        options: dict[str, Any] = {
            "probability": True,
            "decision": scoring,
            "ranks": ranks,
            "random_state": random_state,
            "n_jobs": n_jobs,
        }
        return vectorizer, MODELS[candidate.model](column_weight=candidate.column_weight, **options)

    comparison = Comparison(
        texts,
        labels,
        texts.alike() if groups is None else np.asarray(groups),
        ranks=order,
        cost=cost_matrix(scoring, len(order)),
        make=make,
        measure=scoring,
        seed=random_state,
    )
    sizes = comparison.sizes(mean_length(texts))
    best, record = comparison.choose("features", text_candidates(texts), sizes)
    records = [record]
    if model is None and sizes:
        best, record = comparison.choose("model", model_candidates(best), sizes[-1:])
        records.append(record)
    return Choice(*make(best), [record for record in records if record is not None])
