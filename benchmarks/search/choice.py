"""Is C as well chosen without the dear values, and with fewer held-out rows? ``python -m benchmarks.search.choice``.

One walk over all values of C on five folds, and on all training rows beside them, gives held-out scores for the choice and scores
of test rows to judge it by. Then every way to choose sees its share of them: all values of C or those that patience tries,
all held-out rows or the first of them. Walks are kept in the cache folder. Rows with the same text are one row here.
"""

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.common import Log, options_parser
from benchmarks.kernel import sets as tables
from lab import data as text_sets
from lab import text
from lab.competitors.rankplane import PAPER_TOL
from lab.data import TEST_SHARE, cache_folder, data_folder
from lab.measures import measures
from rankplane import NPSVOR, Committee, TextVectorizer
from rankplane.base import Trainer
from rankplane.prediction.calibration import Curved
from rankplane.prediction.decisions import cost_matrix, least_cost
from rankplane.prediction.probabilities import held_out_probabilities
from rankplane.prediction.rankers import ordered
from rankplane.solver.folds import FoldLanes, Folds, FoldScores, make_folds, walk_folds
from rankplane.solver.lanes import Options
from rankplane.solver.training_set import HeldOut
from rankplane.trials import Trials

CS = [2.0**k for k in range(-5, 6)]
N_FOLDS = 5
ROWS = (1000, 2000, 5000, 10_000, 20_000, 30_000, 50_000)
PATIENCE = 2
MANY, TEST_SHARE_OF_MANY = 200_000, 0.2
TEXTS = (
    "treebank",
    "moviereview",
    "video",
    "clothing",
    "tablets",
    "largemovie",
    "tripadvisor",
    "mobilephone",
    "douban",
    "tripadvisor_250k",
)
TABLES = ("auto_ord", "stock_ord", "winequality-red", "abalone_ord", "winequality-white", "kinematics", "californiahousing")
MODELS: dict[str, Any] = {
    "NPSVOR": NPSVOR(tol=PAPER_TOL),
    "Committee, column weights": Committee(tol=PAPER_TOL, column_weight="ranks"),
}
# How a model answers: by its own rule, or by the median of calibrated probabilities.
ANSWERS = {"NPSVOR": ("ranker", "median"), "Committee, column weights": ("median",)}
Array = NDArray[Any]
Line = dict[str, Any]


@dataclass(frozen=True)
class Walked:
    """Scores at every C: of held-out rows, fold after fold, and of test rows by planes of all training rows."""

    ranks: list[Array]  # of each fold
    held: Array
    test_ranks: Array
    out: Array
    sweeps: list[int]  # of all lanes together

    @property
    def n_ranks(self) -> int:
        return 1 + max(int(self.test_ranks.max()), *(int(ranks.max()) for ranks in self.ranks))

    def held_out(self, place: int, n_rows: int) -> HeldOut:
        """The first rows of the first folds, about so many."""
        ends = np.cumsum([len(ranks) for ranks in self.ranks])[:-1]
        scores, ranks = [], []
        for fold_scores, fold_ranks in zip(np.split(self.held[place], ends), self.ranks, strict=True):
            n_here = min(len(fold_ranks), n_rows - sum(map(len, ranks)))
            if n_here > 0:
                scores.append(fold_scores[:n_here])
                ranks.append(fold_ranks[:n_here])
        return HeldOut(scores, ranks, None, self.n_ranks)


def load(name: str, folder: Path) -> tuple[Any, Array, int]:
    """Training rows, then test rows; their ranks; how many of them train."""
    if name in TABLES:
        table = tables.load(name, folder)
        X = np.concatenate([table.X, table.X_test]).astype(np.float32)
        return X, np.concatenate([table.y, table.y_test]).astype(np.int32), int((1 - TEST_SHARE) * len(X))
    texts, ranks = text.texts_of(text.read_frame(folder / f"{name}.parquet"))
    rows = np.random.default_rng(0).permutation(sorted({one: row for row, one in reversed(list(enumerate(texts)))}.values()))
    n_train = int((1 - (TEST_SHARE if len(rows) < MANY else TEST_SHARE_OF_MANY)) * len(rows))
    options: dict[str, Any] = {"analyzer": "char", "ngram_range": (1, 3)} if name == "douban" else {}
    vectorizer = TextVectorizer(n_jobs=2, **options)
    X = vectorizer.fit_transform([texts[row] for row in rows[:n_train]])
    X_test = vectorizer.transform([texts[row] for row in rows[n_train:]])
    return sp.csr_matrix(sp.vstack([X, X_test])), ranks[rows], n_train


