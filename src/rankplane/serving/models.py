"""Models as they are served: read from their files, described for clients, and watched for files that are replaced."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from rankplane.inputs.reading import InputError
from rankplane.modelfile.container import PREAMBLE
from rankplane.prediction.decisions import SetRule
from rankplane.rank_model import RankModel
from rankplane.table_vectorizer import TableVectorizer
from rankplane.training.cautions import KnownWords
from rankplane.training.model import TrainedModel
from rankplane.training.rows import features_of_rows

N_CATEGORIES = 100  # of a column that clients are told
N_SET_RULES = 256  # that are kept
Stamp = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model under the name that clients use."""

    name: str
    model: TrainedModel
    version: str  # the checksum of its file
    loaded: float = field(default_factory=time.time)
    set_rules: dict[float, SetRule] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, path: str) -> "ServedModel":
        version = check_sum(path)
        model = TrainedModel.open(path)
        if check_sum(path) != version:
            raise InputError(f"{path} changed while it was read.")
        estimator = model.estimator
        if not isinstance(estimator, RankModel) or not estimator.probability:
            raise InputError(f"{path} has no probabilities: its model must be one of rankplane, fitted with probability=True.")
        served = cls(name, model.on_threads(1), version)  # workers share the cores already
        served.warm_up()
        return served

    def warm_up(self) -> None:
        """Make what is made at the first use, before workers are forked, so that they share its memory."""
        empty = {} if self.kind == "numbers" else dict.fromkeys([*self.model.inputs.text, *self.model.inputs.columns])
        self.model.predict_both(self.model.transform(features_of_rows(self.model, [empty])))
        if self.explains:
            _ = self.model.column_names, self.words

    @property
    def kind(self) -> str:
        return {"svmlight": "numbers"}.get(self.model.inputs.kind, self.model.inputs.kind)

    @property
    def explains(self) -> bool:
        vectorizer = self.model.vectorizer
        has_names = vectorizer is None or vectorizer.hashing is None
        return self.model.is_linear and self.kind != "numbers" and has_names and self.model.first_step is not None

    @cached_property
    def ranks(self) -> list[Any]:
        return list(self.model.classes.tolist())

    @cached_property
    def rank_names(self) -> list[str]:
        return [str(rank) for rank in self.ranks]

    @cached_property
    def words(self) -> KnownWords | None:
        """Counts the words that the model knows; None for tables."""
        return None if self.model.vectorizer is None else KnownWords(self.model.vectorizer)

    def set_rule(self, coverage: float) -> SetRule:
        """Which ranks belong to a set of this coverage."""
        if coverage not in self.set_rules:
            if len(self.set_rules) >= N_SET_RULES:
                self.set_rules.clear()
            self.set_rules[coverage] = self.model.estimator._set_rule(coverage)
        return self.set_rules[coverage]

    @cached_property
    def description(self) -> dict[str, Any]:
        """What clients are told, without anything that names a file of this machine."""
        metadata, estimator = self.model.metadata, self.model.estimator
        decision = estimator.decision
        return {
            "name": self.name,
            "version": self.version,
            "kind": self.kind,
            "target": self.model.inputs.target,
            "ranks": self.ranks,
            "columns": list(map(self.column, [*self.model.inputs.text, *self.model.inputs.columns])),
            "model": type(estimator).__name__,
            "decision": decision if isinstance(decision, str) else "cost matrix",
            "explains": self.explains,
            "trained": {
                "date": metadata.get("date"),
                "rows": (metadata.get("data") or {}).get("trained_on"),
                "version": metadata.get("version"),
            },
            "measured": (metadata.get("metrics") or {}).get("model"),
            "loaded": datetime.fromtimestamp(self.loaded, UTC).isoformat(timespec="seconds"),
        }

    def column(self, name: str) -> dict[str, Any]:
        if name in self.model.inputs.text:
            return {"name": name, "type": "text"}
        step, encoder = self.model.first_step, self.model.encoder
        if isinstance(step, TableVectorizer) and name in step.spread_:
            spread = step.spread_[name]
            return {"name": name, "type": "date"} if isinstance(spread, list) else {"name": name, "type": "list", "places": spread}
        categories = None if encoder is None else encoder.categories_.get(name)
        if categories is None:
            return {"name": name, "type": "number"}
        return {"name": name, "type": "category", "categories": categories[:N_CATEGORIES]}


def check_sum(path: str) -> str:
    """Of the contents of a model file, as its preamble says; a file that is too short is refused when it is read."""
    with open(path, "rb") as file:
        start = file.read(PREAMBLE.size).ljust(PREAMBLE.size, b"\0")
    return f"{PREAMBLE.unpack(start)[2]:08x}"


def names_of(paths: Sequence[str]) -> dict[str, str]:
    """Paths by the names of their models: file names without their ending."""
    named: dict[str, str] = {}
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        if name in named:
            raise InputError(f"{named[name]} and {path} would both be called {name}: give one of the files another name.")
        named[name] = path
    return named


class Shelf:
    """The models that are served, and their files."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = names_of(paths)
        self.seen = {name: stamp(path) for name, path in self.paths.items()}
        self.used = dict(self.seen)
        self.models = {name: ServedModel.read(name, path) for name, path in self.paths.items()}

    def replaced(self) -> list[str]:
        """Names of the models whose file is another one than was read, and has not changed since the last call."""
        before, self.seen = self.seen, {name: stamp(path) for name, path in self.paths.items()}
        return [
            name for name, found in self.seen.items() if found is not None and found == before[name] and found != self.used[name]
        ]

    def read_again(self, name: str) -> ServedModel:
        """The model of a file that was replaced. Read once only, even if it cannot be used."""
        self.used[name] = stamp(self.paths[name])
        return ServedModel.read(name, self.paths[name])


def stamp(path: str) -> Stamp | None:
    """What differs for another file in the same place; None if there is no file now."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
