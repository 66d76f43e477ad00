"""Large-scale ordinal regression: ordered labels from sparse, high-dimensional data, one hyperplane per rank."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankplane.estimators import (
        GPOR,
        KDLOR,
        NPSVOR,
        SVC,
        SVMOP,
        SVOR,
        SVOREX,
        SVR,
        AdversarialOrdinal,
        Committee,
        CrammerSinger,
        RedSVM,
    )
    from rankplane.model_comparison import compare_models
    from rankplane.modelfile import load_model, read_metadata, save_model
    from rankplane.prediction.decisions import set_in_words
    from rankplane.recalibration import recalibrate
    from rankplane.search import CSearchCV
    from rankplane.table_vectorizer import TableVectorizer
    from rankplane.tabular import ColumnEncoder
    from rankplane.text import TextVectorizer
    from rankplane.training.candidates import choose_features
    from rankplane.training.rows import predict_rows

    __version__: str

__all__ = [
    "GPOR",
    "KDLOR",
    "NPSVOR",
    "SVC",
    "SVMOP",
    "SVOR",
    "SVOREX",
    "SVR",
    "AdversarialOrdinal",
    "CSearchCV",
    "ColumnEncoder",
    "Committee",
    "CrammerSinger",
    "RedSVM",
    "TableVectorizer",
    "TextVectorizer",
    "choose_features",
    "compare_models",
    "load_model",
    "predict_rows",
    "read_metadata",
    "recalibrate",
    "save_model",
    "set_in_words",
]

if not TYPE_CHECKING:  # for a type checker, a name that is not above does not exist
    MODULE_OF = {
        "compare_models": "model_comparison",
        "CSearchCV": "search",
        "ColumnEncoder": "tabular",
        "TableVectorizer": "table_vectorizer",
        "TextVectorizer": "text",
        "choose_features": "training.candidates",
        "load_model": "modelfile",
        "predict_rows": "training.rows",
        "read_metadata": "modelfile",
        "recalibrate": "recalibration",
        "save_model": "modelfile",
        "set_in_words": "prediction.decisions",
    }

    def __getattr__(name: str) -> Any:
        """Names are loaded when they are used: numpy and scikit-learn take a second, and the command line may not need them."""
        if name == "__version__":
            return import_module(f"{__name__}.versions").this_version()
        if name in __all__:
            value = getattr(import_module(f"{__name__}.{MODULE_OF.get(name, 'estimators')}"), name)
            globals()[name] = value
            return value
        if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "__version__"})