def walk(name: str, folder: Path, model: str) -> Walked:
    kept = cache_folder() / f"choice-{name}-{model.partition(',')[0].lower()}.npz"
    if not kept.exists():
        X, ranks, n_train = load(name, folder)
        base = make_folds(N_FOLDS, X[:n_train], ranks[:n_train], None, 0)
        is_train = np.zeros((N_FOLDS + 1, len(ranks)), dtype=bool)
        is_train[:N_FOLDS, :n_train] = base.is_train
        is_train[N_FOLDS, :n_train] = True
        folds = Folds(is_train, [*base.test, np.arange(n_train, len(ranks))])
        points = list(solved(MODELS[model], X, ranks, n_train, folds))
        np.savez(
            kept,
            **{f"ranks{fold}": ranks[test] for fold, test in enumerate(folds.test)},
            held=np.array([np.concatenate(point.held_out[:N_FOLDS]) for point in points], dtype=np.float32),
            out=np.array([point.held_out[N_FOLDS] for point in points], dtype=np.float32),
            sweeps=[point.n_sweeps.sum() for point in points],
        )
    with np.load(kept) as arrays:
        ranks = [arrays[f"ranks{fold}"] for fold in range(N_FOLDS + 1)]
        return Walked(ranks[:N_FOLDS], arrays["held"], ranks[N_FOLDS], arrays["out"], arrays["sweeps"].tolist())


def solved(model: Any, X: Any, ranks: Array, n_train: int, folds: Folds) -> Any:
    trainer = Trainer(model.set_params(ranks=range(int(ranks.max()) + 1), n_jobs=2), X, ranks, None)
    rows, path = trainer.rows, [trainer.table(C=C) for C in CS]

    def make(folds: Folds, options: Options) -> FoldLanes:
        lanes = rows.folds(path[0], folds, options, scales_C=True)
        lanes.factors = n_train / folds.is_train.sum(axis=1)  # test rows are no training rows that a fold lacks
        return lanes

    options = replace(rows.options, tol=0.5 * rows.options.tol)
    factors = [1.0, *(after / before for before, after in pairwise(CS))]
    return walk_folds(make, folds, options, path, factors, is_shared=not rows.learns_column_weights)


def judged(walked: Walked, answer: str, n_rows: int, patience: int | None) -> Line:
    """What is chosen by so many held-out rows, and how good it is on the test rows."""
    trials = Trials(is_greater_better=False, patience=patience)
    going = trials.new_walk()
    for place, C in enumerate(CS):
        parts = walked.held_out(place, n_rows).of_parts()
        answers = (
            [ordered(s) for s in parts.scores]
            if answer == "ranker"
            else [least_cost(p, cost_matrix("mae", walked.n_ranks)) for p in held_out_probabilities(parts, n_rows)]
        )
        errors = [measures(a, ranks)["mae"] for a, ranks in zip(answers, parts.ranks, strict=True)]
        trials.add({"C": C}, FoldScores([], np.array([walked.sweeps[place]]), False), errors, errors)
        if going.is_over:
            break
    best = trials.best_index
    calibrator = Curved.fit(*(np.concatenate(part) for part in learnt_from(walked, best, n_rows)), walked.n_ranks)
    likely = calibrator.probabilities(walked.out[best])
    found = ordered(walked.out[best]) if answer == "ranker" else least_cost(likely, cost_matrix("mae", walked.n_ranks))
    of_truth = likely[np.arange(len(likely)), walked.test_ranks]
    return {
        "C": CS[best],
        "tried": len(trials.all),
        "sweeps": sum(walked.sweeps[: len(trials.all)]),
        "mae": measures(found, walked.test_ranks)["mae"],
        "log_loss": float(-np.mean(np.log(np.maximum(of_truth, 1e-12)))),
    }


def learnt_from(walked: Walked, place: int, n_rows: int) -> tuple[list[Array], list[Array]]:
    held_out = walked.held_out(place, n_rows)
    return held_out.scores, held_out.ranks


def measure(name: str, folder: Path) -> list[Line]:
    lines = []
    for model, answers in ANSWERS.items():
        walked = walk(name, folder, model)
        n_held = sum(map(len, walked.ranks))
        for answer in answers:
            about = {"kind": "choice", "data": {"name": name, "rows": n_held}, "model": model, "answer": answer}
            ways = [(n_held, None), (n_held, PATIENCE), *((n_rows, PATIENCE) for n_rows in ROWS if n_rows < n_held)]
            lines += [about | {"held_out": n, "patience": patience} | judged(walked, answer, n, patience) for n, patience in ways]
    return lines


def why_not(name: str, folder: Path | None) -> str | None:
    return tables.why_not(name, folder) if name in TABLES else text_sets.why_not(name, folder)


def main(arguments: list[str] | None = None) -> None:
    options = options_parser("benchmarks.search.choice", __doc__, [*TABLES, *TEXTS]).parse_args(arguments)
    log, folder = Log("choice", not options.no_save), data_folder(options.data)
    for name in options.sets:
        if folder is None or (reason := why_not(name, folder)):
            print(f"{name} is left out: there is no data folder (--data)." if folder is None else reason)
            continue
        for line in measure(name, folder):
            print(name, json.dumps({key: value for key, value in line.items() if key not in ("kind", "data")}), flush=True)
            log.write(**line)


if __name__ == "__main__":
    main()
