"""Model files of the newest format, with what they answer: run once when the format is raised, and keep what it writes.

    .venv/bin/python tests/models/make.py

Files of older formats are never made again: they are what a release once wrote.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from rankplane import NPSVOR, SVOR, save_model
from rankplane.modelfile import FORMAT

GOOD, BAD = ["great", "superb", "lovely", "best"], ["awful", "broken", "terrible", "waste"]
FILLERS = ["the", "phone", "was", "very", "and", "with"]
RANKS = ["1", "2", "3", "4", "5"]


def texts_and_ranks(n_texts: int, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Sentences whose rank follows from how many good and bad words they have."""
    texts, ranks = [], []
    for _ in range(n_texts):
        share = rng.random()
        words = [rng.choice(FILLERS if rng.random() < 0.5 else GOOD if rng.random() < share else BAD) for _ in range(10)]
        texts.append(" ".join(words))
        ranks.append(RANKS[int(5 * share)])
    return texts, ranks


def rows_and_ranks(n_rows: int, rng: np.random.Generator) -> tuple[list[list[Any]], list[str]]:
    """Two numbers, some missing, a word and a size."""
    rows, ranks = [], []
    for _ in range(n_rows):
        share = rng.random()
        age = None if rng.random() < 0.1 else round(20 + 60 * share + 5 * rng.standard_normal(), 1)
        rows.append(
            [age, round(rng.standard_normal(), 2), ["Ulm", "Köln", "Bonn"][int(3 * rng.random())], ["S", "M", "L"][int(3 * share)]]
        )
        ranks.append(RANKS[int(5 * share)])
    return rows, ranks


def write(name: str, model: Any, rows: list[Any]) -> None:
    place = Path(__file__).parent / name
    save_model(model, place.with_suffix(".rankplane"), metadata={"source": "made up"})
    answers = {"texts": rows, "ranks": model.predict(rows).tolist(), "probabilities": model.predict_proba(rows).round(6).tolist()}
    place.with_suffix(".json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    rng = np.random.default_rng(FORMAT)
    texts, ranks = texts_and_ranks(80, rng)
    letters = make_pipeline(CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)), TfidfTransformer(), SelectKBest(chi2, k=40))
    features = FeatureUnion([("words", TfidfVectorizer(sublinear_tf=True)), ("letters", letters)])
    model = make_pipeline(features, MaxAbsScaler(), NPSVOR(probability=True, decision="mae", ranks=RANKS)).fit(texts, ranks)
    write(f"format{FORMAT}", model, [*texts[:6], "", "très grand, unknown words!"])

    rows, ranks = rows_and_ranks(80, rng)
    columns = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(SimpleImputer(missing_values=None, strategy="constant", fill_value=50.0), StandardScaler()),
                [0, 1],
            ),
            ("town", OneHotEncoder(handle_unknown="ignore", min_frequency=5), [2]),
            ("size", OrdinalEncoder(categories=[["S", "M", "L"]]), [3]),
        ]
    )
    model = make_pipeline(columns, SVOR(kernel="rbf", probability=True, decision="mse", ranks=RANKS)).fit(rows, ranks)
    write(f"format{FORMAT}-columns", model, [*rows[:6], [None, 0.0, "Rom", "M"]])


if __name__ == "__main__":
    main()
