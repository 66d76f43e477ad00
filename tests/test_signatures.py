"""Constructor parameters have names, not places, so that new ones can stand beside those they belong to."""

import inspect

import pytest

import rankplane
from rankplane.options import MODEL_NAMES

CLASSES = [*MODEL_NAMES, "CSearchCV", "TextVectorizer", "ColumnEncoder"]


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_are_keyword_only(name):
    signature = inspect.signature(getattr(rankplane, name))
    by_place = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert by_place == (["estimator"] if name == "CSearchCV" else [])
