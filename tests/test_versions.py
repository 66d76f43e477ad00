"""The version: written once, and remembered by pickles."""

import copy
import pickle
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import rankplane
from rankplane import NPSVOR, SVC, SVMOP, SVOR, SVR, ColumnEncoder, Committee, CSearchCV, RedSVM, TextVectorizer, versions

ROOT = Path(__file__).parents[1]
TEXTS = ["awful", "poor thing", "fine", "really good", "poor", "good"]
RANKS = [1, 2, 3, 4, 2, 4]
X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.2], [3.0, 0.1], [1.1, 0.4], [2.9, 0.0]])


MODELS = [NPSVOR(), SVC(), SVR(), SVMOP(), RedSVM(), SVOR(), Committee(), NPSVOR(kernel="rbf")]
OTHERS = [CSearchCV(NPSVOR(), Cs=[0.1, 1.0], cv=2), TextVectorizer(min_df=1), ColumnEncoder()]


@pytest.fixture(params=[*MODELS, *OTHERS], ids=lambda made: type(made).__name__)
def fitted(request):
    made = clone(request.param)
    if isinstance(made, TextVectorizer):
        return made.fit(TEXTS)
    if isinstance(made, ColumnEncoder):
        return made.fit({"size": [1, 2, 3], "colour": ["red", "blue", "red"]})
    return made.fit(X, RANKS)


def as_of(version, fitted):
    """The pickle that another version of this package would have written, inner objects and all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "this_version", lambda: version)
        return pickle.dumps(fitted)


def test_version_is_written_once():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert rankplane.__version__ == stated
    assert "__version__" in dir(rankplane)
    done = subprocess.run([sys.executable, "-m", "rankplane", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rankplane {stated}\n"
    sources = [*(ROOT / "src").rglob("*.*py*"), *(ROOT / "src").rglob("*.?pp"), ROOT / "CMakeLists.txt", ROOT / "docs/conf.py"]
    assert [path for path in sources if f'"{stated}"' in path.read_text(encoding="utf-8", errors="replace")] == []


def test_pickle_of_this_version_is_silent(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(fitted))
    assert versions.KEY not in vars(again)


def test_pickle_of_another_version_warns(fitted):
    name = type(fitted).__name__
    told = (
        f"This {name} was pickled with rankplane 0.0.7, this is {rankplane.__version__}: it may fail or give other results. "
        "Fit it again, or keep models as files of save_model, which later versions can read."
    )
    with pytest.warns(UserWarning, match="was pickled with") as caught:
        again = pickle.loads(as_of("0.0.7", fitted))
    assert told in [str(warning.message) for warning in caught]
    assert {warning.filename for warning in caught} == {__file__}
    assert versions.KEY not in vars(again)


def test_another_version_still_answers():
    model = NPSVOR().fit(X, RANKS)
    with pytest.warns(UserWarning, match=r"This NPSVOR was pickled with rankplane 99\.1, this is "):
        again = pickle.loads(as_of("99.1", model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_parts_of_a_search_and_a_pipeline_warn_too():
    """Whichever part is used alone later was warned of."""
    search = make_pipeline(TextVectorizer(min_df=1), CSearchCV(NPSVOR(), Cs=[1.0], cv=2)).fit(TEXTS, RANKS)
    with pytest.warns(UserWarning, match="was pickled with") as caught:
        pickle.loads(as_of("0.0.7", search))
    told = {str(warning.message).split(" was ")[0] for warning in caught}
    assert told == {"This TextVectorizer", "This CSearchCV", "This NPSVOR"}


def test_pickle_without_a_version_warns():
    """Version 0.1.0 did not write its version."""
    model = NPSVOR().fit(X, RANKS)
    with pytest.warns(UserWarning, match="This NPSVOR was pickled with an earlier version of rankplane, this is "):
        NPSVOR().__setstate__(vars(model))
    assert "classes_" in vars(model)


def test_copies_are_silent(tmp_path, fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy.deepcopy(fitted)
        clone(fitted)
        joblib.dump(fitted, tmp_path / "fitted.joblib")
        joblib.load(tmp_path / "fitted.joblib")
    assert versions.KEY not in vars(fitted)
