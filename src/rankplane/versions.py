"""The version of this package, and objects that remember in their pickles which version wrote them."""

import warnings
from functools import cache
from importlib import metadata
from typing import Any

KEY = "_rankplane_version"


@cache
def this_version() -> str:
    """The version that is installed, which only ``pyproject.toml`` states."""
    return metadata.version("rankplane")


class Versioned:
    """Warns when a pickle of another version is read.

    scikit-learn's ``BaseEstimator`` does so, but for scikit-learn's own classes only. Attributes of a fitted model may change
    their names and meaning between versions, so an old pickle can fail late or give other results.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return state | {KEY: this_version()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = dict(state)
        there = attributes.pop(KEY, None)
        if there != this_version():
            written = "an earlier version of rankplane" if there is None else f"rankplane {there}"
            warnings.warn(
                f"This {type(self).__name__} was pickled with {written}, this is {this_version()}: it may fail or give "
                "other results. Fit it again, or keep models as files of save_model, which later versions can read.",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(attributes)  # type: ignore[misc]
