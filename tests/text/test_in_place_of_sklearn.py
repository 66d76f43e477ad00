"""scikit-learn's own tests of its vectorizers, with TextVectorizer in the place of TfidfVectorizer."""

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import rankplane

THEIRS = "sklearn.feature_extraction.tests.test_text"

PRIVATE = "private attributes of scikit-learn"
WORDING = "the sentence of the error is ours"
# By test: why it fails with ours.
EXPECTED = {
    "test_tfidf_vectorizer_setters": PRIVATE,
    "test_tfidfvectorizer_export_idf": PRIVATE,
    "test_vectorizer_stop_words_inconsistent": PRIVATE,  # the warning itself is tested below
    "test_stop_word_validation_custom_preprocessor[TfidfVectorizer]": PRIVATE,
    "test_tfidf_vectorizer_setter": WORDING,
    "test_vectorizer_string_object_as_input[TfidfVectorizer]": WORDING,
    "test_vectorizers_invalid_ngram_range[vec2]": WORDING,
    "test_tfidf_vectorizer_preserve_dtype_idf[float32]": "idf_ is in float64 whatever dtype is",
}

# Run by pytest as a plugin, before their tests are imported.
PLUGIN = """
import inspect
import sklearn.feature_extraction.text as theirs
from rankplane import TextVectorizer

parameters = [
    parameter.replace(default="sklearn") if parameter.name == "preset" else parameter
    for parameter in inspect.signature(TextVectorizer.__init__).parameters.values()
]

class TfidfVectorizer(TextVectorizer, auto_wrap_output_keys=None):
    def __init__(self, **options):
        super().__init__(**{"preset": "sklearn"} | options)

    __init__.__signature__ = inspect.Signature(parameters)

theirs.TfidfVectorizer = TfidfVectorizer
"""


def run_theirs(folder: Path) -> dict[str, str]:
    """The outcome of each test."""
    (folder / "in_place.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "in_place", "-p", "no:cacheprovider"]
    command += ["-W", "default", "-c", str(folder / "none.ini"), "--rootdir", str(folder), "--pyargs", THEIRS]
    (folder / "none.ini").write_text("[pytest]\n")
    environment = {"PYTHONPATH": f"{folder}:{Path(rankplane.__file__).parents[1]}", "PATH": ""}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    outcomes = {}
    for line in found.stdout.splitlines():
        outcome, _, rest = line.partition(" ")
        if outcome in ("PASSED", "FAILED", "ERROR") and "::" in rest:
            outcomes[rest.split("::", 1)[1].split(" - ")[0]] = outcome
    assert outcomes, found.stdout + found.stderr
    return outcomes


@pytest.mark.skipif(importlib.util.find_spec(THEIRS) is None, reason="scikit-learn is installed without its tests")
def test_their_tests_pass_but_for_those_listed(tmp_path):
    outcomes = run_theirs(tmp_path)
    assert {name for name, outcome in outcomes.items() if outcome != "PASSED"} == set(EXPECTED)


def test_the_preset_has_their_defaults():
    from sklearn.feature_extraction.text import TfidfVectorizer

    theirs = {name: p.default for name, p in inspect.signature(TfidfVectorizer).parameters.items()}
    vectorizer = rankplane.TextVectorizer(preset="sklearn")
    settings = vectorizer._settings()[0]
    same = ("input", "encoding", "decode_error", "lowercase", "binary", "norm", "use_idf", "smooth_idf", "sublinear_tf", "analyzer")
    assert {name: getattr(settings, name) for name in same} == {name: theirs[name] for name in same}
    assert (settings.ngram_range, settings.min_df, settings.max_df) == (theirs["ngram_range"], theirs["min_df"], theirs["max_df"])
    assert settings.token_pattern == theirs["token_pattern"]
    assert settings.dtype == theirs["dtype"].__name__
