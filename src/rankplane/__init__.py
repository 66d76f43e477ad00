"""Large-scale ordinal regression: ordered labels from sparse, high-dimensional data, one hyperplane per rank."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankplane.estimators import NPSVOR, SVC, SVMOP, SVOR, SVR, Committee, RedSVM
    from rankplane.modelfile import load_model, read_metadata, save_model
    from rankplane.prediction.decisions import set_in_words
    from rankplane.search import CSearchCV
    from rankplane.tabular import ColumnEncoder
    from rankplane.text import TextVectorizer

__all__ = [
    "NPSVOR",
    "SVC",
    "SVMOP",
    "SVOR",
    "SVR",
    "CSearchCV",
    "ColumnEncoder",
    "Committee",
    "RedSVM",
    "TextVectorizer",
    "load_model",
    "read_metadata",
    "save_model",
    "set_in_words",
]
__version__ = "0.1.0"

if not TYPE_CHECKING:  # for a type checker, a name that is not above does not exist
    MODULE_OF = {
        "CSearchCV": "search",
        "ColumnEncoder": "tabular",
        "TextVectorizer": "text",
        "load_model": "modelfile",
        "read_metadata": "modelfile",
        "save_model": "modelfile",
        "set_in_words": "prediction.decisions",
    }

    def __getattr__(name: str) -> Any:
        """Names are loaded when they are used: numpy and scikit-learn take a second, and the command line may not need them."""
        if name in __all__:
            value = getattr(import_module(f"{__name__}.{MODULE_OF.get(name, 'estimators')}"), name)
            globals()[name] = value
            return value
        if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
