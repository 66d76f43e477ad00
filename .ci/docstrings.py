"""Check the docstrings of everything public against the numpydoc standard, as users see them in ``help``."""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpydoc
from numpydoc.validate import ERROR_MSGS, Validator, validate
from sphinx.ext.autodoc.mock import mock

MODULES = ("rankplane", "rankplane.metrics", "rankplane.datasets", "rankplane.mlflow", "rankplane.onnx", "rankplane.distributed")
MODULES += ("rankplane.dask", "rankplane.spark", "rankplane.out_of_core")
# Checks that are off, and why.
OFF = {
    "GL01": "a docstring starts on the line of its quotes",
    "GL02": "docstrings are completed from tables, so where their quotes were cannot be seen",
    "ES01": "one sentence often says it all",
}
OFF_FOR_METHODS = OFF | {
    "SA01": "the methods of a class are listed together",
    "EX01": "the example is that of the class",
}
OFF_FOR_PROTOCOLS = OFF | {"PR01": "a protocol has no parameters of its own"}


def public_names() -> Iterator[tuple[str, bool]]:
    """Classes, functions and methods, and whether they are methods."""
    for module in MODULES:
        for name in import_module(module).__all__:
            path = f"{module}.{name}"
            yield path, False
            value = getattr(import_module(module), name)
            if isinstance(value, type):
                yield from ((f"{path}.{method}", True) for method in own_methods(value))


def own_methods(cls: type) -> list[str]:
    """Public methods that this package defines, not scikit-learn."""

    def is_ours(value: Any) -> bool:
        return inspect.isfunction(value) and value.__module__.split(".")[0] == "rankplane"

    return [name for name in dir(cls) if not name.startswith("_") and is_ours(getattr(cls, name, None))]


def complaints() -> Iterator[str]:
    for path, is_method in public_names():
        is_protocol = getattr(Validator._load_obj(path), "_is_protocol", False)
        off = OFF_FOR_METHODS if is_method else OFF_FOR_PROTOCOLS if is_protocol else OFF
        yield from (f"{path}: {code} {text}" for code, text in validate(path)["errors"] if code not in off)


def main() -> int:
    unknown = (OFF_FOR_METHODS | OFF_FOR_PROTOCOLS).keys() - ERROR_MSGS.keys()
    assert not unknown, f"numpydoc {numpydoc.__version__} has no checks {unknown}"
    with mock(["dask", "distributed", "pyspark"]):  # which need not be installed to read docstrings
        found = list(complaints())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
