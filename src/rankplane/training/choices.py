"""What the user may choose, checked before any work is done."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankplane import modelfile
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Inputs
from rankplane.options import DECISIONS, Options, named
from rankplane.solver.kernels import GAMMA_KERNELS, gamma_of
from rankplane.text import TextVectorizer
from rankplane.text.settings import ANALYZERS, PRESETS, SEGMENTERS, resolve
from rankplane.training import parsing
from rankplane.validation import MAX_SEED, MAX_THREADS

TEXT_OPTIONS = ("preset", "ngrams", "analyzer", "segmenter")
GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0)  # on the gamma that goes with the spread of X: texts want less of it at a large C


@dataclass(frozen=True)
class Choices(Options):
    """The options of the user, and what has to be loaded to check them."""

    def check(self) -> None:
        """Refuse what cannot be, whatever the table."""
        self.check_listed()
        self.check_numbers()
        self.check_together()
        parsing.weights_by_name(self.class_weight)
        resolve(self.vectorizer().get_params(deep=False))  # complains if a segmenter is not installed

    def check_listed(self) -> None:
        listed: dict[str, Collection[str]] = {"model": modelfile.MODELS, "preset": PRESETS, "decision": DECISIONS}
        listed["kernel"] = ("linear", *GAMMA_KERNELS)
        listed |= {"analyzer": ANALYZERS, "segmenter": SEGMENTERS}
        for name, choices in listed.items():
            if getattr(self, name) not in (None, *choices):
                raise InputError(f"{named(name)} must be one of {', '.join(choices)}. Got {getattr(self, name)}.")

    def check_numbers(self) -> None:
        threads = f"a number of threads, at most {MAX_THREADS}, or -1 for all processors"
        rules = {
            "holdout": (0 <= self.holdout < 1, "a share from 0 to below 1"),
            "C": (self.C is None or 0 < self.C < np.inf, "a positive number"),
            "seed": (0 <= self.seed <= MAX_SEED, f"a number from 0 to {MAX_SEED}"),
            "jobs": (self.jobs != 0 and (self.jobs or 1) <= MAX_THREADS, threads),
            "compact": (self.compact is None or 0 <= self.compact < np.inf, "a number from 0 up"),
            "gamma": (self.gamma is None or 0 < self.gamma < np.inf, "a positive number"),
        }
        for name, (is_kept, rule) in rules.items():
            if not is_kept:
                raise InputError(f"{named(name)} must be {rule}. Got {getattr(self, name)}.")

    def check_together(self) -> None:
        """Refuse what does not go together."""
        if self.kernel == "linear" and self.gamma is not None:
            kernels = named("kernel", GAMMA_KERNELS[0])
            raise InputError(f"{named('gamma')} needs a kernel that has one: {kernels} or {' or '.join(GAMMA_KERNELS[1:])}.")
        if self.kernel != "linear" and self.compact is not None:
            raise InputError(f"{named('compact')} rounds weights of columns, which only {named('kernel', 'linear')} has.")
        if self.segmenter is not None and self.analyzer not in (None, "word"):
            raise InputError(f"{named('segmenter')} finds words, which {named('analyzer', self.analyzer)} does not use.")

    def check_for(self, inputs: Inputs) -> None:
        """Refuse options about texts where there are none."""
        asked = [name for name in TEXT_OPTIONS if getattr(self, name) != getattr(Choices(), name)]
        if asked and inputs.kind != "text":
            raise InputError(f"{named(asked[0])} is about texts: name their columns by {named('text')}.")

    def vectorizer(self, **options: Any) -> TextVectorizer:
        ngrams = parsing.ngram_range(self.ngrams)
        analyzer = self.analyzer or "word"
        options |= {"ngram_range": ngrams, "analyzer": analyzer, "segmenter": self.segmenter, "n_jobs": self.jobs}
        return TextVectorizer(preset=self.preset, **options)

    def gammas(self, X: Any) -> list[float] | None:
        """Values to search: as given, or about the one that goes with the spread of X."""
        if self.kernel == "linear":
            return None
        return [gamma_of("scale", X) * factor for factor in GAMMA_FACTORS] if self.gamma is None else [self.gamma]
