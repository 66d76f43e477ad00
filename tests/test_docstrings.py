"""Docstrings say what signatures and fitted objects have."""

import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankplane
from rankplane import ColumnEncoder, CSearchCV, TextVectorizer
from rankplane.docstrings import Entry, documented
from rankplane.options import MODEL_NAMES
from rankplane.validation import only_if

PACKAGE = Path(rankplane.__file__).parent
MODULES = ["rankplane", "rankplane.metrics", "rankplane.datasets", "rankplane.mlflow", "rankplane.onnx"]
MODULES += ["rankplane.distributed", "rankplane.out_of_core"]
MODULES += [
    f"rankplane.{name}" for name, engine in (("dask", "distributed"), ("spark", "pyspark")) if importlib.util.find_spec(engine)
]


def has_signature(value):
    """Protocols are never called, and most exceptions have the signature of all exceptions."""
    is_exception = isinstance(value, type) and issubclass(value, Exception)
    return not getattr(value, "_is_protocol", False) and not (is_exception and "__init__" not in vars(value))


def public_callables():
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if has_signature(value):
                yield name, value
            for method in dir(value) if isinstance(value, type) else ():
                function = getattr(value, method, None)
                if not method.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("rankplane"):
                    yield f"{name}.{method}", function


CALLABLES = [pytest.param(value, id=name) for name, value in public_callables()]


def entries(docstring, title):
    """Names of a section with their types, in order."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n\w|\Z)", inspect.cleandoc(docstring), flags=re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^(\w+) : (.+)$", found[1], flags=re.MULTILINE)) if found else {}


@pytest.mark.parametrize("value", CALLABLES)
def test_parameters_are_those_of_the_signature_in_order(value):
    signature = inspect.signature(value).parameters
    assert list(entries(value.__doc__, "Parameters")) == [name for name in signature if name != "self"]


@pytest.mark.parametrize("value", CALLABLES)
def test_defaults_are_those_of_the_signature(value):
    signature = inspect.signature(value).parameters
    for name, type_ in entries(value.__doc__, "Parameters").items():
        default = signature[name].default
        if default is inspect.Parameter.empty:
            assert "default" not in type_
        else:
            assert type_.endswith(f", default={default!r}")
            assert type_.count("default=") == 1
        assert type_.split(", default=")[0].strip()


@pytest.mark.parametrize("value", CALLABLES)
def test_what_is_returned_is_described(value):
    returns = inspect.signature(value).return_annotation
    if not isinstance(value, type) and returns is not None:
        assert re.search(r"^Returns\n-------\n\S.*\n    \S", inspect.cleandoc(value.__doc__), flags=re.MULTILINE)


def test_no_default_is_typed():
    for path in PACKAGE.rglob("*.py"):
        typed = re.findall(r"^\s*\w+ : .*\bdefault=.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert typed == [], path.name


def fitted_names(*fitted):
    """Public attributes that end with an underscore, properties too."""
    found = set()
    for one in fitted:
        found |= {name for name in dir(one) if name.endswith("_") and not name.startswith("_") and hasattr(one, name)}
    return found


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_attributes_of_models_are_those_that_fits_set(name):
    model = getattr(rankplane, name)
    X, y = pd.DataFrame({"a": np.linspace(0, 1, 40)}), np.repeat([1, 2, 3, 4], 10)
    options = {} if "probability" in model.without else {"probability": True}
    linear = model(**options).fit(X, y)
    fits = [linear]
    if "kernel" in linear.get_params():
        fits.append(model(kernel="rbf", probability=False, decision="ranker", tol=0.5).fit(X, y))
    assert set(entries(model.__doc__, "Attributes")) == fitted_names(*fits)


def test_attributes_of_other_estimators_are_those_that_fits_set():
    X, y = np.linspace(0, 1, 40)[:, None], np.repeat([1, 2, 3, 4], 10)
    search = CSearchCV(rankplane.NPSVOR(), Cs=[1.0], cv=2).fit(X, y)
    vectorizer = TextVectorizer(min_df=1).fit(["good", "bad"])
    encoder = ColumnEncoder().fit({"size": [1, 2]})
    for fitted in (search, vectorizer, encoder):
        assert set(entries(type(fitted).__doc__, "Attributes")) == fitted_names(fitted)


def test_docstrings_are_completed_from_the_table_and_the_signature():
    @documented({"a": Entry("int", "The first.")})
    def add(a, b=2):
        """Add numbers.

        Returns
        -------
        int
            The sum.
        """

    assert inspect.cleandoc(add.__doc__).startswith(
        "Add numbers.\n\nParameters\n----------\na : int\n    The first.\n\nReturns\n-------\nint\n    The sum."
    )

    @documented()
    def given(a="x", b=None):
        """Say it.

        Parameters
        ----------
        a : str
            The first.
        b : int
            The second; a : b in it stays.

        Examples
        --------
        a : str
        """

    assert "a : str, default='x'\n    The first.\nb : int, default=None\n    The second; a : b in it stays.\n" in given.__doc__
    assert given.__doc__.endswith("a : str")


def test_methods_without_a_docstring_have_that_of_the_model():
    class Model:
        @only_if(lambda model: None)
        def predict(self, X, n=3):
            """Predict."""

    @documented({"X": Entry("array", "Samples."), "n": Entry("int", "How many.")}, methods_like=Model)
    class Search:
        """Search."""

        __module__ = "rankplane.of_this_test"

        @only_if(lambda model: None)
        def predict(self, X, n=5): ...

    expected = "Predict.\n\nParameters\n----------\nX : array\n    Samples.\nn : int, default=5\n    How many."
    assert Search.predict.__doc__ == Search().predict.__doc__ == expected
    assert Model.predict.__doc__ == "Predict."


def test_literals_are_not_broken_over_lines():
    for name in MODEL_NAMES:
        for line in getattr(rankplane, name).__doc__.splitlines():
            assert line.count("``") % 2 == 0, line
